"""FBGEMM: 8-bit floats by row, as transformers and Meta's checkpoints store them.

Facts are from transformers' source: `integrations/fbgemm_fp8.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kiln_check.checkpoints.conventions.configs import quantizations, texts_of
from kiln_check.checkpoints.conventions.patterns import first_of
from kiln_check.checkpoints.conventions.template import (
    OPTIONAL,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "FBGEMM"
FORMAT = "fbgemm_fp8"

EXPERTS = Slot("", "F8_E4M3", "[*E, K, N]")
"""Their weights are transposed: outputs run along the last dimension."""

BY_OUTPUT = Hold("f8e4m3", "K", "_scale", shape="[*E, K, N]", axis=-2)

TEMPLATES = (
    Template(
        NAME,
        FORMAT,
        (
            Slot(".weight", "F8_E4M3", "[N, K]"),
            Slot(".weight_scale", "F32", "[N, 1]"),
            Slot(".input_scale_ub", "F32", "[1] | []", OPTIONAL),
        ),
        Hold("f8e4m3", "K", ".weight_scale"),
    ),
    Template(
        NAME,
        f"{FORMAT}, gate and up of experts",
        (EXPERTS, Slot("_scale", "F32", "[*E, 1, N]")),
        BY_OUTPUT,
        only={"leaf": "gate_up_proj"},
    ),
    Template(
        NAME,
        f"{FORMAT}, down of experts",
        (EXPERTS, Slot("_scale", "F32", "[*E, N, 1]")),
        BY_OUTPUT,
        only={"leaf": "down_proj"},
    ),
)


@dataclass(frozen=True)
class Fbgemm:
    """A quantization_config with quant_method "fbgemm_fp8".

    Attributes:
        skipped: `modules_to_not_convert`: a module's name, its last part, or what it is part of.

    """

    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        pattern, doubtful = first_of(self.skipped, module, _skips)
        if pattern is not None:
            return Excluded(NAME, pattern)
        leaf = module.rpartition(".")[2]
        return None if doubtful else Declared(NAME, FORMAT, TEMPLATES, {"leaf": leaf})


def _skips(pattern: str, module: str) -> bool:
    return pattern in (module, module.rpartition(".")[2]) or f"{pattern}." in module


def _declare(companions: Companions) -> Fbgemm | None:
    for config in quantizations(companions):
        if config.get("quant_method") == FORMAT:
            return Fbgemm(texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(NAME, TEMPLATES, _declare)
