"""optimum-quanto: 8-bit weights by channel; 2 and 4 bits in groups, packed along the rows of groups.

The source is optimum-quanto's `nn/qmodule.py`, `tensor/packed.py` and `tensor/grouped.py`. A row of groups
holds one group of a weight; where a weight is not grouped, it is a row of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import object_of, quantizations, text_of, texts_of
from kiln_check.checkpoints.conventions.skipping import by_skips
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "quanto"
MAP = "quanto_qmap.json"
"""The file in which quanto says how it quantized each module."""

SCALES = tuple(Slot(suffix, FLOATS, "[]") for suffix in (".input_scale", ".output_scale"))
"""Scales of activations; 1 where those are not quantized."""


def _bytes(format_: str, dtype: str, kiln: str) -> Template:
    return Template(
        NAME,
        format_,
        (
            Slot(".weight._data", dtype, "[N, K]"),
            Slot(".weight._scale", FLOATS, "[N, 1]"),
            *SCALES,
        ),
        Hold(kiln, "K", ".weight._scale", shape="[N, K]"),
    )


def _bits(bits: int) -> Template:
    return Template(
        NAME,
        f"qint{bits}",
        (
            Slot(".weight._data._data", "U8", f"[ceil(R * {bits} / 8), C]"),
            Slot(".weight._scale", FLOATS, "[R, 1]"),
            Slot(".weight._shift", FLOATS, "[R, 1]"),
            *SCALES,
        ),
        ZERO_POINTS,
    )


TEMPLATES = (
    _bytes("qint8", "I8", "i8"),
    _bytes("qfloat8_e4m3fn", "F8_E4M3", "f8e4m3"),
    _bytes("qfloat8_e5m2", "F8_E5M2", "f8e5m2"),
    _bits(4),
    _bits(2),
)

FORMATS: Mapping[str, Template] = {
    **{template.format: template for template in TEMPLATES},
    **{template.format.removeprefix("q"): template for template in TEMPLATES},
    "qfloat8": TEMPLATES[1],
    "float8": TEMPLATES[1],
}
"""By the name of quanto's type, and by what a quantization_config calls it."""


class _Map(NamedTuple):
    """A quanto_qmap.json: it names each module that quanto quantized."""

    formats: Mapping[str, str]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        format_ = self.formats.get(module)
        return None if format_ is None else _declared(format_, named=True)


class _Scheme(NamedTuple):
    """A quantization_config with quant_method "quanto"."""

    declared: Declared
    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        return by_skips(self.tool, self.declared, self.skipped, module)


def _declared(format_: str, named: bool = False) -> Declared:
    template = FORMATS.get(format_)
    return Declared(NAME, format_ or "unknown", () if template is None else (template,), named=named)


def _declare(companions: Companions) -> _Map | _Scheme | None:
    formats = {name: text_of(object_of(one).get("weights")) for name, one in companions.get(MAP, {}).items()}
    quantized = {name: format_ for name, format_ in formats.items() if format_ not in ("", "none")}
    if quantized:
        return _Map(quantized)
    for config in quantizations(companions):
        if config.get("quant_method") == "quanto":
            declared = _declared(text_of(config.get("weights")))
            return _Scheme(declared, texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(NAME, TEMPLATES, _declare, marks=(".weight._data", ".weight._data._data", ".weight._shift"))
