"""Rules scheme to scale-count: a tensor and the sibling that holds its scales."""

from __future__ import annotations

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_file import plain
from tools.corpus.layout import File, Tensor


@sound("kiln-v2-scales")
def scales() -> File:
    """The block of MXFP4: 32 e2m1 elements in one group, and one e8m0 scale, the byte 127."""
    return File(
        Tensor("w", "e2m1", (32,), scheme=1, axis=0, group_size=32, scale=1),
        Tensor("w.scale", "e8m0", (1,), payload=b"\x7f"),
    )


@broken("kiln-v2-scale-count", "TYPE", scales, Fault("scale-count", 0))
def scale_count(file: File) -> None:
    """One group of 32 needs one scale; the scale tensor has two."""
    file.set(1, shape=(2,), len_data=2).append(b"\x7f").honest()


@broken("kiln-v2-scheme", "TYPE", plain, Fault("scheme", 0))
def scheme(file: File) -> None:
    """Scheme 3 is no scheme; what the quantization fields mean is then unknown and not judged."""
    file.set(0, scheme=3)


@broken("kiln-v2-scheme-none", "TYPE", plain, Fault("scheme-none", 0, "group_size"))
def scheme_none(file: File) -> None:
    """A tensor of scheme 0 with a group_size of 1."""
    file.set(0, group_size=1)


@sound("kiln-v2-one-element")
def one_element() -> File:
    """A quantized tensor of rank 1, the least that a scheme allows, with a single element."""
    return File(
        Tensor("w", "i8", (1,), scheme=1, axis=0, group_size=1, scale=1),
        Tensor("w.scale", "f32", (1,)),
    )


@broken("kiln-v2-quant-rank", "TYPE", one_element, Fault("quant-rank", 0))
def quant_rank(file: File) -> None:
    """A scheme on a tensor of rank 0: it has no axis to scale along, so axis and count are not judged."""
    file.set(0, rank=0, shape=())


@broken("kiln-v2-quant-axis", "TYPE", scales, Fault("quant-axis", 0))
def quant_axis(file: File) -> None:
    """Axis 1 of a tensor that has axis 0 only."""
    file.set(0, quant_axis=1)


@broken("kiln-v2-group-size", "TYPE", scales, Fault("group-size", 0))
def group_size(file: File) -> None:
    """Groups of no elements: there is nothing to divide by, so the count is not judged."""
    file.set(0, group_size=0)


@broken("kiln-v2-scale-index", "TYPE", scales, Fault("scale-index", 0))
def scale_index(file: File) -> None:
    """The scale is tensor 2 of a directory of two: one behind the last."""
    file.set(0, scale_index=2)


@broken("kiln-v2-scale-self", "TYPE", scales, Fault("scale-self", 0))
def scale_self(file: File) -> None:
    """A tensor is its own scale."""
    file.set(0, scale_index=0)


@sound("kiln-v2-two-scales")
def two_scales() -> File:
    """Tensors 0 and 1 are quantized and share the scale tensor 2; tensor 1 could be a scale by its count."""
    return File(
        Tensor("w", "i4", (4,), scheme=1, axis=0, group_size=4, scale=2),
        Tensor("v", "i8", (1,), scheme=1, axis=0, group_size=1, scale=2),
        Tensor("scale", "bf16", (1,)),
    )


@broken("kiln-v2-scale-chain", "TYPE", two_scales, Fault("scale-chain", 0))
def scale_chain(file: File) -> None:
    """A chain of two: the scale of tensor 0 has a scale itself."""
    file.set(0, scale_index=1)
