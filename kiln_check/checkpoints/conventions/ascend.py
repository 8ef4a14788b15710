"""Ascend: what msModelSlim writes and vllm-ascend reads, and quant_model_description.json.

Facts are from vllm-ascend's source: `quantization/methods/*.py`, `quantization/configs/modelslim_config.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions.configs import number_of, object_of, text_of
from kiln_check.checkpoints.conventions.shapes import Value
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
    by_format,
)

NAME = "Ascend"

DESCRIPTION = "quant_model_description"
"""What the names of its configs begin with."""

FLOAT = "FLOAT"
"""The kind of a tensor that is not quantized."""

WEIGHT, SCALE, OFFSET = ".weight", ".weight_scale", ".weight_offset"

CHANNELS = "[N, 1] | [N]"
ONE = "[1] | []"

INTEGERS = (
    Slot(WEIGHT, "I8", "[N, K]"),
    Slot(SCALE, FLOATS, CHANNELS),
    Slot(OFFSET, FLOATS, CHANNELS, OFFSET),
)

OF_INPUTS = (
    Slot(".input_scale", FLOATS, ONE, ".input_scale"),
    Slot(".input_offset", f"{FLOATS} I8", ONE, ".input_offset"),
    Slot(".quant_bias", "I32", "[N]", ".quant_bias"),
    Slot(".deq_scale", "F32 I64", "[N]", ".deq_scale"),
)
"""Of inputs whose scale is measured beforehand."""

BY_CHANNEL = Hold("i8", "K", SCALE, unless=((OFFSET, ZERO_POINTS),))

TEMPLATES = (
    Template(NAME, "W8A8", (*INTEGERS, *OF_INPUTS), BY_CHANNEL),
    Template(NAME, "W8A8_MIX", (*INTEGERS, *OF_INPUTS), BY_CHANNEL),
    Template(NAME, "W8A8_DYNAMIC", INTEGERS, BY_CHANNEL),
    Template(NAME, "W8A16", INTEGERS, BY_CHANNEL),
    Template(
        NAME,
        "W8A8_MXFP8",
        (Slot(WEIGHT, "F8_E4M3", "[N, K]"), Slot(SCALE, "U8", "[N, ceil(K / g)]")),
        Hold("f8e4m3", "g", SCALE, "e8m0"),
    ),
)

BY_KIND = by_format(TEMPLATES)

OPTIONAL_SUFFIXES = (OFFSET, *(slot.suffix for slot in OF_INPUTS))
"""Suffixes of tensors that are there where the description names them."""

MX_GROUP = 32


@dataclass(frozen=True)
class Ascend:
    """The kinds of tensors by their names."""

    kinds: dict[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What is said of the module's weight."""
        kind = text_of(self.kinds.get(module + WEIGHT))
        if not kind:
            return None
        if kind == FLOAT:
            return Excluded(NAME, module + WEIGHT)
        parameters: dict[str, Value | bool] = {
            suffix: True for suffix in OPTIONAL_SUFFIXES if module + suffix in self.kinds
        }
        parameters["g"] = number_of(self.kinds.get("group_size")) or MX_GROUP
        return Declared(NAME, kind, BY_KIND.get(kind, ()), parameters, named=True)


def _declare(companions: Companions) -> Ascend | None:
    kinds: dict[str, Any] = {}
    for name, content in companions.items():
        if name.startswith(DESCRIPTION):
            kinds.update(object_of(content))
    return Ascend(kinds) if kinds else None


TOOL = Tool(NAME, TEMPLATES, _declare)
