"""Rules magic, version, file-length and reserved: the header and the file's size."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-plain")
def plain() -> File:
    """One tensor, four bytes, nothing quantized: the smallest file that has every part."""
    return File(Tensor("weight", "u8", (4,)))


@sound("kiln-v2-empty")
def empty() -> File:
    """No tensors and no names: the header is the whole file."""
    return File()


@sound("kiln-v2-empty-pool")
def empty_pool() -> File:
    """No tensors, and a name pool of five bytes that no tensor uses; the file ends with the pool."""
    file = File()
    file.names = b"spare"
    return file.head(len_names=5).honest()


@sound("kiln-v2-trailing")
def trailing() -> File:
    """One byte behind the last payload belongs to nobody, and len_file counts it."""
    return File(Tensor("weight", "u8", (4,)), slack=1)


# magic


@broken("kiln-v2-magic", "MAGIC", plain, Fault("magic"))
def magic(file: File) -> None:
    """The magic's first byte lost its high bit, as in a transfer of seven-bit text."""
    file.patch(0, b"\x09")


@broken("kiln-v2-magic-case", "MAGIC", plain, Fault("magic"))
def magic_case(file: File) -> None:
    """The magic says KILn; letters are bytes here and have no case."""
    file.patch(4, b"n")


@broken("kiln-v2-magic-last", "MAGIC", plain, Fault("magic"))
def magic_last(file: File) -> None:
    """Only the last of the magic's eight bytes is wrong."""
    file.patch(7, b"\x1b")


@broken("kiln-v2-magic-text", "MAGIC", plain, Fault("magic"))
def magic_text(file: File) -> None:
    """The two line ends of the magic were made one kind, as in a transfer as text."""
    file.patch(5, b"\x0a\x0a\x1a")


@broken("kiln-v2-magic-cut", "MAGIC", plain, Fault("magic"))
def magic_cut(file: File) -> None:
    """A file of one byte that is not the magic's first; the field is where it would be."""
    file.patch(0, b"K").cut(1)


@broken("kiln-v2-magic-cut-7", "MAGIC", plain, Fault("magic"))
def magic_cut_7(file: File) -> None:
    """Seven bytes, the last of them not the magic's: MAGIC comes before LENGTH."""
    file.patch(6, b"\x0d").cut(7)


# version


@broken("kiln-v2-version", "VERSION", plain, Fault("version"))
def version(file: File) -> None:
    """Version 3, one more than this layout; nothing behind the version is read."""
    file.head(version=3)


@broken("kiln-v2-version-1", "VERSION", plain, Fault("version"))
def version_1(file: File) -> None:
    """Version 1, one less than this layout."""
    file.head(version=1)


@broken("kiln-v2-version-swapped", "VERSION", plain, Fault("version"))
def version_swapped(file: File) -> None:
    """Version 512: the number 2 written big-endian."""
    file.head(version=0x0200)


# file-length: the file cut at each region's edge


@broken("kiln-v2-cut-0", "LENGTH", plain, Fault("file-length", span=(0, 0)))
def cut_0(file: File) -> None:
    """No bytes at all: no byte contradicts the magic, so it is the length that is wrong."""
    file.cut(0)


for size in (7, 8, 63):

    @broken(f"kiln-v2-cut-{size}", "LENGTH", plain, Fault("file-length", span=(size, 0)), size=size)
    def cut_in_header(file: File, size: int) -> None:
        """The file ends after {size} bytes, before the header is whole; its magic is right so far."""
        file.cut(size)


@broken("kiln-v2-cut-63-version", "LENGTH", plain, Fault("file-length", span=(63, 0)))
def cut_63_version(file: File) -> None:
    """63 bytes with version 3: the version is judged only where the header is whole."""
    file.head(version=3).cut(63)


CUTS = {
    64: "the header",
    128: "half of the directory",
    191: "the directory but one byte",
    192: "the directory",
    197: "the names but one byte",
    198: "the names",
    256: "the gap before the payload",
    259: "the payload but one byte",
}
"""Where the file of kiln-v2-plain can be cut, and what is left."""

for size, left in CUTS.items():

    @broken(f"kiln-v2-cut-{size}", "LENGTH", plain, Fault("file-length"), size=size, left=left)
    def cut(file: File, size: int, left: str) -> None:
        """The file ends after {left} ({size} bytes); len_file, by which payloads are judged, says 260."""
        file.cut(size)

    short = size < 198

    @broken(
        f"kiln-v2-cut-{size}-honest",
        "LENGTH",
        plain,
        Fault("file-length") if short else Fault("data-range", 0),
        size=size,
        left=left,
    )
    def cut_honest(file: File, size: int, left: str) -> None:
        """The file ends after {left} ({size} bytes), and len_file says so."""
        file.cut(size).honest()


@broken("kiln-v2-file-long", "LENGTH", plain, Fault("file-length"))
def file_long(file: File) -> None:
    """The file has one byte more than len_file says."""
    file.append(b"\xaa")


# file-length: what the header says


@broken("kiln-v2-file-length", "LENGTH", plain, Fault("file-length"))
def file_length(file: File) -> None:
    """len_file says one byte more than the file has; every payload is inside all the same."""
    file.head(len_file=file.size + 1)


@broken("kiln-v2-file-length-less", "LENGTH", trailing, Fault("file-length"))
def file_length_less(file: File) -> None:
    """len_file says one byte less than the file has; the byte belongs to no payload."""
    file.head(len_file=file.size - 1)


@broken("kiln-v2-file-length-high", "LENGTH", plain, Fault("file-length"))
def file_length_high(file: File) -> None:
    """len_file is right in its low 32 bits only."""
    file.head(len_file=file.size + 2**32)


@broken("kiln-v2-file-length-most", "LENGTH", plain, Fault("file-length"))
def file_length_most(file: File) -> None:
    """len_file is 2^64 - 1, which a signed reader takes for -1."""
    file.head(len_file=2**64 - 1)


@broken("kiln-v2-file-length-0", "LENGTH", plain, Fault("file-length"), Fault("data-range", 0))
def file_length_0(file: File) -> None:
    """len_file is 0: it is wrong, and by it the payload is outside."""
    file.head(len_file=0)


@broken("kiln-v2-file-length-payload", "LENGTH", plain, Fault("file-length"), Fault("data-range", 0))
def file_length_payload(file: File) -> None:
    """len_file ends one byte before the payload does, although the file is whole."""
    file.head(len_file=file.size - 1)


@broken("kiln-v2-directory-over", "LENGTH", plain, Fault("file-length"))
def directory_over(file: File) -> None:
    """num_tensors is 2 where the file has room for one descriptor and a half."""
    file.head(num_tensors=2)


@broken("kiln-v2-directory-none", "LENGTH", empty, Fault("file-length"))
def directory_none(file: File) -> None:
    """The header promises one tensor and the file ends with it."""
    file.head(num_tensors=1)


@broken("kiln-v2-directory-wrap", "LENGTH", empty, Fault("file-length"))
def directory_wrap(file: File) -> None:
    """2^25 descriptors take 2^32 bytes, which modulo 2^32 is 0."""
    file.head(num_tensors=2**25)


@broken("kiln-v2-directory-most", "LENGTH", empty, Fault("file-length"))
def directory_most(file: File) -> None:
    """A header alone that promises 4294967295 tensors: a reader must not make room for them."""
    file.head(num_tensors=2**32 - 1)


@broken("kiln-v2-names-over", "LENGTH", empty_pool, Fault("file-length"))
def names_over(file: File) -> None:
    """The name pool is one byte longer than the file."""
    file.head(len_names=6)


@broken("kiln-v2-names-wrap", "LENGTH", empty, Fault("file-length"))
def names_wrap(file: File) -> None:
    """64 + len_names is 2^64, which modulo 2^64 is 0."""
    file.head(len_names=2**64 - 64)


@broken("kiln-v2-names-wrap-directory", "LENGTH", plain, Fault("file-length"))
def names_wrap_directory(file: File) -> None:
    """64 + 128 + len_names is 2^64, which modulo 2^64 is 0."""
    file.head(len_names=2**64 - 192)


# reserved


@broken("kiln-v2-reserved", "TYPE", plain, Fault("reserved", field="reserved1"))
def reserved(file: File) -> None:
    """The header's first reserved field is 1."""
    file.head(reserved1=1)


@broken("kiln-v2-reserved-header-first", "TYPE", plain, Fault("reserved", field="reserved2"))
def reserved_header_first(file: File) -> None:
    """The first byte of the header's second reserved field is 1; the finding names all 32 bytes."""
    file.head(reserved2=b"\x01")


@broken("kiln-v2-reserved-header-last", "TYPE", plain, Fault("reserved", field="reserved2"))
def reserved_header_last(file: File) -> None:
    """The last byte of the header is 0x80."""
    file.head(reserved2=bytes(31) + b"\x80")


@broken("kiln-v2-reserved-header-both", "TYPE", plain, Fault("reserved", field="reserved1"))
def reserved_header_both(file: File) -> None:
    """Both reserved fields of the header are not 0: one finding, on the first."""
    file.head(reserved1=0x0100, reserved2=b"\x01")


@broken("kiln-v2-reserved-tensor-first", "TYPE", plain, Fault("reserved", 0, "reserved1"))
def reserved_tensor_first(file: File) -> None:
    """A descriptor's first reserved field is 1."""
    file.set(0, reserved1=1)


@broken("kiln-v2-reserved-tensor-second", "TYPE", plain, Fault("reserved", 0, "reserved2"))
def reserved_tensor_second(file: File) -> None:
    """A descriptor's second reserved field is 2^63: only its highest bit is set."""
    file.set(0, reserved2=2**63)


@broken("kiln-v2-reserved-tensor-both", "TYPE", plain, Fault("reserved", 0, "reserved1"))
def reserved_tensor_both(file: File) -> None:
    """Both reserved fields of a descriptor are not 0: one finding, on the first."""
    file.set(0, reserved1=1, reserved2=1)


@broken(
    "kiln-v2-reserved-all",
    "TYPE",
    plain,
    Fault("reserved", field="reserved2"),
    Fault("reserved", 0, "reserved2"),
)
def reserved_all(file: File) -> None:
    """A reserved field of the header and one of a descriptor are not 0: the header's comes first."""
    file.head(reserved2=b"\x01").set(0, reserved2=1)
