"""Several faults in one file: the order of the table, not of the tensors, decides the verdict.

For each two neighbours in the table one case breaks the earlier rule in a later tensor.
"""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-order")
def order() -> File:
    """Nine tensors, two of them of scheme 2, and something wrong to point each of their indexes at."""
    return File(
        Tensor("w", "e2m1", (32,), scheme=2, axis=0, group_size=32, scale=1, outer=2),
        Tensor("s", "u8", (1,)),
        Tensor("o", "f32", (1,)),
        Tensor("p", "u8", (32,)),
        Tensor("q", "u8", (32,)),
        Tensor("v", "f32", (1,), scheme=2, axis=0, group_size=1, scale=1, outer=2),
        Tensor("i", "u32", (1,)),
        Tensor("d", "f32", (2,)),
        Tensor("e", "f32", (1,), scheme=1, axis=0, group_size=1, scale=1),
        slack=64,
    )


@broken("kiln-v2-order-1-2", "MAGIC", order, Fault("magic"))
def order_1_2(file: File) -> None:
    """Neither magic nor version is right: without the magic nothing else is judged."""
    file.patch(0, b"\x09").head(version=3)


@broken("kiln-v2-order-2-3", "VERSION", order, Fault("version"))
def order_2_3(file: File) -> None:
    """Neither version nor len_file is right: without the version nothing else is judged."""
    file.head(version=3, len_file=1)


@broken("kiln-v2-order-3-4", "LENGTH", order, Fault("file-length"), Fault("reserved", field="reserved1"))
def order_3_4(file: File) -> None:
    """A wrong len_file does not stop the rules behind it."""
    file.head(len_file=file.size + 1, reserved1=1)


@broken(
    "kiln-v2-order-4-5", "TYPE", order, Fault("reserved", 8, "reserved2"), Fault("name-range", 3, name=None)
)
def order_4_5(file: File) -> None:
    """TYPE, for a reserved field of the last tensor, comes before NAME on an earlier one."""
    file.set(8, reserved2=1).set(3, ofs_name=9)


@broken("kiln-v2-order-5-6", "NAME", order, Fault("name-range", 4, name=None), Fault("name-text", 3, name=""))
def order_5_6(file: File) -> None:
    """name-range on tensor 4 comes before name-text on tensor 3."""
    file.set(4, ofs_name=9).set(3, len_name=0)


@broken("kiln-v2-order-6-7", "NAME", order, Fault("name-text", 4, name=""), Fault("name-unique", 3, name="w"))
def order_6_7(file: File) -> None:
    """name-text on tensor 4 comes before name-unique on tensor 3."""
    file.set(4, len_name=0).set(3, ofs_name=0)


@broken("kiln-v2-order-7-8", "NAME", order, Fault("name-unique", 4, name="w"), Fault("dtype", 3))
def order_7_8(file: File) -> None:
    """NAME on tensor 4 comes before TYPE, for a dtype, on tensor 3."""
    file.set(4, ofs_name=0).set(3, dtype=0x0308)


@broken("kiln-v2-order-8-9", "TYPE", order, Fault("dtype", 4), Fault("rank", 3))
def order_8_9(file: File) -> None:
    """dtype on tensor 4 comes before rank on tensor 3."""
    file.set(4, dtype=0x0308).set(3, rank=9)


@broken("kiln-v2-order-9-10", "TYPE", order, Fault("rank", 4), Fault("shape-tail", 3, entry=1))
def order_9_10(file: File) -> None:
    """rank on tensor 4 comes before shape-tail on tensor 3."""
    file.set(4, rank=9).set(3, shape=(32, 1))


@broken("kiln-v2-order-10-11", "TYPE", order, Fault("shape-tail", 4, entry=1), Fault("foreign-block", 3))
def order_10_11(file: File) -> None:
    """shape-tail on tensor 4 comes before foreign-block on tensor 3."""
    file.set(4, shape=(32, 1)).set(3, foreign_tag=1)


@broken("kiln-v2-order-11-12", "TYPE", order, Fault("foreign-block", 4), Fault("data-length", 3))
def order_11_12(file: File) -> None:
    """TYPE, for foreign-block, on tensor 4 comes before LENGTH on tensor 3."""
    file.set(4, foreign_tag=1).set(3, len_data=31)


@broken("kiln-v2-order-12-13", "LENGTH", order, Fault("data-length", 4), Fault("data-align", 3))
def order_12_13(file: File) -> None:
    """LENGTH on tensor 4 comes before ALIGN on tensor 3."""
    file.set(4, len_data=31).set(3, ofs_data=file.descriptors[3]["ofs_data"] + 1)


@broken("kiln-v2-order-13-14", "ALIGN", order, Fault("data-align", 4), Fault("data-range", 3))
def order_13_14(file: File) -> None:
    """ALIGN on tensor 4 comes before LENGTH, for data-range, on tensor 3."""
    file.set(4, ofs_data=file.descriptors[4]["ofs_data"] + 1).set(3, ofs_data=0)


@broken("kiln-v2-order-14-15", "LENGTH", order, Fault("data-range", 4), Fault("data-overlap", 3))
def order_14_15(file: File) -> None:
    """LENGTH, for data-range, on tensor 4 comes before OVERLAP on tensor 3."""
    file.set(4, ofs_data=0).set(3, ofs_data=file.descriptors[2]["ofs_data"])


@broken("kiln-v2-order-15-16", "OVERLAP", order, Fault("data-overlap", 4), Fault("scheme", 3))
def order_15_16(file: File) -> None:
    """OVERLAP on tensor 4 comes before TYPE, for a scheme, on tensor 3."""
    file.set(4, ofs_data=file.descriptors[2]["ofs_data"]).set(3, scheme=3)


@broken("kiln-v2-order-16-17", "TYPE", order, Fault("scheme", 4), Fault("scheme-none", 3, "group_size"))
def order_16_17(file: File) -> None:
    """scheme on tensor 4 comes before scheme-none on tensor 3."""
    file.set(4, scheme=3).set(3, group_size=1)


@broken("kiln-v2-order-17-18", "TYPE", order, Fault("scheme-none", 4, "group_size"), Fault("quant-rank", 0))
def order_17_18(file: File) -> None:
    """scheme-none on tensor 4 comes before quant-rank on tensor 0."""
    file.set(4, group_size=1).set(0, rank=0, shape=(), len_data=1)


@broken("kiln-v2-order-18-19", "TYPE", order, Fault("quant-rank", 5), Fault("quant-axis", 0))
def order_18_19(file: File) -> None:
    """quant-rank on tensor 5 comes before quant-axis on tensor 0."""
    file.set(5, rank=0, shape=()).set(0, quant_axis=1)


@broken("kiln-v2-order-19-20", "TYPE", order, Fault("quant-axis", 5), Fault("group-size", 0))
def order_19_20(file: File) -> None:
    """quant-axis on tensor 5 comes before group-size on tensor 0."""
    file.set(5, quant_axis=1).set(0, group_size=0)


@broken("kiln-v2-order-20-21", "TYPE", order, Fault("group-size", 5), Fault("scale-index", 0))
def order_20_21(file: File) -> None:
    """group-size on tensor 5 comes before scale-index on tensor 0."""
    file.set(5, group_size=0).set(0, scale_index=9)


@broken("kiln-v2-order-21-22", "TYPE", order, Fault("scale-index", 5), Fault("scale-self", 0))
def order_21_22(file: File) -> None:
    """scale-index on tensor 5 comes before scale-self on tensor 0."""
    file.set(5, scale_index=9).set(0, scale_index=0)


@broken("kiln-v2-order-22-23", "TYPE", order, Fault("scale-self", 5), Fault("scale-chain", 0))
def order_22_23(file: File) -> None:
    """scale-self on tensor 5 comes before scale-chain on tensor 0."""
    file.set(5, scale_index=5).set(0, scale_index=8)


@broken("kiln-v2-order-23-24", "TYPE", order, Fault("scale-chain", 5), Fault("scale-count", 0))
def order_23_24(file: File) -> None:
    """scale-chain on tensor 5 comes before scale-count on tensor 0."""
    file.set(5, scale_index=8).set(0, group_size=16)


@broken("kiln-v2-order-24-25", "TYPE", order, Fault("scale-count", 5), Fault("outer-absent", 0))
def order_24_25(file: File) -> None:
    """scale-count on tensor 5 comes before outer-absent on tensor 0."""
    file.set(5, scale_index=3).set(0, scheme=1)


@broken("kiln-v2-order-25-26", "TYPE", order, Fault("outer-absent", 5), Fault("outer-index", 0))
def order_25_26(file: File) -> None:
    """outer-absent on tensor 5 comes before outer-index on tensor 0."""
    file.set(5, scheme=1).set(0, outer_index=9)


@broken("kiln-v2-order-26-27", "TYPE", order, Fault("outer-index", 5), Fault("outer-distinct", 0))
def order_26_27(file: File) -> None:
    """outer-index on tensor 5 comes before outer-distinct on tensor 0."""
    file.set(5, outer_index=9).set(0, outer_index=1)


@broken("kiln-v2-order-27-28", "TYPE", order, Fault("outer-distinct", 5), Fault("outer-chain", 0))
def order_27_28(file: File) -> None:
    """outer-distinct on tensor 5 comes before outer-chain on tensor 0."""
    file.set(5, outer_index=5).set(0, outer_index=8)


@broken("kiln-v2-order-28-29", "TYPE", order, Fault("outer-chain", 5), Fault("outer-dtype", 0))
def order_28_29(file: File) -> None:
    """outer-chain on tensor 5 comes before outer-dtype on tensor 0."""
    file.set(5, outer_index=8).set(0, outer_index=6)


@broken("kiln-v2-order-29-30", "TYPE", order, Fault("outer-dtype", 5), Fault("outer-count", 0))
def order_29_30(file: File) -> None:
    """outer-dtype on tensor 5 comes before outer-count on tensor 0."""
    file.set(5, outer_index=6).set(0, outer_index=7)


# rules that are far apart, and what isn't judged


@broken("kiln-v2-order-late-type", "OVERLAP", order, Fault("data-overlap", 4), Fault("scale-count", 0))
def order_late_type(file: File) -> None:
    """A count is wrong in tensor 0 and an overlap is in tensor 4: OVERLAP, though TYPE is elsewhere first."""
    file.set(4, ofs_data=file.descriptors[2]["ofs_data"]).set(0, group_size=16)


@broken("kiln-v2-order-early-type", "TYPE", order, Fault("dtype", 4), Fault("data-align", 0))
def order_early_type(file: File) -> None:
    """A dtype is unknown in tensor 4 and a payload misplaced in tensor 0: TYPE."""
    file.set(4, dtype=0x0308).set(0, ofs_data=file.descriptors[0]["ofs_data"] + 1)


@broken("kiln-v2-order-tensors", "TYPE", order, Fault("scheme", 3), Fault("scheme", 4), Fault("scheme", 6))
def order_tensors(file: File) -> None:
    """Three tensors break one rule: three findings, by tensor."""
    file.set(6, scheme=3).set(4, scheme=4).set(3, scheme=5)


@broken("kiln-v2-order-cut", "LENGTH", order, Fault("file-length"))
def order_cut(file: File) -> None:
    """The last byte of the directory is missing, so nothing in it is judged, however wrong."""
    file.head(reserved1=1).set(0, dtype=0, rank=9, scheme=9, reserved1=1, ofs_data=1, len_name=0)
    file.cut(64 + 9 * 128 - 1).honest()


@broken(
    "kiln-v2-order-one-tensor",
    "TYPE",
    order,
    Fault("reserved", 4, "reserved1", name=""),
    Fault("name-text", 4, name=""),
    Fault("dtype", 4, name=""),
    Fault("rank", 4, name=""),
    Fault("data-align", 4, name=""),
    Fault("data-range", 4, name=""),
    Fault("scheme", 4, name=""),
)
def order_one_tensor(file: File) -> None:
    """All that one descriptor can have wrong at once, with what that leaves unjudged."""
    file.set(4, reserved1=1, reserved2=1, len_name=0, dtype=0, rank=9, shape=(1, 1), ofs_data=1, scheme=3)


@broken(
    "kiln-v2-order-links",
    "TYPE",
    order,
    Fault("group-size", 0),
    Fault("scale-index", 5),
    Fault("scale-chain", 0),
    Fault("outer-chain", 0),
    Fault("outer-dtype", 0),
    Fault("outer-count", 0),
    Fault("outer-count", 5),
)
def order_links(file: File) -> None:
    """Two tensors with several faults each in what they point at."""
    file.set(0, group_size=0, scale_index=8, outer_index=5)
    file.set(5, dtype=0x0110, shape=(2,), scale_index=9, outer_index=7)


@broken(
    "kiln-v2-order-all-zero",
    "NAME",
    order,
    Fault("name-text", 3, name=""),
    Fault("dtype", 3, name=""),
    Fault("data-range", 3, name=""),
    Fault("scheme-none", 3, "quant_axis", name=""),
)
def order_all_zero(file: File) -> None:
    """A descriptor of 128 zero bytes among sound ones."""
    file.patch(64 + 3 * 128, bytes(128))
