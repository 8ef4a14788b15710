"""Changed dtypes that headers can't show: tools write the tensor in either."""

from __future__ import annotations

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Change
from tools.breaking.documents import values_of

FLOATS = frozenset({"BF16", "F16", "F32"})


def is_cast(broken: Break) -> bool:
    """Whether a float becomes another float of at least 16 bits."""
    return _is_of_dtype(broken) and all(
        change.after is not None and {change.before.dtype, change.after.dtype} <= FLOATS
        for change in broken.changes
    )


def holds_powers_of_two(broken: Break) -> bool:
    """Whether scales of exponents alone become F32."""
    return _is_of_dtype(broken) and all(_becomes(change, "F8_E8M0", "F32") for change in broken.changes)


def is_unconverted(broken: Break) -> bool:
    """Whether an FP8 weight of transformers becomes BF16 beside its scale.

    Configs of transformers have a key "dequantize". It writes such a pair for a module that it makes a
    scale for and does not convert.
    """
    written_so = any(True for _ in values_of(broken.broken.documents, "dequantize"))
    return written_so and _is_of_dtype(broken) and all(map(_stays_beside_its_scale, broken.changes))


def holds_pairs(broken: Break) -> bool:
    """Whether bytes of two 4-bit elements, with an e8m0 scale for 32, change between I8 and U8."""
    return _is_of_dtype(broken) and all(
        change.after is not None
        and {change.before.dtype, change.after.dtype} == {"I8", "U8"}
        and change.suffix == "weight"
        and _has_a_scale_for_32(change)
        for change in broken.changes
    )


def is_a_width(broken: Break) -> bool:
    """Whether HQQ's width of an element becomes F32."""
    return _is_of_dtype(broken) and all(
        change.suffix == "nbits" and "W_q" in change.module and _becomes(change, "I32", "F32")
        for change in broken.changes
    )


def _is_of_dtype(broken: Break) -> bool:
    return broken.kind == kinds.DTYPE


def _becomes(change: Change, before: str, after: str) -> bool:
    return change.after is not None and (change.before.dtype, change.after.dtype) == (before, after)


def _has_a_scale_for_32(change: Change) -> bool:
    scale, shape = change.module.get("scale"), change.before.shape
    return scale is not None and scale[:2] == ("F8_E8M0", (*shape[:-1], 2 * shape[-1] // 32))


def _stays_beside_its_scale(change: Change) -> bool:
    return f"{change.suffix}_scale_inv" in change.module and _becomes(change, "F8_E4M3", "BF16")
