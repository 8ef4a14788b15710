"""NVIDIA ModelOpt: what each of its algorithms stores, and its hf_quant_config.json.

Facts are from its source: `torch/export/quant_utils.py`, `torch/export/convert_hf_config.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    numbers,
    object_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.patterns import first_of, matches_glob
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    FLOATS,
    ONE_SCALE,
    OPTIONAL,
    PER_EXPERT,
    SWIZZLED,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
    fused,
)

NAME = "ModelOpt"

CONFIG = "hf_quant_config.json"

MIXED = "MIXED_PRECISION"
"""What stands for the algorithm where each layer has its own."""

ACROSS = "bytes that hold elements of two rows"

STATIC = "static"
"""The parameter by which inputs have a scale that is measured beforehand."""

WEIGHT, SCALE, OUTER = ".weight", ".weight_scale", ".weight_scale_2"

ONE = "[] | [1]"
EACH = "[] | [1] | [*E] | [*E, 1] | [*E, 2]"
"""One, or one or two for each expert: gate and up may lie in one tensor."""

GROUPS = "[*E, N, K / g]"
CHANNELS = "[*E, N]"

INPUT = Slot(".input_scale", "F32", ONE, STATIC)
INPUT_FACTORS = Slot(".pre_quant_scale", FLOATS, "[K]", OPTIONAL)
"""What inputs are multiplied by; it may be part of the norm before."""

PAIRS = Slot(WEIGHT, "U8", "[*E, N, K / 2]")
BYTES = Slot(WEIGHT, "F8_E4M3", "[*E, N, K]")
INTEGERS = Slot(WEIGHT, "I8", "[*E, N, K]")
ROW_PAIRS = Slot(WEIGHT, "U8", "[*E, N / 2, K]")

NVFP4_SCALE = Slot(SCALE, "F8_E4M3", GROUPS)
MX_SCALE = Slot(SCALE, "U8 F8_E8M0", "[*E, N, K / 32]")
NVFP4_GROUPS = {"g": (16,)}

BLOCK_SHAPES = "[ceil(N / 128), 1, ceil(K / 128), 1] | [ceil(N / 128), 1, ceil(K / 128)]"

BIAS_OF_EITHER = Slot(".bias", FLOATS, "[*E, N] | [*E, K]", OPTIONAL)
"""Of fused experts, whose outputs may run along either dimension."""


CACHE = (Slot(".k_scale", "F32", ONE, OPTIONAL), Slot(".v_scale", "F32", ONE, OPTIONAL))
"""Of the modules that make keys and values, where the cache is quantized and has scales."""


def _nvfp4(algorithm: str, *others: Slot) -> tuple[Template, ...]:
    """NVFP4 as it is; with an outer scale for each expert; with scales in a tensor core's order."""
    hold = Hold("e2m1", "g", SCALE, outer=OUTER)
    one, each = Slot(OUTER, "F32", ONE), Slot(OUTER, "F32", "[*E] | [*E, 1] | [*E, 2]")
    tiles = Slot(SCALE, "U8", "[up(N, 128) * up(K / g, 4)]")
    return (
        Template(NAME, algorithm, (PAIRS, NVFP4_SCALE, one, *others), hold, NVFP4_GROUPS),
        Template(
            NAME,
            f"{algorithm}, outer scales by expert",
            (PAIRS, NVFP4_SCALE, each, *others),
            PER_EXPERT,
            NVFP4_GROUPS,
        ),
        Template(
            NAME,
            f"{algorithm}, swizzled",
            (Slot(WEIGHT, "U8", "[N, K / 2]"), tiles, one, *others),
            SWIZZLED,
            NVFP4_GROUPS,
        ),
    )


def _one(algorithm: str, holds: Hold | str, *slots: Slot) -> tuple[Template, ...]:
    return (Template(NAME, algorithm, slots, holds),)


MX4 = Hold("e2m1", "32", SCALE, "e8m0")
MX8 = Hold("f8e4m3", "32", SCALE, "e8m0")
CHANNEL8 = Hold("i8", "K", SCALE)

MODULES: Mapping[str, tuple[Template, ...]] = {
    "NVFP4": _nvfp4("NVFP4", INPUT),
    "NVFP4_AWQ": _nvfp4("NVFP4_AWQ", INPUT, INPUT_FACTORS),
    "W4A16_NVFP4": _nvfp4("W4A16_NVFP4"),
    "W4A8_NVFP4_FP8": _nvfp4("W4A8_NVFP4_FP8", INPUT),
    "FP8": _one("FP8", ONE_SCALE, BYTES, Slot(SCALE, "F32", "[] | [1] | [*E] | [*E, 1]"), INPUT),
    "FP8_PER_CHANNEL_PER_TOKEN": _one(
        "FP8_PER_CHANNEL_PER_TOKEN",
        Hold("f8e4m3", "K", SCALE),
        BYTES,
        Slot(SCALE, "F32", f"{CHANNELS} | [*E, N, 1]"),
    ),
    "FP8_PB_WO": (
        Template(
            NAME,
            "FP8_PB_WO",
            (
                Slot(WEIGHT, "F8_E4M3", "[N, K]"),
                Slot(SCALE, "F32", f"{BLOCK_SHAPES} | [ceil(N / 128), ceil(K / 128)]"),
            ),
            BLOCKS,
        ),
        Template(
            NAME,
            "FP8_PB_WO, one block",
            (Slot(WEIGHT, "F8_E4M3", "[N, K]"), Slot(SCALE, "F32", "[]")),
            ONE_SCALE,
        ),
    ),
    "MXFP4": _one("MXFP4", MX4, PAIRS, MX_SCALE),
    "W4A8_MXFP4_FP8": _one("W4A8_MXFP4_FP8", MX4, PAIRS, MX_SCALE, INPUT),
    "MXFP8": _one("MXFP8", MX8, BYTES, MX_SCALE),
    "W4A16_AWQ": _one("W4A16_AWQ", ACROSS, ROW_PAIRS, Slot(SCALE, FLOATS, GROUPS), INPUT_FACTORS),
    "W4A8_AWQ": _one(
        "W4A8_AWQ",
        ACROSS,
        ROW_PAIRS,
        Slot(SCALE, FLOATS, GROUPS),
        Slot(OUTER, "F32", ONE),
        INPUT_FACTORS,
    ),
    "W8A8_SQ_PER_CHANNEL": _one(
        "W8A8_SQ_PER_CHANNEL",
        CHANNEL8,
        INTEGERS,
        Slot(SCALE, "F32", CHANNELS),
        Slot(".input_scale", "F32", ONE),
        INPUT_FACTORS,
    ),
    "W8A16": _one("W8A16", CHANNEL8, INTEGERS, Slot(SCALE, "F32", CHANNELS)),
}
"""What each algorithm stores for a module. Those of which the source shows too little are not here."""

DOWN_COLUMNS = Template(
    NAME,
    "NVFP4, fused experts down the columns",
    (
        Slot("", "U8", "[*E, K / 2, N]"),
        Slot("_weight_scale", "F8_E4M3", "[*E, K / g, N]"),
        Slot("_weight_scale_2", "F32", ONE),
        Slot("_input_scale", "F32", EACH, STATIC),
    ),
    ACROSS,
    NVFP4_GROUPS,
)
"""gpt-oss's experts, whose weights are transposed."""


def _named(template: Template) -> Template:
    """The same for experts in one tensor whose name ends with "_weight": `w13_weight`."""
    whole = fused(template)
    weight, *others = whole.slots
    return whole._replace(slots=(weight._replace(suffix="_weight"), *others))


def _with_facts(algorithm: str, template: Template) -> Template:
    """The same with what config_groups say of it in their own words."""
    width = 4 if "4" in algorithm.split("A")[0] else 8
    groups: Mapping[str, Value] = {"g": 32} if "MX" in algorithm else {}
    return template._replace(fixed={"b": width, **groups})


def _experts(template: Template) -> tuple[Template, Template]:
    slots = (slot._replace(shape=EACH) if slot == INPUT else slot for slot in template.slots)
    wide = template._replace(slots=(*slots, BIAS_OF_EITHER))
    return fused(wide), _named(wide)


FUSED_FORMATS = (
    "NVFP4",
    "W4A16_NVFP4",
    "W4A8_NVFP4_FP8",
    "FP8",
    "FP8_PER_CHANNEL_PER_TOKEN",
    "MXFP4",
    "MXFP8",
)

BY_ALGORITHM: Mapping[str, tuple[Template, ...]] = {
    algorithm: (
        *(
            template._replace(slots=(*template.slots, *CACHE))
            for template in templates
            if template.holds != PER_EXPERT
        ),
        *(
            one
            for template in templates
            if algorithm in FUSED_FORMATS and template.holds != SWIZZLED
            for one in _experts(template)
        ),
        *((_with_facts(algorithm, DOWN_COLUMNS),) if algorithm == "NVFP4" else ()),
    )
    for algorithm, templates in (
        (name, tuple(_with_facts(name, one) for one in templates)) for name, templates in MODULES.items()
    )
}


TEMPLATES = tuple(one for templates in BY_ALGORITHM.values() for one in templates)


class _Patterns:
    """The modules that `exclude_modules` leaves as they are: by name, by its start, or by a glob.

    A pattern that is a module's name, or a glob that matches it, covers what is within the module.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._starts: list[str] = []
        self._globs: list[str] = []
        for pattern in patterns:
            if not set("*?[") & set(pattern):
                self._names.add(pattern)
            elif pattern.endswith("*") and not set("*?[") & set(pattern[:-1]):
                self._starts.append(pattern[:-1])
            else:
                self._globs.append(pattern)
        self._all_starts = tuple(self._starts)

    def first(self, module: str) -> tuple[str | None, bool]:
        """The first pattern that covers a module, and whether one that can't be told might."""
        for name in _within(module) if self._names else ():
            if name in self._names:
                return name, False
        if module.startswith(self._all_starts):
            return next(f"{start}*" for start in self._starts if module.startswith(start)), False
        return first_of(self._globs, module, _covers)


def _covers(pattern: str, module: str) -> bool | None:
    if set("?[") & set(pattern):
        return None
    return any(matches_glob(pattern, name) for name in _within(module))


def _within(module: str) -> Iterator[str]:
    """A module's name, then those of the modules that it is part of."""
    yield module
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


@dataclass(frozen=True)
class ModelOpt:
    """The config of ModelOpt.

    Attributes:
        config: algorithm and group size of all modules, or MIXED.
        layers: those of single modules by name, where the algorithm is MIXED.
        excluded: the modules that stay as they are.
        static: the modules whose inputs have a scale that is measured beforehand; "Linear" stands for all.
        bits: of an element, by the modules that a group of config.json names; "Linear" stands for all.

    """

    config: dict[str, Any]
    layers: dict[str, Any]
    excluded: _Patterns
    static: frozenset[str]
    bits: Mapping[str, int]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        pattern, doubtful = self.excluded.first(module)
        if pattern is not None:
            return Excluded(NAME, pattern)
        if doubtful:
            return None
        if not self._is_mixed:
            return self._declared(self.config, module, False)
        for name in _within(module):
            if name in self.layers:
                return self._declared(object_of(self.layers[name]), module, name == module)
        return None

    @cached_property
    def _is_mixed(self) -> bool:
        return text_of(self.config.get("quant_algo")).upper() == MIXED

    @cached_property
    def _known(self) -> dict[object, Declared]:
        """What is said of modules, by what it depends on."""
        return {}

    def _declared(self, config: dict[str, Any], module: str, named: bool) -> Declared:
        bits = self.bits.get(module, self.bits.get("Linear"))
        static = "Linear" in self.static or module in self.static
        key = (id(config), bits, static, named)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _said(config, numbers(b=bits), static, named)
        return known


def _said(config: dict[str, Any], bits: Mapping[str, int], static: bool, named: bool) -> Declared:
    """What a config says of a module."""
    algorithm = text_of(config.get("quant_algo"))
    if not algorithm:
        return Declared(NAME, "without quant_algo", TEMPLATES)
    parameters: dict[str, Value | bool] = {**numbers(g=number_of(config.get("group_size"))), **bits}
    if static:
        parameters[STATIC] = True
    return Declared(NAME, algorithm, BY_ALGORITHM.get(algorithm.upper(), ()), parameters, named)


def _configs(companions: Companions) -> Iterator[dict[str, Any]]:
    """What says how weights are quantized: the tool's own file first, then config.json."""
    own = object_of(companions.get(CONFIG))
    if object_of(own.get("quantization")):
        yield object_of(own["quantization"])
    for config in quantizations(companions):
        if text_of(config.get("quant_method")).startswith("modelopt"):
            yield {**config, **object_of(config.get("quantization"))}


def _static(groups: dict[str, Any]) -> Iterator[str]:
    """The targets of groups in config.json whose inputs have a scale."""
    for group in map(object_of, groups.values()):
        if object_of(group.get("input_activations")).get("dynamic") is False:
            yield from texts_of(group.get("targets"))


def _bits(groups: dict[str, Any]) -> dict[str, int]:
    """The width of an element by the targets of groups in config.json."""
    found: dict[str, int] = {}
    for group in map(object_of, groups.values()):
        bits = number_of(object_of(group.get("weights")).get("num_bits"))
        if bits is not None:
            found.update(dict.fromkeys(texts_of(group.get("targets")), bits))
    return found


def _group_size(groups: dict[str, Any]) -> int | None:
    """The size on which all groups agree."""
    sizes = {number_of(object_of(object_of(one).get("weights")).get("group_size")) for one in groups.values()}
    return sizes.pop() if len(sizes) == 1 else None


def _declare(companions: Companions) -> ModelOpt | None:
    merged: dict[str, Any] = {}
    excluded: list[str] = []
    groups: dict[str, Any] = {}
    for config in _configs(companions):
        merged = {**config, **{key: value for key, value in merged.items() if value is not None}}
        excluded += (*texts_of(config.get("exclude_modules")), *texts_of(config.get("ignore")))
        groups = groups or object_of(config.get("config_groups"))
    if not merged:
        return None
    merged["group_size"] = number_of(merged.get("group_size")) or _group_size(groups)
    return ModelOpt(
        merged,
        object_of(merged.get("quantized_layers")),
        _Patterns(dict.fromkeys(excluded)),
        frozenset(_static(groups)),
        _bits(groups),
    )


TOOL = Tool(NAME, TEMPLATES, _declare)
