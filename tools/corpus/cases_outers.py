"""Rules outer-absent to outer-count: the one f32 that scales a whole tensor; and scheme 2's scales."""

from __future__ import annotations

import struct

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_scales import scales
from tools.corpus.cases_types import WRAPS_TO_1
from tools.corpus.layout import NO_AXIS, NO_INDEX, File, Tensor

HALF = struct.pack("<f", 0.5)


@sound("kiln-v2-scales-outer")
def scales_outer() -> File:
    """The block of NVFP4: 16 e2m1 elements, one f8e4m3 scale (1.0), and one f32 outer value (0.5)."""
    return File(
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=2),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("w.outer", "f32", (1,), payload=HALF),
    )


@sound("kiln-v2-outer-first")
def outer_first() -> File:
    """The outer is tensor 0, the scale tensor 1, the quantized one tensor 2."""
    return File(
        Tensor("w.outer", "f32", (1,), payload=HALF),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=0),
    )


# scheme 2 obeys the rules of scheme 1


@broken("kiln-v2-scheme-2-rank", "TYPE", scales_outer, Fault("quant-rank", 0))
def scheme_2_rank(file: File) -> None:
    """Scheme 2 on a tensor of rank 0."""
    file.set(0, rank=0, shape=(), len_data=1)


@broken("kiln-v2-scheme-2-axis", "TYPE", scales_outer, Fault("quant-axis", 0))
def scheme_2_axis(file: File) -> None:
    """Scheme 2 along axis 1 of a tensor that has axis 0 only."""
    file.set(0, quant_axis=1)


@broken("kiln-v2-scheme-2-group", "TYPE", scales_outer, Fault("group-size", 0))
def scheme_2_group(file: File) -> None:
    """Scheme 2 with groups of no elements."""
    file.set(0, group_size=0)


@broken("kiln-v2-scheme-2-index", "TYPE", scales_outer, Fault("scale-index", 0))
def scheme_2_index(file: File) -> None:
    """Scheme 2 with an outer and without a scale: scale_index is 0xFFFFFFFF."""
    file.set(0, scale_index=NO_INDEX)


@broken("kiln-v2-scheme-2-self", "TYPE", scales_outer, Fault("scale-self", 0))
def scheme_2_self(file: File) -> None:
    """A tensor of scheme 2 is its own scale."""
    file.set(0, scale_index=0)


@broken("kiln-v2-scheme-2-count", "TYPE", scales_outer, Fault("scale-count", 0))
def scheme_2_count(file: File) -> None:
    """Scheme 2 with two groups of 8 and one scale: the outer does not count as one."""
    file.set(0, group_size=8)


@broken(
    "kiln-v2-scheme-2-none",
    "TYPE",
    scales_outer,
    Fault("quant-axis", 0),
    Fault("group-size", 0),
    Fault("scale-index", 0),
    Fault("outer-index", 0),
)
def scheme_2_none(file: File) -> None:
    """Scheme 2 with the four values that scheme 0 wants: each is a finding."""
    file.set(0, quant_axis=NO_AXIS, group_size=0, scale_index=NO_INDEX, outer_index=NO_INDEX)


@broken("kiln-v2-scheme-1-to-2", "TYPE", scales, Fault("outer-index", 0))
def scheme_1_to_2(file: File) -> None:
    """The descriptor of scheme 1 with its scheme changed to 2: it lacks an outer."""
    file.set(0, scheme=2)


# outer-absent


@broken("kiln-v2-outer-absent", "TYPE", scales, Fault("outer-absent", 0))
def outer_absent(file: File) -> None:
    """Scheme 1 has no outer, and outer_index is 0xFFFFFFFE, one less than the sentinel."""
    file.set(0, outer_index=NO_INDEX - 1)


@broken("kiln-v2-outer-absent-0", "TYPE", scales, Fault("outer-absent", 0))
def outer_absent_zero(file: File) -> None:
    """Scheme 1 with outer_index 0, the tensor itself, as in a field left at zero."""
    file.set(0, outer_index=0)


@broken("kiln-v2-outer-absent-linked", "TYPE", scales_outer, Fault("outer-absent", 0))
def outer_absent_linked(file: File) -> None:
    """Everything is there for scheme 2, and the scheme says 1."""
    file.set(0, scheme=1)


# outer-index

INDEXES = {
    "": (3, "3 in a directory of three: one behind the last"),
    "fffffffe": (NO_INDEX - 1, "0xFFFFFFFE, one less than the sentinel"),
    "none": (NO_INDEX, "0xFFFFFFFF, which says that there is none"),
    "high": (2**31 + 2, "2^31 + 2, which a signed reader takes for a negative number"),
}
"""Values of outer_index that no directory of three has."""

for part, (index, what) in INDEXES.items():

    @broken(
        f"kiln-v2-outer-index-{part}".rstrip("-"),
        "TYPE",
        scales_outer,
        Fault("outer-index", 0),
        index=index,
        what=what,
    )
    def outer_index(file: File, index: int, what: str) -> None:
        """outer_index is {what}."""
        file.set(0, outer_index=index)


# outer-distinct


@broken("kiln-v2-outer-distinct", "TYPE", scales_outer, Fault("outer-distinct", 0))
def outer_distinct(file: File) -> None:
    """The scale tensor is the outer too; what its dtype and count are is then not judged."""
    file.set(0, outer_index=1)


@broken("kiln-v2-outer-self", "TYPE", scales_outer, Fault("outer-distinct", 0))
def outer_self(file: File) -> None:
    """A tensor is its own outer; that it has a scheme, dtype and count of its own is no further finding."""
    file.set(0, outer_index=0)


@broken("kiln-v2-outer-is-scale", "TYPE", scales_outer, Fault("outer-distinct", 0))
def outer_is_scale(file: File) -> None:
    """The outer is the scale too: an f32 of one element, right as either and wrong as both."""
    file.set(0, scale_index=2)


@broken("kiln-v2-outer-all-self", "TYPE", scales_outer, Fault("scale-self", 0), Fault("outer-distinct", 0))
def outer_all_self(file: File) -> None:
    """A tensor is its own scale and its own outer: a finding for each."""
    file.set(0, scale_index=0, outer_index=0)


# outer-chain


@sound("kiln-v2-quantized-f32")
def quantized_f32() -> File:
    """Tensor 3 is one f32 that has a scale; the outer of tensor 0 is tensor 2, which has none."""
    return File(
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=2),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("w.outer", "f32", (1,), payload=HALF),
        Tensor("v", "f32", (1,), scheme=1, axis=0, group_size=1, scale=1, payload=HALF),
    )


@broken("kiln-v2-outer-chain", "TYPE", quantized_f32, Fault("outer-chain", 0))
def outer_chain(file: File) -> None:
    """The outer is one f32 as it must be, and has a scale itself."""
    file.set(0, outer_index=3)


@broken("kiln-v2-outer-chain-scheme", "TYPE", scales_outer, Fault("scheme", 2), Fault("outer-chain", 0))
def outer_chain_scheme(file: File) -> None:
    """The outer tensor's scheme is 3: unknown, and not 0, so that it is a chain too."""
    file.set(2, scheme=3)


@broken(
    "kiln-v2-outer-chain-all",
    "TYPE",
    quantized_f32,
    Fault("outer-chain", 0),
    Fault("outer-dtype", 0),
    Fault("outer-count", 0),
)
def outer_chain_all(file: File) -> None:
    """The outer has a scale, is u16 and has two elements: three findings, none of which needs another."""
    file.set(0, outer_index=3).set(3, dtype=0x0110, shape=(2,), group_size=2)


@sound("kiln-v2-two-outers")
def two_outers() -> File:
    """Two f32 of one element, both of scheme 2, share a scale and an outer."""
    return File(
        Tensor("v", "f32", (1,), scheme=2, axis=0, group_size=1, scale=2, outer=3, payload=HALF),
        Tensor("u", "f32", (1,), scheme=2, axis=0, group_size=1, scale=2, outer=3, payload=HALF),
        Tensor("scale", "f32", (1,), payload=HALF),
        Tensor("outer", "f32", (1,), payload=HALF),
    )


@broken("kiln-v2-outer-cycle", "TYPE", two_outers, Fault("outer-chain", 0), Fault("outer-chain", 1))
def outer_cycle(file: File) -> None:
    """A cycle of two: each tensor is the other's outer."""
    file.set(0, outer_index=1).set(1, outer_index=0)


@broken(
    "kiln-v2-mixed-cycle",
    "TYPE",
    two_outers,
    Fault("scale-chain", 0),
    Fault("outer-chain", 1),
)
def mixed_cycle(file: File) -> None:
    """A cycle of two through different fields: tensor 1 is the scale of 0, tensor 0 the outer of 1."""
    file.set(0, scale_index=1).set(1, outer_index=0)


@broken("kiln-v2-scheme-2-chain", "TYPE", two_outers, Fault("scale-chain", 0))
def scheme_2_chain(file: File) -> None:
    """A chain of two, both tensors of scheme 2: the scale of tensor 0 has a scale itself."""
    file.set(0, scale_index=1)


# outer-dtype


@broken("kiln-v2-outer-dtype", "TYPE", scales_outer, Fault("outer-dtype", 0))
def outer_dtype(file: File) -> None:
    """The outer is one u32: the right width, the wrong dtype."""
    file.set(2, dtype=0x0120)


@broken("kiln-v2-outer-dtype-swapped", "TYPE", scales_outer, Fault("dtype", 2), Fault("outer-dtype", 0))
def outer_dtype_swapped(file: File) -> None:
    """The outer's dtype is f32 with its bytes swapped: unknown, and not f32."""
    file.set(2, dtype=0x2003)


@sound("kiln-v2-outer-beside")
def outer_beside() -> File:
    """Scheme 2, and beside its outer one element each of f16, bf16, f64 and foreign (4 bytes)."""
    return File(
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=2),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("w.outer", "f32", (1,), payload=HALF),
        Tensor("f16", "f16", (1,)),
        Tensor("bf16", "bf16", (1,)),
        Tensor("f64", "f64", (1,)),
        Tensor("foreign", "foreign", (1,), block=(1, 4)),
    )


for index, name in enumerate(("f16", "bf16", "f64", "foreign"), start=3):

    @broken(
        f"kiln-v2-outer-dtype-{name}",
        "TYPE",
        outer_beside,
        Fault("outer-dtype", 0),
        name=name,
        index=index,
    )
    def outer_dtype_other(file: File, name: str, index: int) -> None:
        """The outer is one {name}; only f32 will do."""
        file.set(0, outer_index=index)


# outer-count

for part, shape in {"scalar": (), "three-ones": (1, 1, 1), "eight-ones": (1,) * 8}.items():

    @sound(f"kiln-v2-outer-{part}", shape=shape)
    def outer_shape(shape: tuple[int, ...]) -> File:
        """The outer has the shape {shape}: one element."""
        return File(
            Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=2),
            Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
            Tensor("w.outer", "f32", shape, payload=HALF),
            slack=4,
        )

    if part == "three-ones":
        outer_three_ones = outer_shape


@broken("kiln-v2-outer-count", "TYPE", scales_outer, Fault("outer-count", 0))
def outer_count(file: File) -> None:
    """The outer has two elements."""
    file.set(2, shape=(2,), len_data=8).append(HALF).honest()


@broken("kiln-v2-outer-count-0", "TYPE", scales_outer, Fault("outer-count", 0))
def outer_count_zero(file: File) -> None:
    """The outer has no elements."""
    file.set(2, shape=(0,), len_data=0)


@broken("kiln-v2-outer-count-1-2-1", "TYPE", outer_three_ones, Fault("outer-count", 0))
def outer_count_two(file: File) -> None:
    """The outer has the shape (1, 2, 1): its first dimension is 1, its count is not."""
    file.set(2, shape=(1, 2, 1), len_data=8)


@broken("kiln-v2-outer-count-0-1-1", "TYPE", outer_three_ones, Fault("outer-count", 0))
def outer_count_none(file: File) -> None:
    """The outer has the shape (0, 1, 1): no elements."""
    file.set(2, shape=(0, 1, 1), len_data=0)


@broken(
    "kiln-v2-outer-count-wrap-32", "LENGTH", scales_outer, Fault("data-length", 2), Fault("outer-count", 0)
)
def outer_count_wrap_32(file: File) -> None:
    """The outer has 2^32 + 1 elements: one, and four bytes, only modulo 2^32."""
    file.set(2, shape=(2**32 + 1,))


@broken(
    "kiln-v2-outer-count-wrap-64",
    "LENGTH",
    outer_three_ones,
    Fault("data-length", 2),
    Fault("outer-count", 0),
)
def outer_count_wrap_64(file: File) -> None:
    """The outer has 2^65 + 1 elements: one, and four bytes, only modulo 2^64."""
    file.set(2, shape=(*WRAPS_TO_1, 1))


# what of an outer must be sound for its count to be judged


@broken("kiln-v2-outer-rank", "TYPE", scales_outer, Fault("rank", 2), Fault("outer-dtype", 0))
def outer_rank(file: File) -> None:
    """The outer's rank is 9, so that it has no count to judge; its dtype, u32, needs no rank."""
    file.set(2, rank=9, dtype=0x0120)


@broken("kiln-v2-outer-tail", "TYPE", scales_outer, Fault("shape-tail", 2, entry=1))
def outer_tail(file: File) -> None:
    """The outer's shape contradicts its rank, so that its count, two, is not judged."""
    file.set(2, shape=(2, 1))


@broken("kiln-v2-outer-unjudged", "TYPE", scales_outer, Fault("group-size", 0), Fault("outer-count", 0))
def outer_unjudged(file: File) -> None:
    """A wrong group size stops the count of the scale, not that of the outer."""
    file.set(0, group_size=0).set(2, shape=(2,), len_data=8).append(HALF).honest()


# sharing


@sound("kiln-v2-shared")
def shared() -> File:
    """Two tensors share their scale and their outer; a third, of scheme 1, shares the scale."""
    return File(
        Tensor("q", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=3, outer=4),
        Tensor("k", "e2m1", (2, 8), scheme=2, axis=0, group_size=2, scale=5, outer=4),
        Tensor("v", "i8", (5,), scheme=1, axis=0, group_size=8, scale=3),
        Tensor("scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("outer", "f32", (1,), payload=HALF),
        Tensor("scales", "f8e4m3", (8,)),
    )


@broken("kiln-v2-shared-count", "TYPE", shared, Fault("scale-count", 0), Fault("scale-count", 2))
def shared_count(file: File) -> None:
    """The shared scale has no element: a finding on each tensor that needs it, none on the scale."""
    file.set(3, shape=(0,), len_data=0)


@broken("kiln-v2-shared-outer", "TYPE", shared, Fault("outer-dtype", 0), Fault("outer-dtype", 1))
def shared_outer(file: File) -> None:
    """The shared outer is i32: a finding on each tensor that points at it."""
    file.set(4, dtype=0x0220)


@sound("kiln-v2-scale-and-outer")
def scale_and_outer() -> File:
    """One f32 is the scale of tensor 0 and the outer of tensor 1: no rule minds."""
    return File(
        Tensor("v", "i8", (4,), scheme=1, axis=0, group_size=4, scale=3),
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=2, outer=3),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("both", "f32", (1,), payload=HALF),
    )


@broken("kiln-v2-scale-and-outer-count", "TYPE", scale_and_outer, Fault("scale-count", 0))
def scale_and_outer_count(file: File) -> None:
    """One f32 is the scale of a tensor in two groups and somebody's outer: one too few, exactly enough."""
    file.set(0, group_size=2)


@broken("kiln-v2-scale-and-outer-over", "TYPE", scale_and_outer, Fault("outer-count", 1))
def scale_and_outer_over(file: File) -> None:
    """Two f32 are the scales of two groups and somebody's outer: exactly enough, one too many."""
    file.set(0, group_size=2).set(3, shape=(2,), len_data=8).append(HALF).honest()


@sound("kiln-v2-swapped-roles")
def swapped_roles() -> File:
    """Two f32 are scale and outer of one tensor, and the other way round of another."""
    return File(
        Tensor("v", "i8", (4,), scheme=2, axis=0, group_size=4, scale=2, outer=3),
        Tensor("w", "i8", (4,), scheme=2, axis=0, group_size=4, scale=3, outer=2),
        Tensor("a", "f32", (1,), payload=HALF),
        Tensor("b", "f32", (1,), payload=HALF),
    )


@sound("kiln-v2-tied-scales")
def tied_scales() -> File:
    """Scale and outer are two tensors that share one payload: the indexes differ, and that is what counts."""
    file = File(
        Tensor("w", "i8", (4,), scheme=2, axis=0, group_size=4, scale=1, outer=2),
        Tensor("a", "f32", (1,), payload=HALF),
        Tensor("b", "f32", (1,), payload=b""),
    )
    return file.place(2, like=1)
