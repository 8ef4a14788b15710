"""Rules outer-absent to outer-count: the one f32 that scales a whole tensor."""

from __future__ import annotations

import struct

from tools.corpus.cases import Fault, broken, sound
from tools.corpus.cases_scales import scales
from tools.corpus.layout import File, Tensor

HALF = struct.pack("<f", 0.5)


@sound("kiln-v2-scales-outer")
def scales_outer() -> File:
    """The block of NVFP4: 16 e2m1 elements, one f8e4m3 scale (1.0), and one f32 outer value (0.5)."""
    return File(
        Tensor("w", "e2m1", (16,), scheme=2, axis=0, group_size=16, scale=1, outer=2),
        Tensor("w.scale", "f8e4m3", (1,), payload=b"\x38"),
        Tensor("w.outer", "f32", (1,), payload=HALF),
    )


@broken("kiln-v2-outer-absent", "TYPE", scales, Fault("outer-absent", 0))
def outer_absent(file: File) -> None:
    """Scheme 1 has no outer, and outer_index is 0xFFFFFFFE, one less than the sentinel."""
    file.set(0, outer_index=0xFFFFFFFE)


@broken("kiln-v2-outer-index", "TYPE", scales_outer, Fault("outer-index", 0))
def outer_index(file: File) -> None:
    """The outer is tensor 3 of a directory of three: one behind the last."""
    file.set(0, outer_index=3)


@broken("kiln-v2-outer-distinct", "TYPE", scales_outer, Fault("outer-distinct", 0))
def outer_distinct(file: File) -> None:
    """The scale tensor is the outer too; what its dtype and count are is then not judged."""
    file.set(0, outer_index=1)


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


@broken("kiln-v2-outer-dtype", "TYPE", scales_outer, Fault("outer-dtype", 0))
def outer_dtype(file: File) -> None:
    """The outer is one u32: the right width, the wrong dtype."""
    file.set(2, dtype=0x0120)


@broken("kiln-v2-outer-count", "TYPE", scales_outer, Fault("outer-count", 0))
def outer_count(file: File) -> None:
    """The outer has two elements."""
    file.set(2, shape=(2,), len_data=8).append(HALF).honest()
