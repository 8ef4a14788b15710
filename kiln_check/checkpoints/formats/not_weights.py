"""What lies in the place of weights: a pointer, an error page, an archive, nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kiln_check.constants import LONGEST_HEADER
from kiln_check.generated.kiln_v2_records import MAGIC as KILN_MAGIC
from kiln_check.text import plural, quote

LEN_START = 1024
"""Bytes from which a file is recognised: no pointer of Git LFS or xet is longer."""

GET_AGAIN = "get the file again"
LOG_IN = "a download was refused; check its address and your login, and get the file again"
CONVERT = "convert it to safetensors with the library that wrote it"


class Content(NamedTuple):
    """What a file is, and what to do about it, in words that follow "the file is"."""

    what: str
    remedy: str


_LFS = Content("a Git LFS pointer, not weights", "run `git lfs pull`")
_XET = Content("a xet pointer, not weights", "install git-xet and check the file out again")
_GGML = Content("a GGML file, which came before GGUF", "convert it with the tools of llama.cpp")

_SIGNS: Sequence[tuple[bytes, Content]] = (
    (b"version https://git-lfs", _LFS),
    (b"version https://hawser", _LFS),
    (b"# xet version", _XET),
    (b"PK\3\4", Content("a zip archive, perhaps a PyTorch checkpoint, not weights", CONVERT)),
    (b"\x1f\x8b", Content("compressed by gzip", "decompress it")),
    (b"\x28\xb5\x2f\xfd", Content("compressed by zstd", "decompress it")),
    (b"\xfd7zXZ\0", Content("compressed by xz", "decompress it")),
    (b"BZh", Content("compressed by bzip2", "decompress it")),
    (b"7z\xbc\xaf\x27\x1c", Content("a 7z archive", "take the weights out of it")),
    (b"\x89HDF\r\n\x1a\n", Content("an HDF5 file, perhaps weights of Keras", CONVERT)),
    (b"\x93NUMPY", Content("an array of NumPy", CONVERT)),
    (b"tjgg", _GGML),
    (b"fmgg", _GGML),
    (b"lmgg", _GGML),
    (KILN_MAGIC, Content("a Kiln file", "give it a name that ends with .kiln")),
)
"""What begins with which bytes."""

_PICKLE = re.compile(rb"\x80[\x02-\x05][\x80-\x95}\](cK]", re.DOTALL)
"""Protocol 2 to 5, then the opcode that a checkpoint begins with: of a frame, a container or a number."""

_PAGE = re.compile(rb"<(?:!doctype\s+html|html|head|body|\?xml|error)\b", re.IGNORECASE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def looks_like_safetensors(start: bytes, size: int) -> bool:
    """Whether a file begins with the length of a header that it can hold, and the header with a brace."""
    length = int.from_bytes(start[:8], "little")
    return length <= LONGEST_HEADER and 8 + length <= size and start[8:9] == b"{"


def what_instead(start: bytes, size: int) -> Content | None:
    """What a file is that begins as no format does; None where its first bytes do not tell.

    Args:
        start: its first bytes, LEN_START of them or all.
        size: of the file in bytes.

    """
    if not size:
        return Content("empty", GET_AGAIN)
    if not any(start):
        return Content(_zeros(len(start), size), f"a download was never filled; {GET_AGAIN}")
    for sign, content in _SIGNS:
        if start.startswith(sign):
            return content
    if _PICKLE.match(start):
        return Content("a Python pickle, perhaps a PyTorch checkpoint, not weights", CONVERT)
    return _text(start, size)


def _zeros(seen: int, size: int) -> str:
    zeros = plural(seen, "byte")
    return (
        f"nothing but zeros, {zeros} of them" if seen == size else f"not weights: its first {zeros} are zeros"
    )


def _text(start: bytes, size: int) -> Content | None:
    """A page, JSON or a short text, as servers send in the place of a file."""
    text = start.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if _PAGE.match(text):
        return Content("an HTML or XML page, not weights", LOG_IN)
    shown = _decoded(text)
    if not shown or not all(sign.isprintable() or sign.isspace() for sign in shown):
        return None
    if shown[0] in "{[":
        return Content(f"JSON, not weights: {quote(shown)}", LOG_IN)
    return Content(f"text, not weights: {quote(shown)}", LOG_IN) if size == len(start) else None


def _decoded(text: bytes) -> str | None:
    """The text, without a character that is cut off at its end; None where it is not UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data" and error.start > 0
        return text[: error.start].decode("utf-8") if cut else None
