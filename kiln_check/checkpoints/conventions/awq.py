"""AWQ, as AutoAWQ stores it: N·b bits of a row in 32-bit words along the last axis, in its own order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    numbers,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)

NAME = "AWQ"

GEMM = Template(
    NAME,
    "GEMM",
    (
        Slot(".qweight", "I32", "[*E, K, N * b / 32]"),
        Slot(".qzeros", "I32", "[*E, ceil(K / g), N * b / 32]"),
        Slot(".scales", FLOATS, "[*E, ceil(K / g), N]"),
    ),
    ZERO_POINTS,
    {"b": (4, 8), "g": (128, 32, 64, 16, "K")},
)


class AwqScheme(NamedTuple):
    """What a config of AWQ says.

    Attributes:
        version: of the format, in lower case; only "gemm" is known.
        parameters: b bits and g, the group size.
        plain: parts of the names of modules that are not quantized.
        tool: NAME.

    """

    version: str
    parameters: Mapping[str, Value]
    plain: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded:
        """The GEMM format, or that the module is left out."""
        for part in self.plain:
            if part in module:
                return Excluded(NAME, part)
        templates = (GEMM,) if self.version == "gemm" else ()
        return Declared(NAME, self.version.upper(), templates, self.parameters)


def declare(companions: Companions) -> AwqScheme | None:
    """The scheme of quantization_config or of quant_config.json."""
    beside = companions.get("quant_config.json", {})
    for config in (*quantizations(companions), *([beside] if "w_bit" in beside else [])):
        if config is not beside and text_of(config.get("quant_method")) != "awq":
            continue
        size = config.get("group_size", config.get("q_group_size"))
        parameters: dict[str, Value] = {
            **numbers(b=number_of(config.get("bits", config.get("w_bit"))), g=number_of(size))
        }
        if size == -1:
            parameters["g"] = "K"
        version = text_of(config.get("version")) or "gemm"
        return AwqScheme(version.lower(), parameters, texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(NAME, (GEMM,), declare)
