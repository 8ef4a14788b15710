"""AWQ, as AutoAWQ and AutoRound write it.

Facts are from checkpoints that these tools wrote, and their configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    numbers,
    object_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.dynamic import dynamic_of
from kiln_check.checkpoints.conventions.patterns import first_of
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

NAME = "AWQ"

GEMM = Template(
    NAME,
    "gemm",
    (
        Slot(".qweight", "I32", "[K, N * b / 32]"),
        Slot(".qzeros", "I32", "[K / g, N * b / 32]"),
        Slot(".scales", FLOATS, "[K / g, N]"),
    ),
    OWN_ORDER,
    {"b": (4,), "g": (128, 64, 32, "K")},
    fixed={"data_type": "int"},
)
"""Words go along the rows, which are the weight's columns."""

GEMV = Template(
    NAME,
    "gemv",
    (
        Slot(".qweight", "I32", "[N, K * b / 32]"),
        Slot(".qzeros", "I32", "[N, up(ceil(K / (g * 8)), m)]"),
        Slot(".scales", FLOATS, "[N, up(ceil(K / (g * 8)), m) * 8]"),
    ),
    OWN_ORDER,
    {"b": (4,)},
    fixed={"data_type": "int"},
)
"""Rows of zero points and scales are padded to m words of 8."""

TEMPLATES = {"gemm": GEMM, "gemv": GEMV}

PADDING = {64: 2, 32: 4}
"""Words that a row of zero points is a multiple of, by the group's size; 1 for the others."""


@dataclass(frozen=True)
class Awq:
    """The config of AWQ.

    Attributes:
        version: of the order of words; "gemm" where the config does not say.
        parameters: of all modules.
        dynamic: settings of some modules, in GPTQModel's configs.
        ignore: parts of the names of modules that are left as they are.

    """

    version: str
    parameters: dict[str, Value | bool]
    dynamic: dict[str, Any]
    ignore: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What the config says of a module."""
        pattern, doubtful = first_of(self.ignore, module, lambda part, name: bool(part) and part in name)
        if pattern is not None:
            return Excluded(NAME, pattern)
        template = TEMPLATES.get(self.version)
        own = dynamic_of(self.dynamic, module)
        if own.excluded is not None:
            return Excluded(NAME, own.excluded)
        if doubtful or own.is_doubtful:
            return None
        settings = own.settings
        parameters = {**self.parameters, **parameters_of(settings.get("bits"), settings.get("group_size"))}
        return Declared(NAME, self.version, () if template is None else (template,), parameters)


def parameters_of(bits: object, size: object) -> dict[str, Value | bool]:
    """The width of an element, the group's size and the padding; -1 stands for a whole column."""
    group = number_of(size)
    padding = None if group is None else PADDING.get(group, 1)
    found: dict[str, Value | bool] = {**numbers(b=number_of(bits), g=group, m=padding)}
    if size == -1:
        found["g"] = "K"
    return found


def _config(companions: Companions) -> dict[str, Any] | None:
    for config in quantizations(companions):
        method = text_of(config.get("quant_method"))
        if method == "awq":
            return config
        if method:
            return None
    config = companions.get("quant_config.json", {})
    return config if "w_bit" in config and "q_group_size" in config else None


def _declare(companions: Companions) -> Awq | None:
    config = _config(companions)
    if config is None:
        return None
    bits, size = config.get("bits", config.get("w_bit")), config.get("group_size", config.get("q_group_size"))
    version = text_of(config.get("version")).lower() or "gemm"
    parameters = parameters_of(bits, size)
    if kind := text_of(config.get("data_type")):
        parameters["data_type"] = kind
    return Awq(
        version, parameters, object_of(config.get("dynamic")), texts_of(config.get("modules_to_not_convert"))
    )


TOOL = Tool(NAME, (GEMM, GEMV), _declare)
