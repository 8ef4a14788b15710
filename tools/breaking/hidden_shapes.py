"""Changed shapes that headers can't show: what stands beside the tensor fits it before and after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Change
from tools.breaking.documents import says, values_of
from tools.breaking.folder import Checkpoint, Tensor

BLOCKS = (16, 32, 48, 64, 128)
"""Lengths of blocks along one axis that tools write."""

RESHAPED = frozenset(
    {
        *(kinds.ROW_MORE, kinds.ROW_LESS, kinds.COLUMN_MORE, kinds.COLUMN_LESS),
        *(kinds.TRANSPOSED, kinds.EXCHANGED),
    }
)


def fits_its_scales(broken: Break) -> bool:
    """Whether each scale is one number, or one for each row, of the changed weight as of the old."""
    return broken.kind in RESHAPED and _all_fit(broken, _is_spread_over)


def has_as_many_blocks(broken: Break) -> bool:
    """Whether as many blocks as before cover the changed weight."""
    return broken.kind in RESHAPED and _all_fit(broken, _covers_in_blocks)


def fits_its_columns(broken: Break) -> bool:
    """Whether a weight with inputs along its rows has one scale for each column, before and after."""
    transposed = says(broken.broken.documents, "quant_method", "eetq", "fbgemm_fp8")
    return transposed and broken.kind in RESHAPED and _all_fit(broken, _is_spread_over_columns)


def fills_as_many_tiles(broken: Break) -> bool:
    """Whether scales of groups of 32, padded to tiles, are as many for the changed weight."""
    return broken.kind in RESHAPED and _all_fit(broken, _covers_in_tiles)


def rounds_groups_up(broken: Break) -> bool:
    """Whether compressed-tensors has as many groups in the changed rows, of which the last is shorter."""
    if broken.kind not in (kinds.COLUMN_MORE, kinds.COLUMN_LESS):
        return False
    checkpoint = broken.broken
    whole = {"int-quantized", "dense"} & {str(one) for one in values_of(checkpoint.documents, "format")}
    return bool(whole) and all(_has_as_many_groups(checkpoint, change) for change in broken.changes)


def has_rows_of_any_length(broken: Break) -> bool:
    """Whether quanto's packed rows change in length: each has one scale, be it a group or a row."""
    return broken.kind in (kinds.COLUMN_MORE, kinds.COLUMN_LESS) and all(
        change.suffix == "weight._data._data"
        and "weight._scale" in change.module
        and change.module["weight._scale"].shape in [(pack * change.before.shape[0], 1) for pack in (2, 4)]
        for change in broken.changes
    )


def is_one_for_each_expert(broken: Break) -> bool:
    """Whether one scale becomes two, and two experts are stored in the weight that it is of."""
    return broken.kind == kinds.MADE_TWO and all(
        change.after is not None
        and change.after.shape == (2,)
        and any(
            change.suffix.startswith(f"{suffix}_") and len(weight.shape) == 3 and weight.shape[0] == 2
            for suffix, weight in change.module.items()
        )
        for change in broken.changes
    )


def is_of_another_matrix(broken: Break) -> bool:
    """Whether exchanged tensors of SDNQ's packed weights, which lie in one run, make sound modules."""
    if broken.kind != kinds.EXCHANGED or not says(broken.broken.documents, "quant_method", "sdnq"):
        return False
    return all(
        change.after is not None
        and _is_sound_run(broken.broken, {**change.module, change.suffix: change.after})
        for change in broken.changes
    )


def _all_fit(broken: Break, fits: Callable[[Tensor, Tensor, Tensor], bool]) -> bool:
    return all(_every_partner(change, fits) for change in broken.changes)


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


def _is_spread_over_columns(partner: Tensor, before: Tensor, after: Tensor) -> bool:
    return all(
        len(over) > 1 and _without_ones(partner.shape) == _without_ones((*over[:-2], over[-1]))
        for over in (before.shape, after.shape)
    )


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


def _covers_in_blocks(partner: Tensor, before: Tensor, after: Tensor) -> bool:
    if partner.num_elements == 1:
        return True
    counts = partner.shape
    if len(counts) == 2 * len(before.shape) and set(counts[1::2]) == {1}:
        counts = counts[::2]
    if not len(counts) == len(before.shape) == len(after.shape) > 1:
        return False
    if not before.dtype.startswith("F8") and counts[-2] == before.shape[-2]:
        return False  # groups of packed or integer elements are whole
    lengths = zip(counts, before.shape, after.shape, strict=True)
    return all(
        count == old == new or any(count == _blocks(old, size) == _blocks(new, size) for size in BLOCKS)
        for count, old, new in lengths
    )


def _blocks(length: int, size: int) -> int:
    """How many blocks of a size cover a length."""
    return -(-length // size)


def _covers_in_tiles(partner: Tensor, before: Tensor, after: Tensor) -> bool:
    return partner.dtype == "F8_E8M0" and all(
        len(one.shape) == 2
        and one.dtype.startswith("F8")
        and partner.num_elements == _tiled(one.shape[0], 128) * _tiled(_blocks(one.shape[1], 32), 4)
        for one in (before, after)
    )


def _tiled(length: int, side: int) -> int:
    return side * _blocks(length, side)


def _has_as_many_groups(checkpoint: Checkpoint, change: Change) -> bool:
    scale = change.module.get("weight_scale")
    if change.suffix != "weight" or change.after is None or scale is None:
        return False
    sizes = (size for size in values_of(checkpoint.documents, "group_size") if isinstance(size, int))
    lengths = (change.before.shape[-1], change.after.shape[-1])
    return any({_blocks(length, size) for length in lengths} == {scale.shape[-1]} for size in sizes)


def _is_sound_run(checkpoint: Checkpoint, module: Mapping[str, Tensor]) -> bool:
    """Whether a scale divides SDNQ's run of packed elements in the groups that the config's size gives."""
    documents = checkpoint.documents
    usual = all(says(documents, key, False) for key in ("use_codebook", "use_quantized_matmul", "use_svd"))
    sizes, bits = set(values_of(documents, "group_size")), _packed_bits(documents)
    weight, scale = module.get("weight"), module.get("scale")
    if not usual or len(sizes) != 1 or bits is None or weight is None or scale is None:
        return False
    if len(scale.shape) < 2:
        return False
    rows, *groups, _ = scale.shape
    columns, rest = divmod(8 * weight.length // bits, rows)
    return rest == 0 and math.prod(groups) == _groups_of_sdnq(columns, sizes.pop() or 4 * 2**bits)


def _packed_bits(documents: Mapping[str, Any]) -> int | None:
    """The bits of an element in SDNQ's config, where bytes hold several or parts."""
    found = [re.search(r"\d+", str(name)) for name in values_of(documents, "weights_dtype")]
    widths = {int(one[0]) for one in found if one is not None}
    return min(widths) if len(widths) == 1 and widths < set(range(1, 8)) else None


def _groups_of_sdnq(columns: int, size: int) -> int:
    """How many groups SDNQ makes of a row: fewer until they are alike, and one where none are."""
    if size >= columns:
        return 1
    groups = columns // size
    while groups > 1 and groups * size != columns:
        groups -= 1
        size = columns // groups
    return groups
