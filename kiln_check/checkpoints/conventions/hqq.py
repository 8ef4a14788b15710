"""HQQ: groups in rows or columns, packed along the rows of groups, with all settings as tensors.

The source is hqq's `core/quantize.py` (`HQQLinear.state_dict`) and `core/bitpack.py`. A weight is reshaped
to groups by axis 1, a group a row, or by axis 0, a group a column. Codes far apart share a byte: the rows
are cut into as many parts as a byte has codes, and the parts lie over each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import quantizations, texts_of
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.skipping import by_skips
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
    integers,
)

NAME = "HQQ"
PACKINGS = (
    ("8bit_u8", "U8", 1),
    ("4bit_u8", "U8", 2),
    ("3bit_32", "I32", 10),
    ("2bit_u8", "U8", 4),
    ("1bit_u8", "U8", 8),
)
"""By `packing`: dtype of the packed codes, and rows that lie over each other."""


def packing(payload: bytes) -> dict[str, Value | bool]:
    """Which packing it is.

    Raises ValueError where the payload is the name of none.
    """
    found = payload.decode("ascii", "replace")
    if found not in {name for name, _, _ in PACKINGS}:
        raise ValueError("no packing")
    return {name: name == found for name, _, _ in PACKINGS}


def _flag(name: str) -> Callable[[bytes], dict[str, Value | bool]]:
    """Reads a truth value from a payload of one byte; raises ValueError where it is neither 0 nor 1."""

    def read(payload: bytes) -> dict[str, Value | bool]:
        if payload not in (b"\0", b"\1"):
            raise ValueError("no truth value")
        return {name: payload == b"\1"}

    return read


DTYPES = ("torch.float16", "torch.bfloat16", "torch.float32")
"""What a `compute_dtype` may hold."""


def _one_of(*texts: str) -> Callable[[bytes], dict[str, Value | bool]]:
    """Reads nothing from a payload; raises ValueError where it is none of some texts."""

    def read(payload: bytes) -> dict[str, Value | bool]:
        if payload.decode("ascii", "replace") not in texts:
            raise ValueError("another text")
        return {}

    return read


SETTINGS = (
    Slot(".nbits", "I32 F32", "[]"),
    Slot(".group_size", "I32", "[]", gives=integers("g")),
    Slot(".shape", "I64", "[2]", gives=integers("N", "K")),
    Slot(".axis", "I32", "[]", gives=integers("axis")),
    Slot(".packing", "U8", "[7]", gives=packing),
    Slot(".unpack_view_dtype", "U8", "[11]"),
    Slot(".view_as_float", "U8", "[]", "", _flag("view_as_float")),
    Slot(".quant_scale", "U8", "[]"),
    Slot(".quant_zero", "U8", "[]"),
    Slot(".compute_dtype", "U8", "[13] | [14]", "", _one_of(*DTYPES)),
    Slot(".offload_meta", "U8", "[]"),
    Slot(".encoded_state_dict", "U8", "[]"),
    Slot(".stores_quant_config", "U8", "[]", "channel_wise", _flag("stores_quant_config")),
    Slot(".channel_wise", "U8", "[]", "stores_quant_config", _flag("channel_wise")),
    Slot(".optimize", "U8", "[]", "stores_quant_config"),
    Slot(".round_zero", "U8", "[]", "stores_quant_config"),
)


def _template(name: str, dtype: str, rows: int, axis: int) -> Template:
    codes = f"[ceil(N * K / g / {rows}), g]" if axis else f"[ceil(g / {rows}), N * K / g]"
    scales = "[N * K / g, 1]" if axis else "[1, N * K / g]"
    return Template(
        NAME,
        f"{name}, axis {axis}",
        (
            Slot(".W_q", dtype, codes),
            Slot(".scale", FLOATS, scales),
            Slot(".zero", FLOATS, scales),
            *SETTINGS,
        ),
        ZERO_POINTS,
        only={name: True, "axis": axis, "view_as_float": False, "channel_wise": True},
    )


TEMPLATES = tuple(_template(*row, axis) for row in PACKINGS for axis in (1, 0))


class _Scheme(NamedTuple):
    """A quantization_config with quant_method "hqq"; what it says of groups, each module says itself."""

    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        return by_skips(self.tool, Declared(NAME, "", TEMPLATES), self.skipped, module)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        if config.get("quant_method") == "hqq":
            return _Scheme(texts_of(config.get("skip_modules")))
    return None


TOOL = Tool(NAME, TEMPLATES, _declare, marks=(".W_q",))
