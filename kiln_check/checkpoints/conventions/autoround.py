"""AutoRound in its own format, which takes the tensors of other tools and some of its own.

What it exports as GPTQ, AWQ or compressed-tensors has the config of those. Facts are from its source:
`auto_round/export/export_to_autoround`, `auto_round/inference/convert_model.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions import awq, compressed_tensors, gptq
from kiln_check.checkpoints.conventions.configs import (
    kind_of_float,
    number_of,
    numbers,
    object_of,
    pair_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.patterns import finds_expression
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    FLOATS,
    ONE_SCALE,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)
from kiln_check.constants import MOST_PATTERNS

NAME = "AutoRound"

KIND = "data_type"
"""The parameter that says what kind of numbers weights are."""

METHODS = ("auto-round", "auto_round", "intel/auto-round")

FULL_PRECISION = 16
"""Bits from which a module is left as it is."""

_WEIGHT = Slot(".weight", "F8_E4M3", "[N, K]")
_INPUT = Slot(".input_scale", FLOATS, "[1] | []", "static")

FIXED: Mapping[str, Value] = {"b": 8, "fmt": "e4m3"}

FP8_BLOCK = Template(
    NAME,
    "fp8 in blocks",
    (_WEIGHT, Slot(".weight_scale_inv", FLOATS, "[ceil(N / r), ceil(K / c)]"), _INPUT),
    BLOCKS,
    {"r": (128,), "c": (128,)},
    fixed=FIXED,
)
FP8_CHANNEL = Template(
    NAME,
    "fp8 by channel",
    (_WEIGHT, Slot(".weight_scale", FLOATS, "[N] | [N, 1]"), _INPUT),
    Hold("f8e4m3", "K", ".weight_scale"),
    fixed=FIXED,
)
FP8_TENSOR = Template(
    NAME,
    "fp8 with one scale",
    (_WEIGHT, Slot(".weight_scale", FLOATS, "[1] | []"), _INPUT),
    ONE_SCALE,
    fixed=FIXED,
)

WHOLE: Mapping[str, Value] = {FP8_BLOCK.format: "two numbers", FP8_CHANNEL.format: -1, FP8_TENSOR.format: 0}
"""The group_size that a config says, by format."""

COMPRESSED = (
    ("nv_fp", 4, compressed_tensors.NVFP4),
    ("mx_fp", 4, compressed_tensors.MXFP4),
    ("mx_fp", 8, compressed_tensors.MXFP8),
)
"""Kinds of numbers and their bits, with the format of compressed-tensors that they are packed in."""

_EXPRESSION_SIGNS = frozenset(r"*+?^$()[]{}|\\")
"""What tells an expression from a name among the keys of `extra_config`."""


@dataclass(frozen=True)
class AutoRound:
    """The config of AutoRound.

    Attributes:
        config: as it stands.
        blocks: how the names of quantized modules begin; all modules where there are none.
        own: settings of some modules, by names or expressions.

    """

    config: dict[str, Any]
    blocks: tuple[str, ...]
    own: dict[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What the config says of a module."""
        key, doubtful = self._key(module)
        if doubtful or (key is None and self.blocks and not module.startswith(self.blocks)):
            return None
        settings = {**self.config, **(object_of(self.own.get(key)) if key is not None else {})}
        bits = number_of(settings.get("bits"))
        if bits is not None and bits >= FULL_PRECISION:
            return Excluded(NAME, key or "bits")
        format_ = text_of(self.config.get("packing_format"))
        templates, parameters = _stored(format_, settings)
        return Declared(
            NAME, format_ or text_of(settings.get("data_type")), templates, parameters, key == module
        )

    def _key(self, module: str) -> tuple[str | None, bool]:
        """The key of a module's own settings, and whether one that can't be told might be it."""
        if module in self.own:
            return module, False
        for number, key in enumerate(self.own):
            if number == MOST_PATTERNS:
                return None, True
            found = not _EXPRESSION_SIGNS.isdisjoint(key) and finds_expression(key, module)
            if found is not False:
                return (key, False) if found else (None, True)
        return None, False


def _stored(format_: str, settings: dict[str, Any]) -> tuple[tuple[Template, ...], dict[str, Value | bool]]:
    """The templates of a packing format, and their parameters."""
    kind = text_of(settings.get("data_type")) or "int"
    if "awq" in format_:
        parameters = awq.parameters_of(settings.get("bits"), settings.get("group_size"))
        return _of_kind("int", awq.GEMM), {**parameters, KIND: kind}
    if "llm_compressor" in format_:
        return _compressed(kind, settings)
    if kind in ("fp", "fp8") or "fp8" in format_:
        templates, parameters = _fp8(settings)
        return _of_kind("fp", *templates), {**parameters, KIND: kind.removesuffix("8")}
    if any(part in format_ for part in ("gptq", "exllama", "triton")) or (kind == "int" and not format_):
        return _of_kind("int", gptq.TEMPLATE), {**gptq.parameters_of(settings), KIND: kind}
    return (), {}


def _of_kind(kind: str, *templates: Template) -> tuple[Template, ...]:
    """Templates of which the config says the kind of numbers."""
    return tuple(template._replace(fixed={**template.fixed, KIND: kind}) for template in templates)


def _compressed(kind: str, settings: dict[str, Any]) -> tuple[tuple[Template, ...], dict[str, Value | bool]]:
    """The formats of compressed-tensors that AutoRound packs in."""
    bits = number_of(settings.get("bits"))
    family = "_".join(kind.split("_")[:2]).removesuffix("4").removesuffix("8")
    parameters: dict[str, Value | bool] = {KIND: family, **numbers(b=bits)}
    templates = tuple(
        template
        for of, width, name in COMPRESSED
        if (of, width) == (family, bits) or (family, bits) not in {one[:2] for one in COMPRESSED}
        for template in _of_kind(of, *compressed_tensors.BY_FORMAT[name])
    )
    if (size := number_of(settings.get("group_size"))) is not None:
        parameters["g"] = size
    if "static_gs" in text_of(settings.get("act_data_type")):
        parameters["input_global"] = True
    return templates, parameters


def _fp8(settings: dict[str, Any]) -> tuple[tuple[Template, ...], dict[str, Value | bool]]:
    """Bytes with a scale for each block, row or matrix, by the group's size."""
    parameters: dict[str, Value | bool] = {
        **numbers(b=number_of(settings.get("bits"))),
        **kind_of_float(settings),
    }
    if settings.get("act_dynamic") is False and settings.get("act_bits") == 8:
        parameters["static"] = True
    size = settings.get("group_size")
    block = pair_of(settings.get("weight_block_size")) or pair_of(size)
    if block is not None:
        other = pair_of(size) or block
        stated = FP8_BLOCK._replace(fixed={**FP8_BLOCK.fixed, "group_size": f"{list(block)}"})
        return (stated,), {**parameters, "r": block[0], "c": block[1], "group_size": f"{list(other)}"}
    by_size = {-1: FP8_CHANNEL, 0: FP8_TENSOR}
    template = by_size.get(size) if type(size) is int else None
    if template is not None:
        return (template,), parameters
    whole: tuple[Template, ...] = (FP8_BLOCK, FP8_CHANNEL, FP8_TENSOR)
    if type(size) is int:
        parameters["group_size"] = size
        return tuple(
            one._replace(fixed={**one.fixed, "group_size": WHOLE[one.format]}) for one in whole
        ), parameters
    return whole, parameters


def _blocks(config: dict[str, Any]) -> tuple[str, ...]:
    """How names of quantized modules begin: a list, or texts with commas between."""
    for key in ("block_name_to_quantize", "to_quant_block_names"):
        found = config.get(key)
        if isinstance(found, list) and found:
            nested = [one for part in found for one in (part if isinstance(part, list) else [part])]
            return texts_of(nested)
        if text := text_of(found):
            return tuple(name.strip() for name in text.split(",") if name.strip())
    return ()


def _declare(companions: Companions) -> AutoRound | None:
    for config in quantizations(companions):
        if text_of(config.get("quant_method")) in METHODS:
            return AutoRound(config, _blocks(config), object_of(config.get("extra_config")))
    return None


TOOL = Tool(NAME, (FP8_BLOCK, FP8_CHANNEL, FP8_TENSOR), _declare)
