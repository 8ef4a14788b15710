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


def unproven_names(pool: Part, ofs_name: Column, len_name: Column, rows: int) -> Column:
    """Indexes of the names that pass the pool, have no bytes, may be no text or may be there twice.

    A slice has so many names at most, and they start within so many times 64 bytes.

    Raises OSError when the names can't be read.
    """
    end = ofs_name + len_name
    unproved = (len_name == 0) | (end > len(pool))
    inside = np.flatnonzero(~unproved) if unproved.any() else None
    start = ofs_name if inside is None else ofs_name[inside]
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start)
        inside = order if inside is None else inside[order]
        start = start[order]
    end = end if inside is None else end[inside]
    hashes = np.empty(len(start), np.uint64)
    not_text = np.zeros(len(start), np.bool_)
    first = 0
    while first < len(start):
        low = int(start[first])
        last = min(first + rows, int(np.searchsorted(start, low + rows * PIECE)))
        here = slice(first, last)
        raw = pool.read(low, int(end[here].max()))
        window = np.frombuffer(raw, np.uint8)
        hashes[here] = _hashes(window, start[here] - low, end[here] - start[here])
        if window.min() < 0x20 or window.max() >= 0x7F:
            not_text[here] = _not_text(raw, window, start[here] - low, end[here] - low)
        first = last
    not_text |= _repeated(hashes)
    if inside is None:
        return np.flatnonzero(not_text)
    return np.concatenate([np.flatnonzero(unproved), inside[not_text]])


def _not_text(raw: bytes, window: Column, start: Column, end: Column) -> Column:
    """Which names may hold a control character, or bytes that are not UTF-8.

    In bytes that are UTF-8 as a whole, a name is UTF-8 if it neither starts nor ends
    inside a character. Where they are not, no byte above 0x7F is taken for proved.
    """
    unproved = (window < 0x20) | (window == 0x7F)
    high = window >= 0x80
    inside_character = np.zeros(len(window) + 1, np.bool_)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        unproved |= high
    else:
        inside_character[:-1] = high & (window < 0xC0)
        unproved[:-1] |= (window[:-1] == 0xC2) & (window[1:] < 0xA0)  # U+0080 to U+009F
    before = np.concatenate(([0], np.cumsum(unproved)))
    not_text: Column = (before[end] != before[start]) | inside_character[start] | inside_character[end]
    return not_text


_KEPT = (np.tri(PIECE + 1, PIECE, -1, np.uint8) * np.uint8(0xFF)).view(np.uint64)
"""A mask for the first bytes of a piece, by their number."""

_FACTORS = np.array([pow(0x9E3779B97F4A7C15, 1 + place, 1 << 64) for place in range(9)], np.uint64)
"""Odd numbers without a pattern: one for each word of a piece, and one for the length."""


def _hashes(window: Column, start: Column, length: Column) -> Column:
    """64 bits of each name that names of other bytes are not likely to have."""
    padded = np.zeros(len(window) + PIECE, np.uint8)
    padded[: len(window)] = window
    pieces: Column = np.ndarray(len(window) + 1, f"V{PIECE}", padded, strides=(1,))
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
    words &= _KEPT[length]
    hashes: Column = _mixed(words) @ _FACTORS[:-1]
    return hashes


def _mixed(words: Column) -> Column:
    """Let the high bits tell on the low ones; two words never become one."""
    mixed: Column = words ^ (words >> np.uint64(32))
    return mixed


def _repeated(hashes: Column) -> Column:
    """Which hashes are there more than once."""
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.isin(hashes, twice)
