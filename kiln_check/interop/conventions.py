"""How tools store quantized weights: a small function for each convention.

Each takes a pair that the names make, looks at dtypes, shapes and what a config
says, and links the two or gives the reason why they stay apart. `FORMS` says which
names make a pair, and which function looks at it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Set
from typing import NamedTuple, TypeVar

from kiln_check.interop.config import COMPRESSED_TENSORS, MLX, MODELOPT, Hint
from kiln_check.interop.described import SourceTensor
from kiln_check.interop.pairs import (
    ACTIVATION_ORDER,
    BLOCKS,
    ELSEWHERE,
    MISSING,
    ONE_SCALE,
    PART_WORDS,
    PER_EXPERT,
    UNKNOWN,
    ZERO_POINTS,
    Outcome,
    Pair,
    Unlinked,
    doubled,
    grouped,
)
from kiln_check.rules.view import quote

MX_GROUP, NV_GROUP = 32, 16
"""Elements that share a scale in the MX formats and in NVFP4."""

USUAL_BLOCK = (128, 128)

E8M0_CALLED = ("U8", "F8_E8M0")
"""What an e8m0 scale is called on disk."""

EIGHT_BITS = ("F8_E4M3", "F8_E5M2", "I8")
WORD_BITS = 32


def compressed_packed(pair: Pair) -> Outcome:
    """compressed-tensors, packed: X.weight_packed with X.weight_scale.

    U8 holds two e2m1 a byte, the even one low: nvfp4 with f8e4m3 scales and an outer
    divisor, or mxfp4 with e8m0 scales. I32 holds integers, low bits first.
    """
    if pair.weight.called == "I32":
        return _packed_words(pair)
    shape = doubled(pair.weight.shape)
    if pair.weight.called != "U8" or not shape:
        return _unknown(pair)
    if pair.scale.called == "F8_E4M3":
        name = f"{COMPRESSED_TENSORS} nvfp4-pack-quantized"
        return _with_outer(pair, name, shape, ".weight_global_scale")
    if pair.scale.called in E8M0_CALLED:
        name = f"{COMPRESSED_TENSORS} mxfp4-pack-quantized"
        return pair.link(name, "e2m1", shape, MX_GROUP, "e8m0")
    return _unknown(pair)


def _with_outer(pair: Pair, convention: str, shape: tuple[int, ...], suffix: str) -> Outcome:
    """NVFP4: groups of 16 with f8e4m3 scales, and one f32 over them."""
    name = pair.base + suffix
    outer = pair.tensors.get(name)
    if outer is None:
        if name in pair.elsewhere:
            return pair.unlinked(ELSEWHERE, f"{quote(name)} is")
        message = f"{quote(pair.weight.name)} has no outer scale: there is no {quote(name)}"
        fault = pair.fault("scale-missing", message, pair.weight)
        return Unlinked(pair.weight.name, MISSING, f"there is no {quote(name)}", fault)
    if outer.num_elements > 1:
        return pair.unlinked(PER_EXPERT, f"{quote(name)} has {outer.num_elements} elements")
    if outer.type.dtype != "f32":
        return pair.unlinked(UNKNOWN, f"the outer scale {quote(name)} is {outer.called}, not F32")
    return pair.link(convention, "e2m1", shape, NV_GROUP, outer=outer)


def _packed_words(pair: Pair) -> Outcome:
    """Integers in 32-bit words, low bits first, offset by half their range and so unsigned.

    The row's length stands in X.weight_shape; rows that end within a word have bits
    that are no element. Zero points and g_idx have no place in Kiln.
    """
    hints = pair.of_method(COMPRESSED_TENSORS)
    if pair.beside(".weight_zero_point") is not None:
        return _zero_points(pair, hints)
    if pair.beside(".weight_g_idx") is not None:
        return pair.unlinked(ACTIVATION_ORDER, f"{quote(pair.base + '.weight_g_idx')} says which")
    shape = _weight_shape(pair)
    if shape is None:
        return pair.unlinked(UNKNOWN, f"there is no {quote(pair.base + '.weight_shape')} to go by")
    words = pair.weight.shape
    bits = _only({hint.bits for hint in hints}) or next(
        (bits for bits in (4, 8) if words[-1:] == (-(-shape[-1] * bits // WORD_BITS),)), 4
    )
    if bits not in (4, 8):
        return pair.unlinked(UNKNOWN, f"{bits}-bit codes in 32-bit words")
    per_word = WORD_BITS // bits
    due = (*shape[:-1], -(-shape[-1] // per_word))
    if due != words:
        message = (
            f"{quote(pair.weight.name)} has the shape {list(words)}; {quote(pair.base + '.weight_shape')} "
            f"says {list(shape)}, which takes {list(due)}"
        )
        working = f"ceil({shape[-1]} / {per_word}) = {due[-1]}"
        fault = pair.fault("packed-shape", message, pair.weight, working)
        return Unlinked(pair.weight.name, UNKNOWN, "its words don't fit its weight_shape", fault)
    if shape[-1] % per_word:
        return pair.unlinked(PART_WORDS, f"{shape[-1]} elements in {words[-1]} words of {per_word}")
    group_size = _group_size(pair, shape, hints)
    if group_size is None:
        return pair.unlinked(UNKNOWN, f"{pair.scale.text()} gives no group size for rows of {shape[-1]}")
    name = f"{COMPRESSED_TENSORS} pack-quantized int{bits}"
    return pair.link(name, f"u{bits}", shape, group_size)


def _weight_shape(pair: Pair) -> tuple[int, ...] | None:
    """The numbers in X.weight_shape: the one payload that is read."""
    tensor = pair.beside(".weight_shape")
    rank = len(pair.weight.shape)
    if tensor is None or not rank or tensor.called != "I64" or tensor.shape != (rank,):
        return None
    raw = pair.payload(tensor)
    if len(raw) != 8 * rank:
        return None
    shape = struct.unpack(f"<{rank}q", raw)
    return shape if min(shape) >= 0 else None


def _zero_points(pair: Pair, hints: tuple[Hint, ...]) -> Unlinked:
    shape = _weight_shape(pair)
    detail = f"{quote(pair.base + '.weight_zero_point')}"
    group_size = None if shape is None else _group_size(pair, shape, hints)
    if shape is None or group_size is None or not group_size:
        return pair.unlinked(ZERO_POINTS, detail)
    due, working = _groups_due(shape, group_size)
    return pair.unlinked(ZERO_POINTS, detail, due, working)


def _group_size(pair: Pair, shape: tuple[int, ...], hints: tuple[Hint, ...]) -> int | None:
    """The group size that the config gives, or that the scale's last dimension gives."""
    if _only({hint.strategy for hint in hints}) == "channel":
        return shape[-1]
    given = _only({hint.group_size for hint in hints})
    if given is not None:
        return given
    columns = pair.scale.shape[-1] if len(pair.scale.shape) == len(shape) else 0
    return shape[-1] // columns if columns and shape[-1] % columns == 0 else None


def weight_scale(pair: Pair) -> Outcome:
    """X.weight with X.weight_scale: by the weight's dtype.

    Two e2m1 a byte is ModelOpt's NVFP4 (the outer multiplies) or MXFP4; a whole byte
    is compressed-tensors' mxfp8, float-quantized and int-quantized, or ModelOpt's FP8.
    """
    if pair.weight.called in ("U8", "F4"):
        shape = pair.weight.shape if pair.weight.called == "F4" else doubled(pair.weight.shape)
        if pair.scale.called == "F8_E4M3":
            suffix = "_weight_scale_2" if pair.scale.name.endswith("_weight_scale") else ".weight_scale_2"
            return _with_outer(pair, "ModelOpt NVFP4", shape, suffix)
        if pair.scale.called in E8M0_CALLED:
            return pair.link("ModelOpt MXFP4", "e2m1", shape, MX_GROUP, "e8m0")
    if pair.weight.called in EIGHT_BITS and pair.weight.shape:
        return _whole_bytes(pair)
    return _unknown(pair)


def _whole_bytes(pair: Pair) -> Outcome:
    hints = pair.of_method(COMPRESSED_TENSORS, MODELOPT)
    shape = pair.weight.shape
    strategy = _only({hint.strategy for hint in hints})
    kind = "int" if pair.weight.called == "I8" else "float"
    if pair.beside(".weight_zero_point") is not None:
        return pair.unlinked(ZERO_POINTS, quote(pair.base + ".weight_zero_point"))
    if strategy == "block":
        return _blocks(pair, _block(hints))
    if pair.scale.called in E8M0_CALLED and kind == "float":
        return pair.link(f"{COMPRESSED_TENSORS} mxfp8", pair.weight.type.dtype, shape, MX_GROUP, "e8m0")
    if strategy is None:
        strategy = _strategy(pair)
    if strategy == "tensor":
        return _one_scale(pair)
    if strategy == "channel":
        name = f"{COMPRESSED_TENSORS} {kind}-quantized, per channel"
        return pair.link(name, pair.weight.type.dtype, shape, shape[-1])
    if strategy == "block":
        return _blocks(pair, USUAL_BLOCK)
    group_size = _group_size(pair, shape, hints) if strategy == "group" else None
    if group_size is None:
        return _unknown(pair)
    name = f"{COMPRESSED_TENSORS} {kind}-quantized, in groups"
    return pair.link(name, pair.weight.type.dtype, shape, group_size)


def _strategy(pair: Pair) -> str | None:
    """What the scale's shape alone says that it covers."""
    found, shape = pair.scale.shape, pair.weight.shape
    if found in ((*shape[:-1], 1), shape[:-1]):
        return "channel"
    if pair.scale.num_elements == 1:
        return "tensor"
    if len(found) != len(shape):
        return None
    if len(shape) > 1 and found == _block_shape(shape, USUAL_BLOCK):
        return "block"
    return "channel" if found[-1] == 1 else "group"


def _one_scale(pair: Pair) -> Unlinked:
    """One scale for a whole matrix: (axis, group size) can't say that."""
    matrices = 1
    for length in pair.weight.shape[:-2] if pair.scale.num_elements != 1 else ():
        matrices *= length
    return pair.unlinked(ONE_SCALE, f"{pair.scale.text()}", matrices, f"one for each matrix: {matrices}")


def _blocks(pair: Pair, block: tuple[int, int]) -> Unlinked:
    """A scale for a block of rows and columns: Kiln's groups run along one axis."""
    detail = f"{block[0]}×{block[1]}"
    shape = pair.weight.shape
    if len(shape) < 2:
        return pair.unlinked(BLOCKS, detail)
    due = 1
    for length in _block_shape(shape, block):
        due *= length
    others = "".join(f" · {length}" for length in shape[:-2])
    working = f"ceil({shape[-2]} / {block[0]}) · ceil({shape[-1]} / {block[1]}){others} = {due}"
    return pair.unlinked(BLOCKS, detail, due, working)


def _block(hints: tuple[Hint, ...]) -> tuple[int, int]:
    return _only({hint.block for hint in hints}) or USUAL_BLOCK


def _block_shape(shape: tuple[int, ...], block: tuple[int, int]) -> tuple[int, ...]:
    return (*shape[:-2], -(-shape[-2] // block[0]), -(-shape[-1] // block[1]))


def weight_scale_inv(pair: Pair) -> Outcome:
    """X.weight with X.weight_scale_inv: DeepSeek's and Qwen's fp8 in 128×128 blocks."""
    if pair.scale.num_elements == 1 and not any(hint.block for hint in pair.hints):
        return _one_scale(pair)
    return _blocks(pair, _block(pair.hints))


def gpt_oss(pair: Pair) -> Outcome:
    """gpt-oss MXFP4: X_blocks U8 [..., H/32, 16] with X_scales [..., H/32], which are e8m0.

    The even element is in the low nibble; a block's 16 bytes follow those of the one
    before, so the last two dimensions together are the row.
    """
    found = pair.weight.shape
    if pair.weight.called != "U8" or pair.scale.called not in E8M0_CALLED:
        return None
    if len(found) < 2 or found[-1] != MX_GROUP // 2:
        return None
    shape = (*found[:-2], found[-2] * MX_GROUP)
    return pair.link("gpt-oss MXFP4", "e2m1", shape, MX_GROUP, "e8m0")


class _Mode(NamedTuple):
    """A mode of MLX: width of an element, its dtype, the group's size, the scale's dtype."""

    bits: int
    dtype: str
    group_size: int
    scale_dtype: str


MLX_MODES = {
    "mxfp4": _Mode(4, "e2m1", MX_GROUP, "e8m0"),
    "nvfp4": _Mode(4, "e2m1", NV_GROUP, "f8e4m3"),
    "mxfp8": _Mode(8, "f8e4m3", MX_GROUP, "e8m0"),
}


def mlx(pair: Pair) -> Outcome:
    """MLX: X.weight U32 [N, K·b/32], low bits first, with X.scales U8 [N, K/g].

    The mode is the config's, or the one whose group fits the two last dimensions.
    The affine mode has biases, which are zero points.
    """
    if pair.weight.called != "U32" or not pair.weight.shape or not pair.scale.shape:
        return None
    if pair.beside(".biases") is not None:
        return pair.unlinked(ZERO_POINTS, quote(pair.base + ".biases"))
    words, scales = pair.weight.shape[-1], pair.scale.shape[-1]
    given = _only({hint.format for hint in pair.of_method(MLX)})
    fitting = (
        mode for mode, row in MLX_MODES.items() if words * WORD_BITS == scales * row.bits * row.group_size
    )
    name = given if given in MLX_MODES else next(fitting, "")
    mode = MLX_MODES.get(name)
    if mode is None or pair.scale.called not in ("U8", "F8_E8M0", "F8_E4M3"):
        return _unknown(pair)
    shape = (*pair.weight.shape[:-1], words * (WORD_BITS // mode.bits))
    return pair.link(f"MLX {name}", mode.dtype, shape, mode.group_size, mode.scale_dtype)


def deepseek(pair: Pair) -> Outcome:
    """DeepSeek experts in 4 bits: X.weight U8, I8 or F4 with X.scale F8_E8M0 [N, K/32].

    Two e2m1 a byte, the even one low. F8 weights have a scale for each 128×128 block.
    """
    if pair.weight.called in ("F8_E4M3", "F8_E5M2"):
        return _blocks(pair, _block(pair.hints))
    if pair.scale.called != "F8_E8M0" or pair.weight.called not in ("U8", "I8", "F4"):
        return None
    shape = pair.weight.shape if pair.weight.called == "F4" else doubled(pair.weight.shape)
    return pair.link("DeepSeek experts, 4-bit", "e2m1", shape, MX_GROUP)


def qweight(pair: Pair) -> Outcome:
    """GPTQ and AWQ: X.qweight with X.scales: zero points, and words packed in an order of their own."""
    has_zeros = pair.beside(".qzeros") is not None
    return pair.unlinked(ZERO_POINTS if has_zeros else UNKNOWN, "GPTQ or AWQ")


class Form(NamedTuple):
    """Names that make a pair: the same base, then one suffix or the other."""

    weight: str
    scale: str
    judge: Callable[[Pair], Outcome]


FORMS = (
    Form(".weight_packed", ".weight_scale", compressed_packed),
    Form(".weight", ".weight_scale", weight_scale),
    Form("", "_weight_scale", weight_scale),
    Form(".weight", ".weight_scale_inv", weight_scale_inv),
    Form("_blocks", "_scales", gpt_oss),
    Form(".blocks", ".scales", gpt_oss),
    Form(".weight", ".scales", mlx),
    Form(".qweight", ".scales", qweight),
    Form(".weight", ".scale", deepseek),
)

OUTERS = (
    (".weight_global_scale", (".weight_packed", ".weight")),
    (".weight_scale_2", (".weight",)),
)
"""Suffixes of outer scales, and of the weights that they may belong to."""


def scale_is_due(tensor: SourceTensor, suffix: str, hints: tuple[Hint, ...]) -> bool:
    """Whether a convention says that a tensor has a scale, whatever else there is.

    Args:
        tensor: the weight.
        suffix: that of the weight in a form.
        hints: what a config says of the module.

    """
    if suffix == ".weight_packed":
        return True
    if suffix in ("_blocks", ".blocks"):
        return tensor.called == "U8" and len(tensor.shape) > 2 and tensor.shape[-1] == MX_GROUP // 2
    if suffix != ".weight":
        return False
    methods = {hint.method for hint in hints}
    if tensor.called in ("F8_E4M3", "F8_E5M2"):
        return bool(methods & {COMPRESSED_TENSORS, "fp8"})
    if tensor.called == "U8":
        return any(hint.method == MODELOPT and hint.format == "NVFP4" for hint in hints)
    return tensor.called == "U32" and MLX in methods


def _groups_due(shape: tuple[int, ...], group_size: int) -> tuple[int, str]:
    due = 1
    for length in grouped(shape, group_size):
        due *= length
    others = " · ".join(map(str, shape[:-1])) or "1"
    return due, f"ceil({shape[-1]} / {group_size}) · {others} = {due}"


def _unknown(pair: Pair) -> Unlinked:
    detail = f"{pair.weight.text()} with {pair.scale.text()}"
    return pair.unlinked(UNKNOWN, detail)


_T = TypeVar("_T")


def _only(values: Set[_T | None]) -> _T | None:
    """The one value, where all agree; else None."""
    return next(iter(values)) if len(values) == 1 else None
