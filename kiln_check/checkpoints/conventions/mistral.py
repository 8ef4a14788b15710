"""Mistral's own names in `consolidated*.safetensors`: `X.weight` with `X.qscale_weight` and `X.qscale_act`.

The config is `quantization` in params.json. Sources: Mistral's checkpoints; vLLM's reader of params.json;
transformers' quantizer for FP8, which renames `.qscale_weight` to `.weight_scale_inv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import object_of, text_of
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    FLOATS,
    ONE_SCALE,
    OPTIONAL,
    Companions,
    Declared,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "Mistral"
PARAMS = "params.json"
LAYERS = "layers."
"""How the names of quantized modules begin; names in the Hub's layout begin otherwise."""

TENSOR = Template(
    NAME,
    "fp8_e4m3, one scale",
    (
        Slot(".weight", "F8_E4M3", "[*E, N, K]"),
        Slot(".qscale_weight", FLOATS, "[] | [1]"),
        Slot(".qscale_act", FLOATS, "[] | [1]", "static"),
    ),
    ONE_SCALE,
)

SCALED_BLOCKS = Template(
    NAME,
    "fp8_e4m3, blocks",
    (
        Slot(".weight", "F8_E4M3", "[*E, N, K]"),
        Slot(".qscale_weight", f"{FLOATS} F8_E8M0", "[*E, ceil(N / r), ceil(K / c)]"),
        Slot(".qscale_act", FLOATS, "[] | [1]", OPTIONAL),
    ),
    BLOCKS,
    options={"r": (128, 64, 32, 16, 256), "c": ("r",)},
)

ROWS = Template(
    NAME,
    "fp8_e4m3, groups in rows",
    (
        Slot(".weight", "F8_E4M3", "[*E, N, K]"),
        Slot(".qscale_weight", "F8_E8M0", "[*E, N, ceil(K / c)]"),
        Slot(".qscale_act", FLOATS, "[] | [1]", OPTIONAL),
    ),
    Hold("f8e4m3", "c", ".qscale_weight"),
    options={"c": (32, 128, 64, 16)},
)

TEMPLATES = (TENSOR, SCALED_BLOCKS, ROWS)


class _Scheme(NamedTuple):
    """`quantization` of params.json."""

    declared: Declared
    tool: str = NAME

    def of(self, module: str) -> Declared | None:
        return self.declared if module.startswith(LAYERS) else None


def _declare(companions: Companions) -> _Scheme | None:
    config = object_of(object_of(companions.get(PARAMS)).get("quantization"))
    if not config:
        return None
    format_ = text_of(config.get("qformat_weight"))
    parameters: Mapping[str, Value | bool] = {"static": True} if config.get("qscheme_act") == "TENSOR" else {}
    templates = TEMPLATES if format_ == "fp8_e4m3" else ()
    return _Scheme(Declared(NAME, format_ or "unknown", templates, parameters))


TOOL = Tool(NAME, TEMPLATES, _declare, marks=(".qscale_weight", ".qscale_act"), is_apart=True)
