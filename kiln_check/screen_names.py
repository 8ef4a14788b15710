"""The screen's proof that names are text, and that no two are the same.

Names are looked at in slices of the pool, in the order in which they start.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kiln_check.directory import Part

Column: TypeAlias = "NDArray[Any]"

PIECE = 64
"""Bytes of a name that are hashed at a time: 8 words."""


def unverified_names(pool: Part, ofs_name: Column, len_name: Column, rows: int) -> Column:
    """Indexes of the names that have no bytes, may be no text or may be there twice.

    A slice has so many names at most, and they start within so many times 64 bytes.
    A name that has bytes must lie within the pool.

    Raises OSError when the names can't be read.
    """
    in_order = bool((ofs_name[1:] >= ofs_name[:-1]).all())
    order = None if in_order else np.argsort(ofs_name)
    if order is not None:
        ofs_name, len_name = ofs_name[order], len_name[order]
    hashes = np.empty(len(ofs_name), np.uint64)
    unverified = np.empty(len(ofs_name), np.bool_)
    first = 0
    while first < len(ofs_name):
        start = ofs_name[first : first + rows].astype(np.int64)
        start = start[: np.searchsorted(start, start[0] + rows * PIECE)]
        here = slice(first, first + len(start))
        end = start + len_name[here]
        hashes[here], unverified[here] = _slice(pool, start, end)
        first += len(start)
    unverified |= _repeated(hashes)
    return np.flatnonzero(unverified) if order is None else order[unverified]


def _slice(pool: Part, start: Column, end: Column) -> tuple[Column, Column]:
    """The hashes of names that start after one another, and which of them are not proved to be text."""
    unverified: Column = start == end
    low = min(int(start[0]), len(pool))
    if unverified.any():
        start, end = np.where(unverified, low, start), np.where(unverified, low, end)
    raw = pool.read(low, int(end.max()))
    start, end, window = start - low, end - low, np.frombuffer(raw, np.uint8)
    if raw and (window.min() < 0x20 or window.max() >= 0x7F):
        unverified |= _not_text(raw, window, start, end)
    return _hashes(raw, start, end - start), unverified


def _not_text(raw: bytes, window: Column, start: Column, end: Column) -> Column:
    """Which names may hold a control character, or bytes that are not UTF-8.

    In bytes that are UTF-8 as a whole, a name is UTF-8 if it neither starts nor ends
    inside a character. Where they are not, no byte above 0x7F is taken for proved.
    """
    unverified = (window < 0x20) | (window == 0x7F)
    high = window >= 0x80
    inside_character = np.zeros(len(window) + 1, np.bool_)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        unverified |= high
    else:
        inside_character[:-1] = high & (window < 0xC0)
        unverified[:-1] |= (window[:-1] == 0xC2) & (window[1:] < 0xA0)  # U+0080 to U+009F
    before = np.concatenate(([0], np.cumsum(unverified)))
    not_text: Column = (before[end] != before[start]) | inside_character[start] | inside_character[end]
    return not_text


_KEPT: Column = (np.tri(PIECE + 1, PIECE, -1, np.uint8) * np.uint8(0xFF)).view(f"V{PIECE}").ravel()
"""A mask for the first bytes of a piece, by their number."""

_FACTORS = np.array([pow(0x9E3779B97F4A7C15, 1 + place, 1 << 64) for place in range(9)], np.uint64)
"""Odd numbers without a pattern: one for each word of a piece, and one for the length."""


def _hashes(raw: bytes, start: Column, length: Column) -> Column:
    """64 bits of each name that names of other bytes are not likely to have."""
    pieces: Column = np.ndarray(len(raw) + 1, f"V{PIECE}", raw + bytes(PIECE), strides=(1,))
    hashes: Column = length.astype(np.uint64) * _FACTORS[-1]
    hashes += _piece_hashes(pieces[start], np.minimum(length, PIECE))
    for done in range(PIECE, int(length.max()), PIECE):
        longer = np.flatnonzero(length > done)
        left = np.minimum(length[longer] - done, PIECE)
        hashes[longer] = _mixed(hashes[longer]) * _FACTORS[0]
        hashes[longer] += _piece_hashes(pieces[start[longer] + done], left)
    return hashes


def _piece_hashes(pieces: Column, length: Column) -> Column:
    words = pieces.view(np.uint64).reshape(len(pieces), -1)
    words &= _KEPT[length].view(np.uint64).reshape(words.shape)
    hashes: Column = _mixed(words) @ _FACTORS[:-1]
    return hashes


def _mixed(words: Column) -> Column:
    """Let the high bits tell on the low ones; two words never become one."""
    mixed: Column = words >> np.uint64(32)
    mixed ^= words
    return mixed


def _repeated(hashes: Column) -> Column:
    """Which hashes are there more than once."""
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.isin(hashes, twice)
