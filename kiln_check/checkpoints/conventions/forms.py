"""How tools store quantized weights: a small function for each convention.

Each takes a pair that the names make, looks at dtypes, shapes and what a config
says, and links the two or gives the reason why they stay apart. `FORMS` says which
names make a pair, and which function looks at it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Set
from math import prod
from typing import NamedTuple, TypeVar

from kiln_check.checkpoints.config import COMPRESSED_TENSORS, MLX, MODELOPT, Hint
from kiln_check.checkpoints.conventions.pairs import (
    ACTIVATION_ORDER,
    BLOCKS,
    IN_UNREAD_FILES,
    ONE_SCALE,
    PART_WORDS,
    PER_EXPERT,
    SWIZZLED,
    UNKNOWN,
    ZERO_POINTS,
    Outcome,
    Pair,
    doubled,
    grouped,
    own_order,
)
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.links import Link, Unlinked
from kiln_check.report import Finding
from kiln_check.text import plural, quote

MX_GROUP, NV_GROUP = 32, 16
"""Elements that share a scale in the MX formats and in NVFP4."""

USUAL_BLOCK = (128, 128)

BLOCK_SIZES = (128, 64, 32, 16, 256, 512)
"""Rows, and columns, of square blocks that a scale's shape is tried against; the usual first."""

E8M0_SOURCE_DTYPES = ("U8", "F8_E8M0")
"""What an e8m0 scale is called on disk."""

E4M3_SOURCE_DTYPES = ("F8_E4M3",)

FLOATS = ("F16", "BF16", "F32", "F8_E8M0", "F8_E4M3", "F8_E5M2")
"""Dtypes of scales by channel and by group."""

EIGHT_BITS = ("F8_E4M3", "F8_E5M2", "I8")
WORD_BITS = 32

NVFP4_PACKED, MXFP4_PACKED = "nvfp4-pack-quantized", "mxfp4-pack-quantized"


def compressed_packed(pair: Pair) -> Outcome:
    """compressed-tensors, packed: X.weight_packed with X.weight_scale.

    U8 holds two e2m1 a byte, the even one low: nvfp4 with f8e4m3 scales and an outer
    divisor, or mxfp4 with e8m0 scales. I32 holds integers, low bits first.
    """
    if pair.weight.source_dtype == "I32":
        return _packed_words(pair)
    shape = doubled(pair.weight.shape)
    if pair.weight.source_dtype != "U8" or not shape:
        return _unknown(pair)
    declared = {hint.format for hint in pair.of_method(COMPRESSED_TENSORS)} & {NVFP4_PACKED, MXFP4_PACKED}
    if pair.scale.source_dtype in E4M3_SOURCE_DTYPES and declared != {MXFP4_PACKED}:
        return _with_outer(pair, f"{COMPRESSED_TENSORS} {NVFP4_PACKED}", shape, ".weight_global_scale")
    if pair.scale.source_dtype in E8M0_SOURCE_DTYPES and declared != {NVFP4_PACKED}:
        return pair.link(f"{COMPRESSED_TENSORS} {MXFP4_PACKED}", "e2m1", shape, MX_GROUP, "e8m0")
    if declared == {NVFP4_PACKED}:
        return pair.wrong_dtype(NVFP4_PACKED, *E4M3_SOURCE_DTYPES)
    return (
        pair.wrong_dtype(MXFP4_PACKED, *E8M0_SOURCE_DTYPES) if declared == {MXFP4_PACKED} else _unknown(pair)
    )


def _with_outer(pair: Pair, convention: str, shape: tuple[int, ...], suffix: str) -> Outcome:
    """NVFP4: groups of 16 with f8e4m3 scales, and one f32 over them."""
    outer = pair.sibling(suffix)
    name = pair.base + suffix
    if outer is None:
        if pair.is_in_unread_files(suffix):
            return pair.unlinked(IN_UNREAD_FILES, f"{quote(name)} is")
        return pair.missing("outer scale", name)
    if outer.num_elements > 1:
        return _many_outers(pair, outer, shape)
    if outer.type.dtype != "f32":
        return pair.unlinked(UNKNOWN, f"the outer scale {quote(name)} is {outer.source_dtype}, not F32")
    return pair.link(convention, "e2m1", shape, NV_GROUP, outer=outer)


def _many_outers(pair: Pair, outer: SourceTensor, shape: tuple[int, ...]) -> Unlinked:
    """Outer scales for the matrices of a stack: one or a few for each."""
    experts = shape[:-2]
    detail = f"{quote(outer.name)} has {outer.num_elements} elements"
    if experts and (outer.shape[: len(experts)] == experts or outer.num_elements == prod(experts)):
        return pair.unlinked(PER_EXPERT, detail, *_expected_groups(pair, shape, NV_GROUP))
    matrices = plural(prod(experts), "outer scale")
    message = f"{quote(pair.weight.name)} ({pair.weight.text()}) needs {matrices}; {detail}"
    return Unlinked(pair.weight.name, UNKNOWN, detail, pair.fault("scale-shape", message, outer))


def _packed_words(pair: Pair) -> Outcome:
    """Integers in 32-bit words, low bits first, offset by half their range and so unsigned.

    The row's length stands in X.weight_shape; rows that end within a word have bits
    that are no element. Zero points and g_idx have no place in Kiln.
    """
    hints = pair.of_method(COMPRESSED_TENSORS)
    shape = _weight_shape(pair)
    bits = _bits(pair, hints, shape)
    unfit = _without_shape(pair, hints) if shape is None else _unfit_words(pair, shape, bits)
    if unfit is None or unfit.finding is None:
        unfit = _zero_points(pair, hints, shape) or _activation_order(pair, hints, shape) or unfit
    if shape is None or unfit is not None:
        return unfit
    group_size = _group_size(pair, shape, hints)
    per_word = WORD_BITS // bits
    if shape[-1] % per_word:
        detail = f"{shape[-1]} elements in {pair.weight.shape[-1]} words of {per_word}"
        return pair.unlinked(PART_WORDS, detail, *_expected_groups(pair, shape, group_size))
    if group_size is None:
        return pair.unlinked(UNKNOWN, f"{pair.scale.text()} gives no group size for rows of {shape[-1]}")
    return _link_floats(pair, f"{COMPRESSED_TENSORS} pack-quantized int{bits}", f"u{bits}", shape, group_size)


def _bits(pair: Pair, hints: tuple[Hint, ...], shape: tuple[int, ...] | None) -> int:
    """The width of an integer in the words, by the config, or by how many words a row has."""
    declared = _only({hint.bits for hint in hints})
    if declared is not None or shape is None:
        return declared or 4
    words = pair.weight.shape[-1:]
    return next((bits for bits in (4, 8) if words == (-(-shape[-1] * bits // WORD_BITS),)), 4)


def _unfit_words(pair: Pair, shape: tuple[int, ...], bits: int) -> Unlinked | None:
    """Why words can't hold elements of that shape and width; None where they can."""
    if bits not in (4, 8):
        return pair.unlinked(UNKNOWN, f"{bits}-bit codes in 32-bit words")
    words = pair.weight.shape
    per_word = WORD_BITS // bits
    expected = (*shape[:-1], -(-shape[-1] // per_word))
    if expected == words:
        return None
    message = (
        f"{quote(pair.weight.name)} has the shape {list(words)}; {quote(pair.base + '.weight_shape')} "
        f"says {list(shape)}, which takes {list(expected)}"
    )
    working = f"ceil({shape[-1]} / {per_word}) = {expected[-1]}"
    fault = pair.fault("packed-shape", message, pair.weight, working)
    return Unlinked(pair.weight.name, UNKNOWN, "its words don't fit its weight_shape", fault)


def _without_shape(pair: Pair, hints: tuple[Hint, ...]) -> Unlinked:
    """Packed words without a weight_shape that can be read: a fault, if the config names the convention."""
    name = pair.base + ".weight_shape"
    if pair.is_in_unread_files(".weight_shape"):
        return pair.unlinked(IN_UNREAD_FILES, f"{quote(name)} is")
    found = pair.sibling(".weight_shape")
    if found is None:
        detail = f"there is no {quote(name)} to go by"
    else:
        rank = plural(len(pair.weight.shape), "dimension")
        detail = f"{quote(name)} ({found.text()}) holds no shape of {rank}"
    if not any(hint.format in (None, "pack-quantized") for hint in hints):
        return pair.unlinked(UNKNOWN, detail)
    message = f"{quote(pair.weight.name)} ({pair.weight.text()}) is packed, and {detail}"
    fault = pair.fault("packed-shape", message, found or pair.weight)
    return Unlinked(pair.weight.name, UNKNOWN, detail, fault)


def _link_floats(
    pair: Pair, convention: str, dtype: str, shape: tuple[int, ...], group_size: int
) -> Link | Unlinked:
    """Link a scale that has a float dtype of its own."""
    if pair.scale.source_dtype not in FLOATS:
        return pair.unlinked(UNKNOWN, f"{quote(pair.scale.name)} is {pair.scale.source_dtype}, no float")
    return pair.link(convention, dtype, shape, group_size)


def _weight_shape(pair: Pair) -> tuple[int, ...] | None:
    """The numbers in X.weight_shape: the one payload that is read."""
    tensor = pair.sibling(".weight_shape")
    rank = len(pair.weight.shape)
    form = None if tensor is None else {"I64": "q", "I32": "i"}.get(tensor.source_dtype)
    if tensor is None or form is None or not rank or tensor.shape != (rank,):
        return None
    raw = pair.payload(tensor)
    if len(raw) != struct.calcsize(form) * rank:
        return None
    shape = struct.unpack(f"<{rank}{form}", raw)
    return shape if min(shape) >= 0 else None


def _zero_points(pair: Pair, hints: tuple[Hint, ...], shape: tuple[int, ...] | None) -> Unlinked | None:
    """Why zero points keep an integer weight from being linked; None where it has none.

    They are bytes in the order of the scales, or packed like the weight, along the rows.

    Args:
        pair: the weight and its scale.
        hints: those of compressed-tensors.
        shape: the weight's in elements, where it is known.

    """
    suffix = ".weight_zero_point"
    name = quote(pair.base + suffix)
    symmetric = {hint.symmetric for hint in hints}
    zeros = pair.sibling(suffix)
    if zeros is None:
        if pair.is_in_unread_files(suffix, ruled_out=symmetric == {True}):
            return pair.unlinked(IN_UNREAD_FILES, f"{name} is")
        if symmetric == {False}:
            return pair.missing("zero points", pair.base + suffix)
        detail = f"the config gives them to some weights; there is no {name}"
        return pair.unlinked(ZERO_POINTS, detail) if False in symmetric else None
    group_size = None if shape is None else _group_size(pair, shape, hints)
    if not shape or not group_size:
        return pair.unlinked(ZERO_POINTS, name)
    found = pair.unlinked(ZERO_POINTS, name, *_expected_groups(pair, shape, group_size))
    if found.finding is None and len(shape) == 2 and zeros.source_dtype in ("I8", "I32"):
        per_word = max(1, WORD_BITS // (_only({hint.bits for hint in hints}) or 4))
        rows = shape[0] if zeros.source_dtype == "I8" else -(-shape[0] // per_word)
        fault = _count_fault(pair, zeros, rows * grouped(shape, group_size)[-1])
        return found._replace(finding=fault)
    return found


def _activation_order(pair: Pair, hints: tuple[Hint, ...], shape: tuple[int, ...] | None) -> Unlinked | None:
    """Why a g_idx keeps a weight from being linked; None where there is none."""
    suffix = ".weight_g_idx"
    name = quote(pair.base + suffix)
    reordered = {hint.reordered for hint in hints}
    if pair.sibling(suffix) is not None:
        group_size = None if shape is None else _group_size(pair, shape, hints)
        return pair.unlinked(
            ACTIVATION_ORDER, f"{name} says which", *_expected_groups(pair, shape, group_size)
        )
    if pair.is_in_unread_files(suffix, ruled_out=reordered == {False}):
        return pair.unlinked(IN_UNREAD_FILES, f"{name} is")
    return pair.missing("order of its elements", pair.base + suffix) if reordered == {True} else None


def _count_fault(pair: Pair, tensor: SourceTensor, expected: int) -> Finding | None:
    """What is wrong with a tensor beside the scale that has another count."""
    if tensor.num_elements == expected:
        return None
    message = (
        f"{quote(tensor.name)} ({tensor.text()}) has {plural(tensor.num_elements, 'element')}; "
        f"{quote(pair.weight.name)} ({pair.weight.text()}) with {quote(pair.scale.name)} "
        f"({pair.scale.text()}) needs {expected}"
    )
    return pair.fault("scale-shape", message, tensor)


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

    ComfyUI swaps the nibbles and swizzles the scales under the same names. Else two
    e2m1 a byte is ModelOpt's NVFP4 (the outer multiplies) or MXFP4; a whole byte is
    compressed-tensors' mxfp8, float-quantized and int-quantized, or ModelOpt's FP8.
    """
    if pair.sibling(".comfy_quant") is not None:
        return pair.unlinked(SWIZZLED, f"{quote(pair.base + '.comfy_quant')}: an order of ComfyUI's own")
    if pair.weight.source_dtype in ("U8", "F4") and pair.weight.shape:
        return _modelopt_fp4(pair)
    if pair.weight.source_dtype in EIGHT_BITS and pair.weight.shape:
        return _whole_bytes(pair)
    return _unknown(pair)


def _modelopt_fp4(pair: Pair) -> Outcome:
    shape = pair.weight.shape if pair.weight.source_dtype == "F4" else doubled(pair.weight.shape)
    declared = {
        hint.format for hint in pair.of_method(MODELOPT) if hint.format not in (None, "MIXED_PRECISION")
    }
    algorithms = " or ".join(quote(name) for name in sorted(map(str, declared)))
    as_declared = {
        name: not declared or any(name in str(one) for one in declared) for name in ("NVFP4", "MXFP4")
    }
    if pair.scale.source_dtype in E4M3_SOURCE_DTYPES and as_declared["NVFP4"]:
        suffix = "_weight_scale_2" if pair.scale.name.endswith("_weight_scale") else ".weight_scale_2"
        return _with_outer(pair, "ModelOpt NVFP4", shape, suffix)
    if pair.scale.source_dtype in E8M0_SOURCE_DTYPES and as_declared["MXFP4"]:
        return pair.link("ModelOpt MXFP4", "e2m1", shape, MX_GROUP, "e8m0")
    if declared and as_declared["NVFP4"] != as_declared["MXFP4"]:
        return pair.wrong_dtype(
            algorithms, *(E4M3_SOURCE_DTYPES if as_declared["NVFP4"] else E8M0_SOURCE_DTYPES)
        )
    if declared:
        return pair.unlinked(UNKNOWN, f"{algorithms}: {pair.weight.text()} with {pair.scale.text()}")
    return _unknown(pair)


def _whole_bytes(pair: Pair) -> Outcome:
    hints = pair.of_method(COMPRESSED_TENSORS, MODELOPT)
    shape = pair.weight.shape
    kind = "int" if pair.weight.source_dtype == "I8" else "float"
    zeros = _zero_points(pair, hints if kind == "int" else (), shape) if _may_have_zeros(pair, kind) else None
    if zeros is not None:
        return zeros
    by_shape = _strategy(pair)
    strategy = _only({hint.strategy for hint in hints})
    if strategy == "block":
        return _blocks(pair, _block(hints))
    declared = strategy == "channel" or _only({hint.group_size for hint in hints}) not in (None, MX_GROUP)
    if (
        pair.scale.source_dtype in E8M0_SOURCE_DTYPES
        and kind == "float"
        and by_shape not in ("tensor", "block")
        and (pair.scale.source_dtype == "U8" or not declared)
    ):
        return pair.link(f"{COMPRESSED_TENSORS} mxfp8", pair.weight.type.dtype, shape, MX_GROUP, "e8m0")
    if strategy is None:
        strategy = by_shape
    if strategy == "tensor":
        return _one_scale(pair)
    if strategy == "block":
        return _blocks(pair, _block_by_shape(pair) or USUAL_BLOCK)
    group_size = _group_size(pair, shape, hints) if strategy == "group" else shape[-1]
    if strategy not in ("channel", "group") or group_size is None:
        return _unknown(pair)
    how = "per channel" if strategy == "channel" else "in groups"
    name = f"{COMPRESSED_TENSORS} {kind}-quantized, {how}"
    return _link_floats(pair, name, pair.weight.type.dtype, shape, group_size)


def _may_have_zeros(pair: Pair, kind: str) -> bool:
    return kind == "int" or pair.sibling(".weight_zero_point") is not None


def _strategy(pair: Pair) -> str | None:
    """What the scale's shape alone says that it covers."""
    found, shape = pair.scale.shape, pair.weight.shape
    if found in ((*shape[:-1], 1), shape[:-1]):
        return "channel"
    matrices = [length for length in shape[:-2] if length != 1]
    if pair.scale.num_elements == 1 or (matrices and [one for one in found if one != 1] == matrices):
        return "tensor"
    if len(found) != len(shape):
        return None
    if _block_by_shape(pair):
        return "block"
    is_by_column = len(shape) > 1 and found[0] == 1 < shape[0]
    if is_by_column or (len(shape) > 2 and found[:-1] != shape[:-1]):
        return None
    return "channel" if found[-1] == 1 else "group"


def _block_by_shape(pair: Pair) -> tuple[int, int] | None:
    """The square block that the two shapes agree on."""
    found, shape = pair.scale.shape, pair.weight.shape
    if len(shape) < 2:
        return None
    blocks = ((size, size) for size in BLOCK_SIZES)
    return next((block for block in blocks if found == _block_shape(shape, block)), None)


def _one_scale(pair: Pair) -> Unlinked:
    """One scale for a whole matrix: (axis, group size) can't say that."""
    matrices = prod(pair.weight.shape[:-2]) if pair.scale.num_elements != 1 else 1
    return pair.unlinked(ONE_SCALE, f"{pair.scale.text()}", matrices, f"one for each matrix: {matrices}")


def _blocks(pair: Pair, block: tuple[int, int]) -> Unlinked:
    """A scale for a block of rows and columns: Kiln's groups run along one axis."""
    detail = f"{block[0]}×{block[1]}"
    shape = pair.weight.shape
    if len(shape) < 2:
        return pair.unlinked(BLOCKS, detail)
    expected = prod(_block_shape(shape, block))
    others = "".join(f" · {length}" for length in shape[:-2])
    working = f"ceil({shape[-2]} / {block[0]}) · ceil({shape[-1]} / {block[1]}){others} = {expected}"
    return pair.unlinked(BLOCKS, detail, expected, working)


def _block(hints: tuple[Hint, ...]) -> tuple[int, int]:
    return _only({hint.block for hint in hints}) or USUAL_BLOCK


def _block_shape(shape: tuple[int, ...], block: tuple[int, int]) -> tuple[int, ...]:
    return (*shape[:-2], -(-shape[-2] // block[0]), -(-shape[-1] // block[1]))


def weight_scale_inv(pair: Pair) -> Outcome:
    """X.weight with X.weight_scale_inv: DeepSeek's and Qwen's fp8 in 128×128 blocks."""
    if any(hint.block for hint in pair.hints):
        return _blocks(pair, _block(pair.hints))
    if pair.scale.num_elements == 1:
        return _one_scale(pair)
    return _blocks(pair, _block_by_shape(pair) or USUAL_BLOCK)


def gpt_oss(pair: Pair) -> Outcome:
    """gpt-oss MXFP4: X_blocks U8 [..., H/32, 16] with X_scales [..., H/32], which are e8m0.

    The even element is in the low nibble; a block's 16 bytes follow those of the one
    before, so the last two dimensions together are the row.
    """
    found = pair.weight.shape
    if pair.weight.source_dtype != "U8" or len(found) < 2 or found[-1] != MX_GROUP // 2:
        return None
    if pair.scale.source_dtype not in E8M0_SOURCE_DTYPES:
        return _unknown(pair)
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
    The affine mode has biases, which are zero points. Scales that have a float dtype
    are those of a mode with that dtype, and of no other.
    """
    if pair.weight.source_dtype != "U32" or not pair.weight.shape or not pair.scale.shape:
        return None
    declared = {hint.format for hint in pair.of_method(MLX)}
    if pair.sibling(".biases") is not None:
        return _affine(pair)
    never_biased = (
        pair.scale.source_dtype in (*E8M0_SOURCE_DTYPES, *E4M3_SOURCE_DTYPES) and "affine" not in declared
    )
    if pair.is_in_unread_files(".biases", ruled_out=never_biased):
        return pair.unlinked(IN_UNREAD_FILES, f"{quote(pair.base + '.biases')} is")
    if declared == {"affine"}:
        return pair.missing("biases", pair.base + ".biases")
    words, scales = pair.weight.shape[-1], pair.scale.shape[-1]
    fitting = (
        mode
        for mode, row in MLX_MODES.items()
        if words * WORD_BITS == scales * row.bits * row.group_size and _has_dtype(pair.scale, row.scale_dtype)
    )
    name = _only(declared) if declared else next(fitting, "")
    mode = MLX_MODES.get(name or "")
    if mode is None:
        modes = " and ".join(quote(name) for name in sorted(map(str, declared)))
        return pair.unlinked(UNKNOWN, f"the mode {modes}") if declared else _unknown(pair)
    if not _has_dtype(pair.scale, mode.scale_dtype):
        source_dtype = E8M0_SOURCE_DTYPES if mode.scale_dtype == "e8m0" else ("U8", *E4M3_SOURCE_DTYPES)
        return pair.wrong_dtype(f"MLX {name}", *source_dtype)
    shape = (*pair.weight.shape[:-1], words * (WORD_BITS // mode.bits))
    return pair.link(f"MLX {name}", mode.dtype, shape, mode.group_size, mode.scale_dtype)


def _has_dtype(scale: SourceTensor, dtype: str) -> bool:
    """Whether a scale is of a dtype: only plain bytes may be another than they are called."""
    return scale.source_dtype == "U8" or scale.type.dtype == dtype


def _affine(pair: Pair) -> Unlinked:
    """MLX affine: as many biases as scales, in rows of the weight's."""
    biases = pair.tensors[pair.base + ".biases"]
    rows = prod(pair.weight.shape[:-1])
    columns = pair.scale.shape[-1]
    hints = pair.of_method(MLX)
    bits, group_size = _only({hint.bits for hint in hints}), _only({hint.group_size for hint in hints})
    if bits is not None and group_size is not None:
        columns = -(-(pair.weight.shape[-1] * WORD_BITS // bits) // group_size)
    working = f"{rows} · {columns} = {rows * columns}"
    found = pair.unlinked(ZERO_POINTS, quote(biases.name), rows * columns, working)
    return found if found.finding else found._replace(finding=_count_fault(pair, biases, rows * columns))


def deepseek(pair: Pair) -> Outcome:
    """DeepSeek experts in 4 bits: X.weight U8, I8 or F4 with X.scale F8_E8M0 [N, K/32].

    Two e2m1 a byte, the even one low. F8 weights have a scale for each 128×128 block.
    """
    if pair.weight.source_dtype in ("F8_E4M3", "F8_E5M2"):
        return _f8_with_scale(pair)
    if pair.scale.source_dtype != "F8_E8M0" or pair.weight.source_dtype not in ("U8", "I8", "F4"):
        return None
    shape = pair.weight.shape if pair.weight.source_dtype == "F4" else doubled(pair.weight.shape)
    return pair.link("DeepSeek experts, 4-bit", "e2m1", shape, MX_GROUP)


def _f8_with_scale(pair: Pair) -> Unlinked:
    """Blocks, where config, dtype or shape say so: many tools call a scale of any kind X.scale."""
    if any(hint.block for hint in pair.hints):
        return _blocks(pair, _block(pair.hints))
    if pair.scale.num_elements == 1:
        return _one_scale(pair)
    block = _block_by_shape(pair)
    if block is None and pair.scale.source_dtype != "F8_E8M0":
        return _unknown(pair)
    return _blocks(pair, block or USUAL_BLOCK)


def qweight(pair: Pair) -> Outcome:
    """GPTQ and AWQ: X.qweight with X.scales: zero points, and words packed in an order of their own."""
    has_zeros = pair.sibling(".qzeros") is not None
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


def _expected_groups(
    pair: Pair, shape: tuple[int, ...] | None, group_size: int | None
) -> tuple[int | None, str]:
    """How many scales groups along the last axis need, and how that is worked out.

    No number where it can't be told, or where the scale has an order of its own.
    """
    if not shape or not group_size or own_order(pair.scale.shape, grouped(shape, group_size)) is not None:
        return None, ""
    expected = prod(grouped(shape, group_size))
    others = " · ".join(map(str, shape[:-1])) or "1"
    return expected, f"ceil({shape[-1]} / {group_size}) · {others} = {expected}"


def _unknown(pair: Pair) -> Unlinked:
    detail = f"{pair.weight.text()} with {pair.scale.text()}"
    return pair.unlinked(UNKNOWN, detail)


_T = TypeVar("_T")


def _only(values: Set[_T | None]) -> _T | None:
    """The one value, where all agree; else None."""
    return next(iter(values)) if len(values) == 1 else None
