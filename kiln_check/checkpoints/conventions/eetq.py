"""EETQ: 8-bit integers by channel, the weight stored transposed and reordered for its kernel.

The source is transformers' integration of EETQ (`EetqLinear`).
"""

from __future__ import annotations

from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import quantizations, texts_of
from kiln_check.checkpoints.conventions.skipping import by_skips
from kiln_check.checkpoints.conventions.template import (
    OWN_ORDER,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)

NAME = "EETQ"

INT8 = Template(
    NAME,
    "int8",
    (Slot(".weight", "I8", "[K, N]"), Slot(".weight_scales", "F16", "[N]")),
    OWN_ORDER,
)


class _Scheme(NamedTuple):
    """A quantization_config with quant_method "eetq"."""

    declared: Declared
    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        return by_skips(self.tool, self.declared, self.skipped, module)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        if config.get("quant_method") == "eetq":
            known = config.get("weights", "int8") == "int8"
            declared = Declared(NAME, "int8" if known else "unknown", (INT8,) if known else ())
            return _Scheme(declared, texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(NAME, (INT8,), _declare)
