"""Rules scheme to scale-count: a tensor and the sibling that holds its scales."""

from __future__ import annotations

from tools.corpus.cases import Case, Fault, broken, sound
from tools.corpus.cases_file import plain
from tools.corpus.cases_types import WRAPS_TO_1
from tools.corpus.layout import NO_AXIS, NO_INDEX, File, Tensor


@sound("kiln-v2-scales")
def scales() -> File:
    """The block of MXFP4: 32 e2m1 elements in one group, and one e8m0 scale, the byte 127."""
    return File(
        Tensor("w", "e2m1", (32,), scheme=1, axis=0, group_size=32, scale=1),
        Tensor("w.scale", "e8m0", (1,), payload=b"\x7f"),
    )


@sound("kiln-v2-one-element")
def one_element() -> File:
    """A quantized tensor of rank 1, the least that a scheme allows, with a single element."""
    return File(
        Tensor("w", "i8", (1,), scheme=1, axis=0, group_size=1, scale=1),
        Tensor("w.scale", "f32", (1,)),
    )


# scheme, scheme-none


@broken("kiln-v2-scheme", "TYPE", plain, Fault("scheme", 0))
def scheme(file: File) -> None:
    """Scheme 3 is no scheme; what the quantization fields mean is then unknown and not judged."""
    file.set(0, scheme=3)


@broken("kiln-v2-scheme-swapped", "TYPE", scales, Fault("scheme", 0))
def scheme_swapped(file: File) -> None:
    """Scheme 256: the number 1 written big-endian."""
    file.set(0, scheme=256)


@broken("kiln-v2-scheme-most", "TYPE", scales, Fault("scheme", 0))
def scheme_most(file: File) -> None:
    """Scheme 65535, and nothing else that a scheme would be asked for is right: one finding."""
    file.set(0, scheme=65535, quant_axis=7, group_size=0, scale_index=9, outer_index=9)


@broken("kiln-v2-scheme-none", "TYPE", plain, Fault("scheme-none", 0, "group_size"))
def scheme_none(file: File) -> None:
    """A tensor of scheme 0 with a group_size of 1."""
    file.set(0, group_size=1)


@broken("kiln-v2-scheme-none-axis", "TYPE", plain, Fault("scheme-none", 0, "quant_axis"))
def scheme_none_axis(file: File) -> None:
    """quant_axis is 0 and not 0xFFFF in a tensor of scheme 0, as in a descriptor left at zero."""
    file.set(0, quant_axis=0)


@broken("kiln-v2-scheme-none-axis-fffe", "TYPE", plain, Fault("scheme-none", 0, "quant_axis"))
def scheme_none_axis_fffe(file: File) -> None:
    """quant_axis is 0xFFFE, one less than the sentinel, in a tensor of scheme 0."""
    file.set(0, quant_axis=NO_AXIS - 1)


@broken("kiln-v2-scheme-none-scale", "TYPE", plain, Fault("scheme-none", 0, "scale_index"))
def scheme_none_scale(file: File) -> None:
    """scale_index is 0xFFFFFFFE, one less than the sentinel, in a tensor of scheme 0."""
    file.set(0, scale_index=NO_INDEX - 1)


@broken("kiln-v2-scheme-none-outer", "TYPE", plain, Fault("scheme-none", 0, "outer_index"))
def scheme_none_outer(file: File) -> None:
    """outer_index is 0 in a tensor of scheme 0."""
    file.set(0, outer_index=0)


@broken("kiln-v2-scheme-none-zeroed", "TYPE", plain, Fault("scheme-none", 0, "quant_axis"))
def scheme_none_zeroed(file: File) -> None:
    """Axis and both indexes are 0 in a tensor of scheme 0: one finding, on the first at fault."""
    file.set(0, quant_axis=0, scale_index=0, outer_index=0)


@broken("kiln-v2-scheme-none-first", "TYPE", plain, Fault("scheme-none", 0, "group_size"))
def scheme_none_first(file: File) -> None:
    """group_size counts as the first, although quant_axis, at fault too, comes before it in the file."""
    file.set(0, group_size=32, quant_axis=0)


@broken("kiln-v2-scheme-none-indexes", "TYPE", plain, Fault("scheme-none", 0, "scale_index"))
def scheme_none_indexes(file: File) -> None:
    """Both indexes are set in a tensor of scheme 0: one finding, on scale_index."""
    file.set(0, scale_index=0, outer_index=0)


@broken("kiln-v2-scheme-none-linked", "TYPE", scales, Fault("scheme-none", 0, "group_size"))
def scheme_none_linked(file: File) -> None:
    """A tensor has group size, axis and scale, and its scheme says 0."""
    file.set(0, scheme=0)


# quant-rank, quant-axis


@broken("kiln-v2-quant-rank", "TYPE", one_element, Fault("quant-rank", 0))
def quant_rank(file: File) -> None:
    """A scheme on a tensor of rank 0: it has no axis, so axis and count are not judged."""
    file.set(0, rank=0, shape=())


@broken("kiln-v2-quant-rank-no-axis", "TYPE", one_element, Fault("quant-rank", 0))
def quant_rank_no_axis(file: File) -> None:
    """Rank 0 with quant_axis 0xFFFF and a scale of two elements: rank is the one finding."""
    file.set(0, rank=0, shape=(), quant_axis=NO_AXIS)
    file.set(1, shape=(2,), len_data=8).append(b"\x01\x02\x03\x04").honest()


@broken("kiln-v2-quant-axis", "TYPE", scales, Fault("quant-axis", 0))
def quant_axis(file: File) -> None:
    """Axis 1 of a tensor that has axis 0 only."""
    file.set(0, quant_axis=1)


@broken("kiln-v2-quant-axis-none", "TYPE", scales, Fault("quant-axis", 0))
def quant_axis_none(file: File) -> None:
    """quant_axis is 0xFFFF in a tensor that has a scheme."""
    file.set(0, quant_axis=NO_AXIS)


@sound("kiln-v2-quant-axis-7")
def quant_axis_7() -> File:
    """Axis 7 of eight, the last that there can be."""
    return File(
        Tensor("w", "i8", (1, 2, 1, 2, 1, 2, 1, 5), scheme=1, axis=7, group_size=2, scale=1),
        Tensor("w.scale", "u8", (24,)),
    )


@broken("kiln-v2-quant-axis-8", "TYPE", quant_axis_7, Fault("quant-axis", 0))
def quant_axis_8(file: File) -> None:
    """Axis 8 of eight: one behind the last, where the descriptor ends."""
    file.set(0, quant_axis=8)


@broken("kiln-v2-quant-axis-swapped", "TYPE", quant_axis_7, Fault("quant-axis", 0))
def quant_axis_swapped(file: File) -> None:
    """Axis 0x0700: the number 7 written big-endian."""
    file.set(0, quant_axis=0x0700)


@broken("kiln-v2-quant-axis-unjudged", "TYPE", scales, Fault("quant-axis", 0))
def quant_axis_unjudged(file: File) -> None:
    """With a wrong axis no count is due, so that a scale of two elements is no finding."""
    file.set(0, quant_axis=1).set(1, shape=(2,), len_data=2).append(b"\x7f").honest()


# group-size

GROUPS = {
    "1": (1, 32, "one element each"),
    "31": (31, 2, "the dimension less one"),
    "32": (32, 1, "the dimension"),
    "33": (33, 1, "the dimension and one more"),
    "most": (2**32 - 1, 1, "the greatest there is"),
}
"""Group sizes for 32 elements: the size, the scales that are due, what is special."""

for part, (group_size, due, what) in GROUPS.items():

    @sound(f"kiln-v2-group-size-{part}", group_size=group_size, due=due, what=what)
    def group_sound(group_size: int, due: int, what: str) -> File:
        """32 elements in groups of {group_size}, {what}: scales due: {due}."""
        return File(
            Tensor("w", "i8", (32,), scheme=1, axis=0, group_size=group_size, scale=1),
            Tensor("w.scale", "u8", (due,)),
            slack=1,
        )

    for side, change in (("short", -1), ("over", 1)):

        @broken(
            f"kiln-v2-group-size-{part}-{side}",
            "TYPE",
            group_sound,
            Fault("scale-count", 0),
            group_size=group_size,
            due=due,
            wrong=due + change,
        )
        def group_wrong(file: File, group_size: int, due: int, wrong: int) -> None:
            """32 elements in groups of {group_size} need as many scales as {due}; there are {wrong}."""
            file.set(1, shape=(wrong,), len_data=wrong)


@broken("kiln-v2-group-size", "TYPE", scales, Fault("group-size", 0))
def group_size_zero(file: File) -> None:
    """Groups of no elements: there is nothing to divide by, so the count is not judged."""
    file.set(0, group_size=0)


@broken("kiln-v2-group-size-unjudged", "TYPE", scales, Fault("group-size", 0))
def group_size_unjudged(file: File) -> None:
    """With groups of no elements no count is due, so that a scale of two elements is no finding."""
    file.set(0, group_size=0).set(1, shape=(2,), len_data=2).append(b"\x7f").honest()


# scale-index, scale-self, scale-chain


@sound("kiln-v2-scale-first")
def scale_first() -> File:
    """The scale is tensor 0 and the quantized one tensor 1: index 0 is an index like any other."""
    return File(
        Tensor("w.scale", "e8m0", (1,), payload=b"\x7f"),
        Tensor("w", "e2m1", (32,), scheme=1, axis=0, group_size=32, scale=0),
    )


INDEXES = {
    "": (2, "2 in a directory of two: one behind the last"),
    "fffffffe": (NO_INDEX - 1, "0xFFFFFFFE, one less than the sentinel"),
    "none": (NO_INDEX, "0xFFFFFFFF, which says that there is none"),
    "high": (2**31 + 1, "2^31 + 1, which a signed reader takes for a negative number"),
    "swapped": (0x01000000, "0x01000000: the number 1 written big-endian"),
}
"""Values of scale_index that no directory of two has."""

for part, (index, what) in INDEXES.items():

    @broken(
        f"kiln-v2-scale-index-{part}".rstrip("-"),
        "TYPE",
        scales,
        Fault("scale-index", 0),
        index=index,
        what=what,
    )
    def scale_index(file: File, index: int, what: str) -> None:
        """scale_index is {what}."""
        file.set(0, scale_index=index)


@broken("kiln-v2-scale-self", "TYPE", scales, Fault("scale-self", 0))
def scale_self(file: File) -> None:
    """A tensor is its own scale; that it has a scheme and a wrong count is no further finding."""
    file.set(0, scale_index=0)


@broken("kiln-v2-scale-self-one", "TYPE", one_element, Fault("scale-self", 0))
def scale_self_one(file: File) -> None:
    """A tensor of one element is its own scale: its count would be right."""
    file.set(0, scale_index=0)


@sound("kiln-v2-two-scales")
def two_scales() -> File:
    """Tensors 0 and 1 are quantized and share the scale tensor 2."""
    return File(
        Tensor("w", "i4", (4,), scheme=1, axis=0, group_size=4, scale=2),
        Tensor("v", "i8", (1,), scheme=1, axis=0, group_size=1, scale=2),
        Tensor("scale", "bf16", (1,)),
    )


@broken("kiln-v2-scale-chain", "TYPE", two_scales, Fault("scale-chain", 0))
def scale_chain(file: File) -> None:
    """A chain of two: the scale of tensor 0 has a scale itself."""
    file.set(0, scale_index=1)


@broken("kiln-v2-scale-chain-count", "TYPE", two_scales, Fault("scale-chain", 0))
def scale_chain_count(file: File) -> None:
    """The scale has a scale, and its count is wrong: the chain is the one finding."""
    file.set(0, scale_index=1, group_size=2)


@sound("kiln-v2-three-scales")
def three_scales() -> File:
    """Three quantized tensors of one element share one scale."""
    tensors = [Tensor(name, "i8", (1,), scheme=1, axis=0, group_size=1, scale=3) for name in "abc"]
    return File(*tensors, Tensor("scale", "bf16", (1,)))


@broken("kiln-v2-scale-chain-three", "TYPE", three_scales, Fault("scale-chain", 0), Fault("scale-chain", 1))
def scale_chain_three(file: File) -> None:
    """A chain of three: 0 to 1 to 2 to 3; a finding on each whose scale has a scale."""
    file.set(0, scale_index=1).set(1, scale_index=2)


@broken("kiln-v2-scale-cycle", "TYPE", two_scales, Fault("scale-chain", 0), Fault("scale-chain", 1))
def scale_cycle(file: File) -> None:
    """A cycle of two: each tensor is the other's scale."""
    file.set(0, scale_index=1).set(1, scale_index=0)


@broken(
    "kiln-v2-scale-cycle-three",
    "TYPE",
    three_scales,
    Fault("scale-chain", 0),
    Fault("scale-chain", 1),
    Fault("scale-chain", 2),
)
def scale_cycle_three(file: File) -> None:
    """A cycle of three."""
    file.set(0, scale_index=1).set(1, scale_index=2).set(2, scale_index=0)


@broken("kiln-v2-scale-cycle-self", "TYPE", two_scales, Fault("scale-self", 1), Fault("scale-chain", 0))
def scale_cycle_self(file: File) -> None:
    """The scale of tensor 0 is tensor 1, which is its own: scale-self comes before scale-chain."""
    file.set(0, scale_index=1).set(1, scale_index=1)


@broken("kiln-v2-scale-chain-scheme", "TYPE", scales, Fault("scheme", 1), Fault("scale-chain", 0))
def scale_chain_scheme(file: File) -> None:
    """The scale tensor's scheme is 3: unknown, and not 0, so that it is a chain too."""
    file.set(1, scheme=3)


@sound("kiln-v2-scale-2-to-1")
def scale_two_to_one() -> File:
    """A tensor of scheme 2 and one of scheme 1 with one element each share a scale."""
    return File(
        Tensor("w", "i8", (1,), scheme=1, axis=0, group_size=1, scale=2),
        Tensor("v", "i8", (1,), scheme=2, axis=0, group_size=1, scale=2, outer=3),
        Tensor("scale", "bf16", (1,)),
        Tensor("outer", "f32", (1,)),
    )


@broken("kiln-v2-scale-chain-outer", "TYPE", scale_two_to_one, Fault("scale-chain", 0))
def scale_chain_outer(file: File) -> None:
    """The scale of tensor 0 is of scheme 2: a chain as well."""
    file.set(0, scale_index=1)


# scale-count


@broken("kiln-v2-scale-count", "TYPE", scales, Fault("scale-count", 0))
def scale_count(file: File) -> None:
    """One group of 32 needs one scale; the scale tensor has two."""
    file.set(1, shape=(2,), len_data=2).append(b"\x7f").honest()


@broken("kiln-v2-scale-count-0", "TYPE", scales, Fault("scale-count", 0))
def scale_count_zero(file: File) -> None:
    """One group of 32 needs one scale; the scale tensor has none."""
    file.set(1, shape=(0,), len_data=0)


COUNTS: dict[str, tuple[tuple[int, ...], int, int, int, str]] = {
    "even": ((64,), 0, 32, 2, "the groups are full"),
    "ceil": ((65,), 0, 32, 3, "the last group holds one element"),
    "floor": ((63,), 0, 32, 2, "the last group lacks one element"),
    "first": ((33, 2, 3), 0, 32, 12, "the axis is the first"),
    "middle": ((2, 33, 3), 1, 32, 12, "the axis is in the middle"),
    "last": ((2, 3, 33), 2, 32, 12, "the axis is the last"),
    "rows": ((3, 5), 1, 4, 6, "a group ends with its row: ceil(15 / 4) would be 4"),
    "square": ((2, 64), 0, 2, 64, "along axis 1 as many would be due"),
    "channel": ((4, 6), 1, 6, 4, "one scale a row"),
    "tensor": ((1, 24), 1, 24, 1, "one scale for all"),
    "axis-0": ((0, 3), 0, 32, 0, "the axis has no elements, so no groups"),
    "other-0": ((0, 33), 1, 32, 0, "another dimension is 0"),
    "ones": ((1, 1, 5, 1), 2, 2, 3, "dimensions of 1 change nothing"),
}
"""Shapes of quantized tensors: shape, axis, group_size, the scales that are due, what it shows."""

count_cases: dict[str, Case] = {}
for part, (shape, axis, group_size, due, what) in COUNTS.items():

    @sound(f"kiln-v2-count-{part}", shape=shape, axis=axis, group_size=group_size, due=due, what=what)
    def count(shape: tuple[int, ...], axis: int, group_size: int, due: int, what: str) -> File:
        """Shape {shape} in groups of {group_size} along axis {axis}: {what}; scales due: {due}."""
        return File(
            Tensor("w", "i8", shape, scheme=1, axis=axis, group_size=group_size, scale=1),
            Tensor("w.scale", "u8", (due,)),
            slack=1,
        )

    count_cases[part] = count
    for side, wrong in (("short", due - 1), ("over", due + 1)):
        if wrong < 0:
            continue

        @broken(
            f"kiln-v2-count-{part}-{side}",
            "TYPE",
            count,
            Fault("scale-count", 0),
            shape=shape,
            axis=axis,
            group_size=group_size,
            due=due,
            wrong=wrong,
        )
        def count_wrong(
            file: File, shape: tuple[int, ...], axis: int, group_size: int, due: int, wrong: int
        ) -> None:
            """Shape {shape} in groups of {group_size} along axis {axis}: due: {due}, there: {wrong}."""
            file.set(1, shape=(wrong,), len_data=wrong)


@broken("kiln-v2-count-flat", "TYPE", count_cases["rows"], Fault("scale-count", 0))
def count_flat(file: File) -> None:
    """Four scales for shape (3, 5) in groups of 4: right only if groups ran across rows."""
    file.set(1, shape=(4,), len_data=4)


@broken("kiln-v2-count-other-axis", "TYPE", count_cases["middle"], Fault("scale-count", 0))
def count_other_axis(file: File) -> None:
    """The scales are 12, right for axis 1; the tensor says axis 0, which needs 1 · 33 · 3."""
    file.set(0, quant_axis=0)


SCALE_SHAPES: dict[str, tuple[int, ...]] = {
    "grid": (2, 2, 3),
    "column": (12, 1),
    "eight": (1, 2, 1, 3, 1, 2, 1, 1),
}
"""Shapes of 12 elements."""

for part, shape in SCALE_SHAPES.items():

    @sound(f"kiln-v2-scale-shape-{part}", shape=shape)
    def scale_shape(shape: tuple[int, ...]) -> File:
        """12 scales in the shape {shape}: only their count is ruled."""
        return File(
            Tensor("w", "i8", (2, 3, 33), scheme=1, axis=2, group_size=32, scale=1),
            Tensor("w.scale", "u8", shape),
        )


@sound("kiln-v2-scale-shape-scalar")
def scale_scalar() -> File:
    """The one scale is a tensor of rank 0, whose count is 1: the product of no dimensions."""
    return File(
        Tensor("w", "e2m1", (32,), scheme=1, axis=0, group_size=32, scale=1),
        Tensor("w.scale", "e8m0", (), payload=b"\x7f"),
    )


@broken("kiln-v2-scale-shape-scalar-short", "TYPE", scale_scalar, Fault("scale-count", 0))
def scale_scalar_short(file: File) -> None:
    """Two groups of 16, and the scale tensor, of rank 0, has one element."""
    file.set(0, group_size=16)


@sound("kiln-v2-scale-dtypes")
def scale_dtypes() -> File:
    """Scales of nine dtypes, foreign among them: a scheme does not fix what a scale is."""
    dtypes = ("e8m0", "f8e4m3", "f16", "bf16", "f32", "f64", "u8", "c64")
    data = [
        Tensor(f"w{index}", "i8", (4,), scheme=1, axis=0, group_size=4, scale=len(dtypes) + 1 + index)
        for index in range(len(dtypes) + 1)
    ]
    scale = [Tensor(f"s{index}", name, (1,)) for index, name in enumerate(dtypes)]
    return File(*data, *scale, Tensor("s8", "foreign", (1,), block=(1, 3)))


@sound("kiln-v2-data-dtypes")
def data_dtypes() -> File:
    """Quantized tensors of eight dtypes, foreign and f32 among them: any dtype may have a scheme."""
    dtypes = ("u4", "i4", "e2m3", "f8e5m2", "i32", "f32", "bool")
    data = [Tensor(name, name, (4,), scheme=1, axis=0, group_size=4, scale=8) for name in dtypes]
    block = Tensor("q", "foreign", (4,), scheme=1, axis=0, group_size=4, scale=8, block=(4, 3))
    return File(*data, block, Tensor("s", "f16", (1,)))


# scale-count in exact arithmetic

PRIME = 715827883
"""2^31 + 1 is 3 times this, so that blocks of it make tensors of 2^31 + 1 elements small."""


@sound("kiln-v2-exact-ceil")
def exact_ceil() -> File:
    """2^31 + 1 elements in groups of 2^31: two scales, though 2^31 + 1 + 2^31 - 1 is 0 modulo 2^32."""
    return File(
        Tensor("w", "foreign", (2**31 + 1,), scheme=1, axis=0, group_size=2**31, scale=1, block=(PRIME, 1)),
        Tensor("w.scale", "u8", (2,)),
    )


@broken("kiln-v2-wrap-ceil", "TYPE", exact_ceil, Fault("scale-count", 0))
def wrap_ceil(file: File) -> None:
    """2^31 + 1 elements in groups of 2^31, and no scale: right only modulo 2^32."""
    file.set(1, shape=(0,), len_data=0)


@sound("kiln-v2-exact-group")
def exact_group() -> File:
    """2^32 - 1 elements in one group of 2^32 - 1, the greatest there is: one scale."""
    most = 2**32 - 1
    return File(
        Tensor("w", "foreign", (most,), scheme=1, axis=0, group_size=most, scale=1, block=(most, 5)),
        Tensor("w.scale", "u8", (1,)),
    )


@sound("kiln-v2-exact-rows")
def exact_rows() -> File:
    """2^31 + 1 rows of two, and one group along the rows for each column: two scales."""
    return File(
        Tensor(
            "w", "foreign", (2**31 + 1, 2), scheme=1, axis=0, group_size=2**32 - 1, scale=1, block=(PRIME, 1)
        ),
        Tensor("w.scale", "u8", (2,)),
    )


@broken("kiln-v2-wrap-count", "TYPE", exact_rows, Fault("scale-count", 0))
def wrap_count(file: File) -> None:
    """2^32 + 2 scales are due, and two are there: right only modulo 2^32."""
    file.set(0, group_size=1)


@broken("kiln-v2-wrap-count-short", "TYPE", exact_rows, Fault("scale-count", 0))
def wrap_count_short(file: File) -> None:
    """Groups of 2^31 along 2^31 + 1 rows of two need four scales, and two are there."""
    file.set(0, group_size=2**31)


@sound("kiln-v2-exact-0")
def exact_zero() -> File:
    """2^32 rows of no elements: no groups, no scales."""
    return File(
        Tensor("w", "u8", (2**32, 0), scheme=1, axis=0, group_size=1, scale=1),
        Tensor("w.scale", "u8", (0,)),
    )


@sound("kiln-v2-exact-0-large")
def exact_zero_large() -> File:
    """(2^64 - 1) · 2^63 · 0 elements in groups along the first axis: no scales, whatever overflows."""
    return File(
        Tensor("w", "u8", (2**64 - 1, 2**63, 0), scheme=1, axis=0, group_size=2, scale=1),
        Tensor("w.scale", "u8", (2**63, 2**63, 0)),
    )


@broken("kiln-v2-wrap-count-64", "LENGTH", exact_zero, Fault("data-length", 0), Fault("scale-count", 0))
def wrap_count_64(file: File) -> None:
    """2^64 elements, no bytes and no scales: right only modulo 2^64, in length and in count."""
    file.set(0, shape=(2**32, 2**32))


@sound("kiln-v2-exact-1")
def exact_one() -> File:
    """One element of rank 2 in a group of one: one scale of rank 2."""
    return File(
        Tensor("w", "u8", (1, 1), scheme=1, axis=0, group_size=1, scale=1),
        Tensor("w.scale", "u8", (1, 1)),
    )


@broken("kiln-v2-wrap-count-to-1", "LENGTH", exact_one, Fault("data-length", 0), Fault("scale-count", 0))
def wrap_count_to_one(file: File) -> None:
    """2^65 + 1 scales are due and one is there; modulo 2^64 everything is right."""
    file.set(0, shape=WRAPS_TO_1)


@broken("kiln-v2-wrap-scale-to-1", "LENGTH", exact_one, Fault("data-length", 1), Fault("scale-count", 0))
def wrap_scale_to_one(file: File) -> None:
    """One scale is due and the scale tensor has 2^65 + 1 elements; modulo 2^64 everything is right."""
    file.set(1, shape=WRAPS_TO_1)


@broken("kiln-v2-exact-equal", "LENGTH", exact_one, Fault("data-length", 0), Fault("data-length", 1))
def exact_equal(file: File) -> None:
    """2^65 scales are due and are there: the counts agree beyond 2^64, and only the lengths are wrong."""
    file.set(0, shape=(2**33, 2**32)).set(1, shape=(2**32, 2**33))


@broken(
    "kiln-v2-exact-unequal",
    "LENGTH",
    exact_one,
    Fault("data-length", 0),
    Fault("data-length", 1),
    Fault("scale-count", 0),
)
def exact_unequal(file: File) -> None:
    """2^65 scales are due and 2^64 are there: different numbers, and the same modulo 2^64."""
    file.set(0, shape=(2**33, 2**32)).set(1, shape=(2**32, 2**32))


@broken(
    "kiln-v2-exact-double",
    "LENGTH",
    exact_one,
    Fault("data-length", 0),
    Fault("data-length", 1),
    Fault("scale-count", 0),
)
def exact_double(file: File) -> None:
    """2^53 + 1 scales are due and 2^53 are there: the same number as doubles."""
    file.set(0, shape=(2**53 + 1, 1)).set(1, shape=(2**53, 1))


@broken("kiln-v2-exact-double-equal", "LENGTH", exact_one, Fault("data-length", 0), Fault("data-length", 1))
def exact_double_equal(file: File) -> None:
    """2^53 + 1 scales are due and are there, a number that no double holds."""
    file.set(0, shape=(2**53 + 1, 1)).set(1, shape=(1, 2**53 + 1))


@broken(
    "kiln-v2-wrap-ceil-64",
    "LENGTH",
    exact_one,
    Fault("data-length", 0),
    Fault("scale-count", 0),
)
def wrap_ceil_64(file: File) -> None:
    """2^64 - 1 elements in groups of 2 need 2^63 scales; modulo 2^64 the rounding up makes it none."""
    file.set(0, shape=(2**64 - 1, 1), group_size=2).set(1, shape=(0, 1), len_data=0)


@broken("kiln-v2-exact-ceil-64", "LENGTH", exact_one, Fault("data-length", 0), Fault("data-length", 1))
def exact_ceil_64(file: File) -> None:
    """2^64 - 1 elements in groups of 2 have their 2^63 scales; only the lengths are wrong."""
    file.set(0, shape=(2**64 - 1, 1), group_size=2).set(1, shape=(2**63, 1))


# what of a scale tensor must be sound for its count to be judged


@broken("kiln-v2-scale-rank", "TYPE", scales, Fault("rank", 1))
def scale_rank(file: File) -> None:
    """The scale tensor's rank is 9, so that it has no count to judge."""
    file.set(1, rank=9)


@broken("kiln-v2-scale-tail", "TYPE", scales, Fault("shape-tail", 1, entry=1))
def scale_tail(file: File) -> None:
    """The scale tensor's shape contradicts its rank, so that its count, two, is not judged."""
    file.set(1, shape=(2, 1))


@broken("kiln-v2-scale-dtype", "TYPE", scales, Fault("dtype", 1), Fault("scale-count", 0))
def scale_dtype(file: File) -> None:
    """The scale tensor's dtype is unknown; its count, two, is known and wrong."""
    file.set(1, dtype=0x0308, shape=(2,))


@broken("kiln-v2-scale-cut", "LENGTH", scales, Fault("data-length", 1), Fault("scale-count", 0))
def scale_cut(file: File) -> None:
    """The scale tensor says two elements and has the bytes of one: its count is judged by its shape."""
    file.set(1, shape=(2,))


@broken("kiln-v2-quant-rank-9", "TYPE", scales, Fault("rank", 0), Fault("group-size", 0))
def quant_rank_9(file: File) -> None:
    """With rank 9 neither axis nor count is judged; the group size, 0, needs no rank."""
    file.set(0, rank=9, quant_axis=200, group_size=0)
