"""GPTQ, as AutoGPTQ, GPTQModel, Optimum and AutoRound write it.

Facts are from checkpoints that these tools wrote, and their configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions.configs import number_of, numbers, object_of, quantizations, text_of
from kiln_check.checkpoints.conventions.dynamic import dynamic_of
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    OWN_ORDER,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)

NAME = "GPTQ"

TEMPLATE = Template(
    NAME,
    "gptq",
    (
        Slot(".qweight", "I32", "[up(K, 32) * b / 32, N] | [ceil(K * b / 32), N]"),
        Slot(".qzeros", "I32", "[ceil(K / g), ceil(N * b / 32)]"),
        Slot(".scales", FLOATS, "[ceil(K / g), N]"),
        Slot(".g_idx", "I32", "[up(K, 32)] | [K]", "reordered"),
    ),
    OWN_ORDER,
    {"b": (4, 8, 3, 2), "g": (128, 64, 32, "K", 16, 256, 512, 1024)},
    fixed={"data_type": "int"},
)
"""Words go down the columns, which older packers pad to 32 rows; symmetric codes have zero points too."""

FORMATS = ("", "gptq", "gptq_v2")
"""Those with these tensors; the two versions differ in what is taken off a zero point."""

LM_HEAD = "lm_head"


@dataclass(frozen=True)
class Gptq:
    """The config of GPTQ.

    Attributes:
        config: as it stands.
        dynamic: settings of some modules by expressions; "-:" before one leaves them as they are.

    """

    config: dict[str, Any]
    dynamic: dict[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What the config says of a module: the first expression that matches it counts."""
        if self.config.get(LM_HEAD) is False and module.rpartition(".")[2] == LM_HEAD:
            return Excluded(NAME, LM_HEAD)
        found = dynamic_of(self.dynamic, module)
        if found.excluded is not None:
            return Excluded(NAME, found.excluded)
        return None if found.is_doubtful else _declared({**self.config, **found.settings})


def parameters_of(config: dict[str, Any]) -> dict[str, Value | bool]:
    """The width of an element and the group's size; -1 stands for a whole column."""
    size = config.get("group_size")
    found: dict[str, Value | bool] = {**numbers(b=number_of(config.get("bits")), g=number_of(size))}
    if size == -1:
        found["g"] = "K"
    if kind := text_of(config.get("data_type")):
        found["data_type"] = kind
    if config.get("desc_act") is True:
        found["reordered"] = True
    return found


def _declared(config: dict[str, Any]) -> Declared:
    format_ = text_of(config.get("checkpoint_format"))
    known = format_ in FORMATS and text_of(config.get("pack_dtype")) in ("", "int32")
    templates = (TEMPLATE,) if known and not config.get("is_marlin_format") else ()
    return Declared(NAME, format_ or "gptq", templates, parameters_of(config))


def _config(companions: Companions) -> dict[str, Any] | None:
    for config in quantizations(companions):
        method = text_of(config.get("quant_method"))
        if method == "gptq":
            return config
        if method:
            return None
    config = companions.get("quantize_config.json", {})
    is_gptq = (
        text_of(config.get("quant_method")) in ("", "gptq") and "bits" in config and "group_size" in config
    )
    return config if is_gptq else None


def _declare(companions: Companions) -> Gptq | None:
    config = _config(companions)
    return None if config is None else Gptq(config, object_of(config.get("dynamic")))


TOOL = Tool(NAME, (TEMPLATE,), _declare)
