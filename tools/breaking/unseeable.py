"""Why the headers of a checkpoint can't show a break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Change
from tools.breaking.folder import Tensor
from tools.breaking.modules import quantized_modules

FLOATS = frozenset({"BF16", "F16", "F32"})

ACTIVATION = re.compile(r"(^|_)(input|output|activation|act)_|_act$")
"""What the name of a scale has in it that is of a layer's input or output."""

BLOCKS = (16, 32, 48, 64, 128)
"""Lengths of blocks along one axis that tools write."""

RESHAPED = frozenset(
    {
        *(kinds.ROW_MORE, kinds.ROW_LESS, kinds.COLUMN_MORE, kinds.COLUMN_LESS),
        *(kinds.TRANSPOSED, kinds.EXCHANGED),
    }
)


def reason_for(broken: Break) -> str | None:
    """The reason why headers can't show a break; None where they can."""
    return next((reason for holds, reason in UNSEEABLE if holds(broken)), None)


def _fits_its_scales(broken: Break) -> bool:
    """Whether each scale is one number, or one for each row, of the changed weight as of the old."""
    return broken.kind in RESHAPED and all(
        _every_partner(change, _is_spread_over) for change in broken.changes
    )


def _has_as_many_blocks(broken: Break) -> bool:
    """Whether as many blocks as before cover the changed weight."""
    return broken.kind in RESHAPED and all(
        _every_partner(change, _covers_in_blocks) for change in broken.changes
    )


def _is_cast(broken: Break) -> bool:
    """Whether a float becomes another float of at least 16 bits."""
    return broken.kind == kinds.DTYPE and all(
        change.after is not None and {change.before.dtype, change.after.dtype} <= FLOATS
        for change in broken.changes
    )


def _is_a_shape(broken: Break) -> bool:
    """Whether a list of dimensions changes the width of its integers."""
    return broken.kind == kinds.DTYPE and all(
        change.after is not None
        and "shape" in change.suffix
        and {change.before.dtype, change.after.dtype} == {"I32", "I64"}
        for change in broken.changes
    )


def _is_of_activations(broken: Break) -> bool:
    """Whether the layers' inputs, or outputs, have no scales left, and no config says that they have."""
    if not _none_is_left(broken) or _says_static(broken.broken.documents):
        return False
    return all(ACTIVATION.search(change.suffix) for change in broken.changes)


def _none_is_left(broken: Break) -> bool:
    """Whether no module has a tensor with the suffix of those that are removed."""
    if broken.kind not in (kinds.REMOVED, kinds.ALL_REMOVED):
        return False
    gone = {change.suffix for change in broken.changes}
    return not any(gone & module.tensors.keys() for module in quantized_modules(broken.broken))


def _says_static(value: Any) -> bool:
    """Whether a config says anywhere that the scales of inputs are stored."""
    if isinstance(value, list):
        return any(map(_says_static, value))
    if not isinstance(value, Mapping):
        return False
    inputs = value.get("input_activations")
    static = isinstance(inputs, dict) and inputs.get("dynamic") is False
    said = value.get("activation_scheme") == "static" or value.get("act_dynamic") is False
    return static or said or any(map(_says_static, value.values()))


def _is_an_order_of_columns(broken: Break) -> bool:
    return _none_is_left(broken) and all(change.suffix == "g_idx" for change in broken.changes)


def _is_a_label(broken: Break) -> bool:
    return _none_is_left(broken) and all(change.suffix == "comfy_quant" for change in broken.changes)


def _divides_alike(broken: Break) -> bool:
    """Whether every weight has as many blocks of the new size as of the old."""
    if broken.resized is None or not isinstance(broken.resized.before, list):
        return False
    sizes = tuple(zip(broken.resized.before, broken.resized.after, strict=True))
    return all(
        _blocks(length, before) == _blocks(length, after)
        for weight in _weights(broken)
        for length, (before, after) in zip(weight.shape[-2:], sizes, strict=False)
    )


def _holds_any_width(broken: Break) -> bool:
    """Whether each weight has its elements in I8 or in floats, one each."""
    holding = FLOATS | {"I8"}
    return broken.kind == kinds.WIDTH and all(weight.dtype in holding for weight in _weights(broken))


def _weights(broken: Break) -> Iterator[Tensor]:
    """The largest tensor of each quantized module."""
    for module in quantized_modules(broken.broken):
        yield max(module.tensors.values(), key=lambda tensor: tensor.length)


def _takes_as_much(broken: Break) -> bool:
    """Whether a tensor of a GGUF file takes as many bytes as before."""
    return broken.padded


def _blocks(length: int, size: int) -> int:
    return -(-length // size)


def _every_partner(change: Change, fits: Callable[[Tensor, Tensor, Tensor], bool]) -> bool:
    """Whether a weight is changed, and all that stand beside it fit it before and after."""
    partners = list(_partners(change))
    return (
        change.after is not None
        and bool(partners)
        and all(one.num_elements <= change.before.num_elements for one in partners)
        and all(fits(one, change.before, change.after) for one in partners)
    )


def _partners(change: Change) -> Iterator[Tensor]:
    """The tensors beside one; where several weights share a parent, those whose names begin as its own."""
    own = [suffix for suffix in change.module if suffix.startswith(f"{change.suffix}_")]
    for suffix in own or change.module:
        if suffix != change.suffix and not suffix.startswith("comfy_quant"):
            yield change.module[suffix]


def _is_spread_over(partner: Tensor, before: Tensor, after: Tensor) -> bool:
    return _spreads(partner.shape, before.shape) and _spreads(partner.shape, after.shape)


def _spreads(shape: Sequence[int], over: Sequence[int]) -> bool:
    """Whether a shape is that of one number, or of one for each index of leading axes."""
    if len(shape) == 1 and len(over) > 1:
        shape = (*shape, *[1] * (len(over) - 1))
    if all(length == 1 for length in shape):
        return True
    return len(shape) == len(over) and all(one in (1, two) for one, two in zip(shape, over, strict=True))


def _covers_in_blocks(partner: Tensor, before: Tensor, after: Tensor) -> bool:
    if partner.num_elements == 1:
        return True
    if not len(partner.shape) == len(before.shape) == len(after.shape) > 1:
        return False
    if not before.dtype.startswith("F8") and partner.shape[-2] == before.shape[-2]:
        return False  # groups of packed or integer elements are whole
    lengths = zip(partner.shape, before.shape, after.shape, strict=True)
    return all(
        count == old == new or any(count == _blocks(old, size) == _blocks(new, size) for size in BLOCKS)
        for count, old, new in lengths
    )


UNSEEABLE: tuple[tuple[Callable[[Break], bool], str], ...] = (
    (
        _fits_its_scales,
        "The scales are for the whole matrix or for its rows: they fit the changed weight as they fitted the "
        "old, and only the model's code knows its shape.",
    ),
    (
        _has_as_many_blocks,
        "The last block of a row or of a column need not be whole: as many scales cover the changed weight.",
    ),
    (_divides_alike, "Blocks of both sizes divide these matrices into as many."),
    (
        _holds_any_width,
        "Elements in I8 or in floats, one each, can be of any width: 4-bit integers are stored so too.",
    ),
    (_is_cast, "A loader casts floats: the same numbers in another float dtype are sound."),
    (_is_a_shape, "Tools write a shape in I32 and in I64."),
    (
        _is_of_activations,
        "Inputs and outputs can be quantized with scales that are computed on the fly: a checkpoint without "
        "stored ones is sound, and its config does not say that they are stored.",
    ),
    (_is_an_order_of_columns, "Columns in their own order need no g_idx, and loaders take none for that."),
    (_is_a_label, "Without its labels the checkpoint is one of another tool."),
    (_takes_as_much, "The payload takes as many bytes as before, with those that pad it to its alignment."),
)
"""What must hold of a break that is missed, and then why headers can't show it."""
