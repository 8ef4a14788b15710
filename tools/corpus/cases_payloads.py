"""Rules data-length, data-align, data-range and data-overlap: where the payloads are."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_types import WRAPS_TO_1, foreign
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-payload")
def payload() -> File:
    """A payload of 16 bytes with unused bytes behind it, which may hold anything."""
    return File(Tensor("w", "u8", (16,)), slack=48)


# data-length


@broken("kiln-v2-data-length", "LENGTH", payload, Fault("data-length", 0))
def data_length(file: File) -> None:
    """len_data is 15 for 16 elements of one byte."""
    file.set(0, len_data=15)


@broken("kiln-v2-data-length-over", "LENGTH", payload, Fault("data-length", 0))
def data_length_over(file: File) -> None:
    """len_data is 17 for 16 elements of one byte."""
    file.set(0, len_data=17)


@broken("kiln-v2-data-length-0", "LENGTH", payload, Fault("data-length", 0))
def data_length_zero(file: File) -> None:
    """len_data is 0 for 16 elements."""
    file.set(0, len_data=0)


@broken("kiln-v2-data-length-high", "LENGTH", payload, Fault("data-length", 0), Fault("data-range", 0))
def data_length_high(file: File) -> None:
    """len_data is right in its low 32 bits only, so that the payload leaves the file too."""
    file.set(0, len_data=2**32 + 16)


@broken("kiln-v2-data-length-element", "LENGTH", payload, Fault("data-length", 0))
def data_length_element(file: File) -> None:
    """17 elements where the length is right for 16."""
    file.set(0, shape=(17,))


ODD = (
    ("e2m1", 1, 1),
    ("e2m1", 31, 16),
    ("i4", 33, 17),
    ("e2m3", 1, 1),
    ("e2m3", 2, 2),
    ("e2m3", 3, 3),
    ("e2m3", 4, 3),
    ("e3m2", 5, 4),
)
"""Counts of 4-bit and 6-bit elements, and the bytes that hold them."""

for name, count, due in ODD:

    @sound(f"kiln-v2-odd-{name}-{count}", name=name, count=count, due=due)
    def odd(name: str, count: int, due: int) -> File:
        """{count} × {name} takes {due} bytes; bits behind the last element are set and mean nothing."""
        return File(Tensor("w", name, (count,), payload=bytes([0x5A] * (due - 1) + [0xFF])), slack=1)

    for part, change in (("short", -1), ("over", 1)):

        @broken(
            f"kiln-v2-odd-{name}-{count}-{part}",
            "LENGTH",
            odd,
            Fault("data-length", 0),
            name=name,
            count=count,
            due=due,
            wrong=due + change,
        )
        def odd_wrong(file: File, name: str, count: int, due: int, wrong: int) -> None:
            """{count} × {name} takes {due} bytes, and len_data is {wrong}."""
            file.set(0, len_data=wrong)


@broken("kiln-v2-foreign-short", "LENGTH", foreign, Fault("data-length", 0))
def foreign_short(file: File) -> None:
    """Two blocks of 18 bytes, and len_data is 35."""
    file.set(0, len_data=35)


@broken("kiln-v2-foreign-long", "LENGTH", foreign, Fault("data-length", 0))
def foreign_long(file: File) -> None:
    """Two blocks of 18 bytes, and len_data is 37; the file has the byte."""
    file.set(0, len_data=37).append(b"\xaa").honest()


@sound("kiln-v2-no-elements")
def no_elements() -> File:
    """No elements and no bytes."""
    return File(Tensor("w", "u8", (0, 0)))


@broken("kiln-v2-no-elements-over", "LENGTH", payload, Fault("data-length", 0))
def no_elements_over(file: File) -> None:
    """No elements, and len_data is 16."""
    file.set(0, shape=(0,))


@broken("kiln-v2-wrap-32", "LENGTH", payload, Fault("data-length", 0))
def wrap_32(file: File) -> None:
    """2^32 + 16 elements of one byte, which modulo 2^32 take 16 bytes."""
    file.set(0, shape=(2**32 + 16,))


EMPTY_WRAPS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, int], str]] = {
    "product-32": ("u8", (0, 2**16), (2**16, 2**16), (0, 0), "2^16 · 2^16 elements are 0 modulo 2^32"),
    "product-64": ("u8", (0, 2**32), (2**32, 2**32), (0, 0), "2^32 · 2^32 elements are 0 modulo 2^64"),
    "bits-32": ("u8", (0,), (2**29,), (0, 0), "2^29 elements have 2^32 bits, 0 modulo 2^32"),
    "bits-64": ("e2m1", (0,), (2**62,), (0, 0), "2^62 elements have 2^64 bits, 0 modulo 2^64"),
    "bytes-64": ("u64", (0,), (2**61,), (0, 0), "2^61 elements have 2^64 bytes, 0 modulo 2^64"),
    "blocks-32": ("foreign", (0,), (2,), (1, 2**31), "two blocks of 2^31 bytes are 0 modulo 2^32"),
    "blocks-64": ("foreign", (0,), (2**33,), (1, 2**31), "2^33 blocks of 2^31 bytes are 0 modulo 2^64"),
}
"""Shapes whose due length is 0 only modulo a power of two: dtype, sound shape, broken shape, block, why."""

for part, (name, before, after, block, what) in EMPTY_WRAPS.items():

    @sound(f"kiln-v2-unwrapped-{part}", name=name, shape=before, block=block)
    def unwrapped(name: str, shape: tuple[int, ...], block: tuple[int, int]) -> File:
        """{name} of shape {shape}: no elements, so no bytes."""
        return File(Tensor("w", name, shape, block=block))

    @broken(f"kiln-v2-wrap-{part}", "LENGTH", unwrapped, Fault("data-length", 0), shape=after, what=what)
    def wrap(file: File, shape: tuple[int, ...], what: str) -> None:
        """len_data is 0, and {what}."""
        file.set(0, shape=shape)


@sound("kiln-v2-one-by-one")
def one_by_one() -> File:
    """One element of rank 2."""
    return File(Tensor("w", "u8", (1, 1)))


@broken("kiln-v2-wrap-to-1", "LENGTH", one_by_one, Fault("data-length", 0))
def wrap_to_1(file: File) -> None:
    """3 · 12297829382473034411 elements are 2^65 + 1, which modulo 2^64 is the one byte that is there."""
    file.set(0, shape=WRAPS_TO_1)


# data-align


for part, ofs_data, what in (
    ("less", 255, "one byte before"),
    ("", 257, "one byte behind"),
    ("half", 288, "32 bytes behind"),
):

    @broken(
        f"kiln-v2-data-align-{part}".rstrip("-"),
        "ALIGN",
        payload,
        Fault("data-align", 0),
        at=ofs_data,
        what=what,
    )
    def data_align(file: File, at: int, what: str) -> None:
        """The payload starts {what} a multiple of 64."""
        file.set(0, ofs_data=at)


@broken("kiln-v2-data-align-empty", "ALIGN", no_elements, Fault("data-align", 0))
def data_align_empty(file: File) -> None:
    """A payload of no bytes starts on a multiple of 64 as well."""
    file.set(0, ofs_data=255)


# data-range


@broken("kiln-v2-data-range", "LENGTH", payload, Fault("data-range", 0))
def data_range(file: File) -> None:
    """The payload starts where the file ends."""
    file.set(0, ofs_data=320)


@sound("kiln-v2-payload-at-end")
def payload_at_end() -> File:
    """A payload whose last byte is the file's last."""
    return File(Tensor("w", "u8", (16,)))


@broken("kiln-v2-data-range-end", "LENGTH", payload_at_end, Fault("data-range", 0))
def data_range_end(file: File) -> None:
    """The payload is right for its shape and ends one byte behind the file."""
    file.set(0, shape=(17,), len_data=17)


@sound("kiln-v2-payload-behind-names")
def payload_behind_names() -> File:
    """64 + 128 + 64 bytes of header, directory and names: the payload follows at once."""
    return File(Tensor("n" * 64, "u8", (16,)))


@broken("kiln-v2-data-range-names", "LENGTH", payload_behind_names, Fault("data-range", 0))
def data_range_names(file: File) -> None:
    """The name pool is one byte longer, so that the payload starts in it."""
    file.head(len_names=65)


@broken("kiln-v2-data-range-pool", "LENGTH", payload_behind_names, Fault("data-range", 0))
def data_range_pool(file: File) -> None:
    """The payload is the first 16 bytes of the name pool."""
    file.set(0, ofs_data=192)


@broken("kiln-v2-data-range-0", "LENGTH", payload, Fault("data-range", 0))
def data_range_zero(file: File) -> None:
    """The payload is the header: ofs_data is 0."""
    file.set(0, ofs_data=0)


@sound("kiln-v2-payload-64")
def payload_64() -> File:
    """A payload of 64 bytes."""
    return File(Tensor("w", "u8", (64,)))


@broken("kiln-v2-data-range-wrap", "LENGTH", payload_64, Fault("data-range", 0))
def data_range_wrap(file: File) -> None:
    """ofs_data + len_data is 2^64, which modulo 2^64 is 0."""
    file.set(0, ofs_data=2**64 - 64)


@broken("kiln-v2-data-range-high", "LENGTH", payload_64, Fault("data-range", 0))
def data_range_high(file: File) -> None:
    """ofs_data is right in its low 32 bits only."""
    file.set(0, ofs_data=2**32 + 256)


@sound("kiln-v2-payload-empty-at-end")
def payload_empty_at_end() -> File:
    """An empty payload that starts where the file ends."""
    return File(Tensor("a", "u8", (64,)), Tensor("b", "u8", (0,)))


@broken("kiln-v2-data-range-empty", "LENGTH", payload_empty_at_end, Fault("data-range", 1))
def data_range_empty(file: File) -> None:
    """An empty payload that starts 64 bytes behind the file's end."""
    file.set(1, ofs_data=file.size + 64)


@broken("kiln-v2-data-range-empty-0", "LENGTH", payload_empty_at_end, Fault("data-range", 1))
def data_range_empty_zero(file: File) -> None:
    """An empty payload with ofs_data 0: no bytes, and still not behind the names."""
    file.set(1, ofs_data=0)


# data-overlap


@sound("kiln-v2-touching")
def touching() -> File:
    """Two payloads of 64 and 128 bytes that touch: the second starts where the first ends."""
    return File(Tensor("a", "u8", (64,)), Tensor("b", "u8", (128,)))


@sound("kiln-v2-backwards")
def backwards() -> File:
    """The first tensor's payload is behind the second's: payloads may come in any order."""
    file = File(Tensor("a", "u8", (64,)), Tensor("b", "u8", (64,)))
    first, second = (descriptor["ofs_data"] for descriptor in file.descriptors)
    return file.set(0, ofs_data=second).set(1, ofs_data=first)


@sound("kiln-v2-tied")
def tied() -> File:
    """Tied weights: two tensors share one whole payload."""
    return File(Tensor("in", "u8", (64,)), Tensor("out", "u8", (64,), payload=b"")).place(1, like=0)


@sound("kiln-v2-tied-types")
def tied_types() -> File:
    """Two tensors share one whole payload and see it differently: 8 × f32 and 4 · 8 bytes."""
    return File(Tensor("in", "f32", (8,)), Tensor("out", "u8", (4, 8), payload=b"")).place(1, like=0)


@sound("kiln-v2-empty-inside")
def empty_inside() -> File:
    """Two empty payloads lie inside a payload of 128 bytes, one at its start: they share no byte."""
    file = File(Tensor("a", "u8", (128,)), Tensor("b", "u8", (0,)), Tensor("c", "u8", (0,)))
    start = file.descriptors[0]["ofs_data"]
    return file.set(1, ofs_data=start).set(2, ofs_data=start + 64)


@broken("kiln-v2-data-overlap", "OVERLAP", touching, Fault("data-overlap", 1))
def data_overlap(file: File) -> None:
    """The second payload starts where the first does and is longer, so they share 64 bytes."""
    file.set(1, ofs_data=file.descriptors[0]["ofs_data"])


@sound("kiln-v2-touching-backwards")
def touching_backwards() -> File:
    """A payload of 128 bytes, then one of 64."""
    return File(Tensor("a", "u8", (128,)), Tensor("b", "u8", (64,)))


@broken("kiln-v2-data-overlap-shorter", "OVERLAP", touching_backwards, Fault("data-overlap", 1))
def data_overlap_shorter(file: File) -> None:
    """Both payloads start together and the second is shorter: the lower index still comes first."""
    file.set(1, ofs_data=file.descriptors[0]["ofs_data"])


@broken("kiln-v2-data-overlap-inside", "OVERLAP", touching_backwards, Fault("data-overlap", 1))
def data_overlap_inside(file: File) -> None:
    """The second payload is the last 64 of the first one's 128 bytes: they end together."""
    file.set(1, ofs_data=file.descriptors[0]["ofs_data"] + 64)


@sound("kiln-v2-payload-65")
def payload_65() -> File:
    """A payload of 65 bytes, the next one at the multiple of 64 behind it."""
    return File(Tensor("a", "u8", (65,)), Tensor("b", "u8", (64,)))


@broken("kiln-v2-data-overlap-byte", "OVERLAP", payload_65, Fault("data-overlap", 1))
def data_overlap_byte(file: File) -> None:
    """Two payloads share one byte."""
    file.set(1, ofs_data=file.descriptors[0]["ofs_data"] + 64)


@broken("kiln-v2-data-overlap-backwards", "OVERLAP", backwards, Fault("data-overlap", 0))
def data_overlap_backwards(file: File) -> None:
    """The payload of tensor 1 comes first and runs into that of tensor 0: the finding is on tensor 0."""
    file.set(1, shape=(65,), len_data=65)


@sound("kiln-v2-three")
def three() -> File:
    """Payloads of 192, 32 and 32 bytes, one behind another."""
    return File(Tensor("a", "u8", (192,)), Tensor("b", "u8", (32,)), Tensor("c", "u8", (32,)))


@broken("kiln-v2-data-overlap-long", "OVERLAP", three, Fault("data-overlap", 1), Fault("data-overlap", 2))
def data_overlap_long(file: File) -> None:
    """Both short payloads lie in the long one, apart: who compares neighbours misses the second."""
    start = file.descriptors[0]["ofs_data"]
    file.set(1, ofs_data=start + 64).set(2, ofs_data=start + 128)


@broken("kiln-v2-data-overlap-tied", "OVERLAP", three, Fault("data-overlap", 1), Fault("data-overlap", 2))
def data_overlap_tied(file: File) -> None:
    """Two tensors share one whole payload, which lies in a third's: each of the two is a finding."""
    start = file.descriptors[0]["ofs_data"]
    file.set(1, ofs_data=start + 64).set(2, ofs_data=start + 64)


@sound("kiln-v2-tied-then-one")
def tied_then_one() -> File:
    """Two tensors share one whole payload of 64 bytes, and a third touches it."""
    file = File(Tensor("a", "u8", (64,)), Tensor("b", "u8", (64,), payload=b""), Tensor("c", "u8", (128,)))
    return file.place(1, like=0)


@broken("kiln-v2-data-overlap-third", "OVERLAP", tied_then_one, Fault("data-overlap", 2))
def data_overlap_third(file: File) -> None:
    """A third payload starts with a shared one and is longer: only the third is a finding."""
    file.set(2, ofs_data=file.descriptors[0]["ofs_data"])


@broken("kiln-v2-data-overlap-unjudged", "LENGTH", touching, Fault("data-range", 1))
def data_overlap_unjudged(file: File) -> None:
    """The second payload leaves the file, so the 64 bytes that it would share are no second finding."""
    file.set(1, shape=(512,), len_data=512, ofs_data=file.descriptors[0]["ofs_data"])
