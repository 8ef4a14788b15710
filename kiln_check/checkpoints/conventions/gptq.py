"""GPTQ, as GPTQModel and AutoGPTQ store it: K·b bits of a column in 32-bit words along the first axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, numbers, object_of, quantizations, text_of
from kiln_check.checkpoints.conventions.patterns import finds_expression
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    OPTIONAL,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)
from kiln_check.constants import MOST_PATTERNS

NAME = "GPTQ"
METHODS = ("gptq", "gptqmodel")

PACKED = Template(
    NAME,
    "packed",
    (
        Slot(".qweight", "I32", "[*E, ceil(K * b / 32), N]"),
        Slot(".qzeros", "I32", "[*E, ceil(K / g), ceil(N * b / 32)]"),
        Slot(".scales", FLOATS, "[*E, ceil(K / g), N]"),
        Slot(".g_idx", "I32", "[*E, K]", OPTIONAL),
    ),
    ZERO_POINTS,
    {"b": (4, 8, 2, 3), "g": (128, 32, 64, 16, "K")},
)


class GptqScheme(NamedTuple):
    """What a config of GPTQ says.

    Attributes:
        parameters: b bits and g, the group size.
        dynamic: what it says of modules that an expression finds: "+:" parameters of their own, "-:" plain.
        tool: NAME.

    """

    parameters: Mapping[str, Value]
    dynamic: Mapping[str, object]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """The packed format, with the parameters of the first expression that finds the module."""
        for number, (pattern, own) in enumerate(self.dynamic.items()):
            found = finds_expression(pattern.removeprefix("+:").removeprefix("-:"), module)
            if found is None or number == MOST_PATTERNS:
                return None
            if found and pattern.startswith("-:"):
                return Excluded(NAME, pattern)
            if found:
                return Declared(NAME, PACKED.format, (PACKED,), {**self.parameters, **_parameters(own)})
        return Declared(NAME, PACKED.format, (PACKED,), self.parameters)


def _parameters(values: object) -> dict[str, Value]:
    config = object_of(values)
    size = config.get("group_size")
    found: dict[str, Value] = {**numbers(b=number_of(config.get("bits")), g=number_of(size))}
    return {**found, "g": "K"} if size == -1 else found


def declare(companions: Companions) -> GptqScheme | None:
    """The scheme of quantization_config or of quantize_config.json."""
    beside = companions.get("quantize_config.json", {})
    for config in (*quantizations(companions), *([beside] if "bits" in beside else [])):
        method = text_of(config.get("quant_method")) or ("gptq" if config is beside else "")
        if method in METHODS:
            return GptqScheme(_parameters(config), object_of(config.get("dynamic")))
    return None


TOOL = Tool(NAME, (PACKED,), declare)
