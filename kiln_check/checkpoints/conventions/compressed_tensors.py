"""compressed-tensors, which llm-compressor and others write: what its formats store, and its config.

Facts are from its source: `compressors/*/base.py`, `utils/match.py`, `quantization/quant_args.py`; marlin-24
and the sparse formats from release 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    numbers,
    object_of,
    pair_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.patterns import first_of, matches_expression
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    ACTIVATION_ORDER,
    BLOCKS,
    FAKE,
    FLOATS,
    ONE_SCALE,
    OPTIONAL,
    SPARSE,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
    by_format,
    integers,
)

NAME = "compressed-tensors"

NVFP4 = "nvfp4-pack-quantized"
MXFP4 = "mxfp4-pack-quantized"
MXFP8 = "mxfp8-quantized"
FLOATS_OF_8_BITS = "float-quantized"
MIXED = "mixed-precision"
"""What stands for the format where each group has its own."""

KV_CACHE = "kv_cache_scheme"

SCALE = ".weight_scale"
ZERO_POINT = ".weight_zero_point"
GROUP_INDEX = ".weight_g_idx"
GLOBAL_SCALE = ".weight_global_scale"
PACKED = ".weight_packed"

ONE = "[1] | []"

GROUP_SIZES: Mapping[str, Sequence[Value]] = {"g": (128, 32, 64, 16, 256)}
BLOCK: Mapping[str, Sequence[Value]] = {"r": (128,), "c": (128,)}
OPTIONS = {"group": GROUP_SIZES, "block": BLOCK}
"""Usual sizes, by strategy."""

ONE_EACH = ("naive-quantized", "int-quantized", FLOATS_OF_8_BITS)
"""Formats of an element a byte: the tool packs them alike, and the type of the weights tells the dtype."""

STRATEGIES = {
    "tensor": (ONE, ONE_SCALE),
    "channel": ("[*E, N, 1]", "K"),
    "group": ("[*E, N, ceil(K / g)]", "g"),
    "block": ("[*E, ceil(N / r), ceil(K / c)]", BLOCKS),
}
"""The scale's shape, and the elements along a row that share one or the reason why that can't be said."""

_ACTIVATIONS = (
    Slot(".input_scale", FLOATS, ONE, "static"),
    Slot(".input_zero_point", "I8 F8_E4M3", ONE, OPTIONAL),
)
_INPUT_GLOBAL = Slot(".input_global_scale", "F32", ONE, "input_global")
_MX_SCALE = Slot(SCALE, "U8 F8_E8M0", "[*E, N, ceil(K / g)]")
_UNFIT = ((ZERO_POINT, ZERO_POINTS), (GROUP_INDEX, ACTIVATION_ORDER))


def _hold(dtype: str, strategy: str, whole: str | None = None) -> Hold | str:
    group = STRATEGIES[strategy][1]
    return Hold(dtype, group, SCALE, unless=_UNFIT, whole=whole) if group in ("K", "g") else group


def _packed(strategy: str) -> Template:
    """Integers of b bits in words, low bits first, offset by half their range and so unsigned."""
    shape = STRATEGIES[strategy][0]
    zeros = "[*E, ceil(N * b / 32), 1]" if strategy == "channel" else "[*E, ceil(N * b / 32), ceil(K / g)]"
    zero_point = ("I8", shape) if strategy in ("tensor", "block") else ("I32", zeros)
    slots = (
        Slot(PACKED, "I32", "[*E, N, ceil(K * b / 32)]"),
        Slot(SCALE, FLOATS, shape),
        Slot(".weight_shape", "I64 I32", "[2]", gives=integers("N", "K")),
        Slot(ZERO_POINT, *zero_point, "not symmetric"),
        Slot(GROUP_INDEX, "I32", "[K]", "reordered"),
        *_ACTIVATIONS,
        _INPUT_GLOBAL,
    )
    options: dict[str, Sequence[Value]] = {"b": (4, 8, 2, 3, 5, 6, 7), **OPTIONS.get(strategy, {})}
    return Template(
        NAME, f"pack-quantized, {strategy}", slots, _hold("u{b}", strategy, "K * b / 32"), options
    )


def _whole(format_: str, source_dtype: str, dtype: str, strategy: str) -> Template:
    """An element a byte."""
    shape = STRATEGIES[strategy][0]
    slots = (
        Slot(".weight", source_dtype, "[*E, N, K]"),
        Slot(SCALE, f"{FLOATS} F8_E8M0" if strategy == "block" else FLOATS, shape),
        Slot(ZERO_POINT, "I8 F8_E4M3", shape, "not symmetric"),
        Slot(GROUP_INDEX, "I32", "[K]", "reordered"),
        *_ACTIVATIONS,
    )
    holds, options = _hold(dtype, strategy), OPTIONS.get(strategy, {})
    fixed: Mapping[str, Value] = {"b": 8} if format_ == FLOATS_OF_8_BITS else {}
    return Template(NAME, f"{format_}, {strategy}", slots, holds, options, fixed=fixed)


def _dense(strategy: str) -> Template:
    """What is saved before compression: the weight in full precision beside its scale."""
    shape = STRATEGIES[strategy][0]
    slots = (
        Slot(".weight", FLOATS, "[*E, N, K]"),
        Slot(SCALE, FLOATS, shape),
        Slot(ZERO_POINT, "I8 F8_E4M3", shape, "asymmetric"),
        Slot(GROUP_INDEX, "I32", "[K]", "reordered"),
        Slot(GLOBAL_SCALE, "F32", ONE, "outer"),
        *_ACTIVATIONS,
        _INPUT_GLOBAL,
    )
    return Template(NAME, f"dense, {strategy}", slots, FAKE)


def _sparse24(format_: str, dtypes: str, *scales: Slot) -> Template:
    """Two of each four elements, and a bit for each element."""
    slots = (
        Slot(".compressed", dtypes, "[N, K / 2]"),
        Slot(".bitmask", "U8", "[N, ceil(K / 8)]"),
        Slot(".shape", "I64", "[2, 1]", gives=integers("N", "K")),
        *scales,
    )
    fixed: Mapping[str, Value] = {"b": 8} if dtypes == "F8_E4M3" else {}
    return Template(NAME, format_, slots, SPARSE, fixed=fixed)


_FP4 = Slot(PACKED, "U8", "[*E, N, K / 2]")

TEMPLATES = (
    Template(
        NAME,
        NVFP4,
        (
            _FP4,
            Slot(SCALE, "F8_E4M3", "[*E, N, K / g]"),
            Slot(GLOBAL_SCALE, "F32", ONE),
            _INPUT_GLOBAL,
        ),
        Hold("e2m1", "g", SCALE, outer=GLOBAL_SCALE),
        {"g": (16,)},
        fixed={"b": 4},
    ),
    Template(
        NAME,
        MXFP4,
        (_FP4, _MX_SCALE._replace(shape="[*E, N, K / g]")),
        Hold("e2m1", "g", SCALE, "e8m0"),
        {"g": (32,)},
        fixed={"b": 4},
    ),
    Template(
        NAME,
        MXFP8,
        (Slot(".weight", "F8_E4M3", "[*E, N, K]"), _MX_SCALE),
        Hold("f8e4m3", "g", SCALE, "e8m0"),
        {"g": (32,)},
        fixed={"b": 8},
    ),
    *(_packed(strategy) for strategy in STRATEGIES),
    *(_whole("int-quantized", "I8", "i8", strategy) for strategy in STRATEGIES),
    *(_whole(FLOATS_OF_8_BITS, "F8_E4M3", "f8e4m3", strategy) for strategy in STRATEGIES),
    *(_dense(strategy) for strategy in STRATEGIES),
    Template(
        NAME,
        "marlin-24",
        (
            Slot(PACKED, "I32", "[K / 32, N * b / 2]"),
            Slot(".scale_packed", "F16", "[ceil(K / g), N]"),
            Slot(".meta", "I16", "[K / 32, N * 2]"),
        ),
        SPARSE,
        {"b": (4, 8), "g": (128, "K")},
    ),
    _sparse24("sparse-24-bitmask", FLOATS),
    *(
        _sparse24(f"sparse-24-bitmask and {format_}, {strategy}", dtype, Slot(SCALE, FLOATS, shape), *others)
        for format_, dtype in ((FLOATS_OF_8_BITS, "F8_E4M3"), ("int-quantized", "I8"))
        for strategy, (shape, _) in STRATEGIES.items()
        for others in ((Slot(ZERO_POINT, "I8 F8_E4M3", shape, "not symmetric"), *_ACTIVATIONS),)
    ),
    Template(
        NAME,
        "sparse-bitmask",
        (
            Slot(".compressed", FLOATS, "[S]"),
            Slot(".bitmask", "U8", "[N, ceil(K / 8)]"),
            Slot(".shape", "I64", "[2, 1]", gives=integers("N", "K")),
            Slot(".row_offsets", "I64", "[N]"),
        ),
        SPARSE,
    ),
)

CACHE = Template(
    NAME,
    KV_CACHE,
    (
        Slot(".k_scale", FLOATS, ONE),
        Slot(".v_scale", FLOATS, ONE),
        Slot(".q_scale", FLOATS, ONE, OPTIONAL),
        Slot(".k_zero_point", "I8 F8_E4M3", ONE, OPTIONAL),
        Slot(".v_zero_point", "I8 F8_E4M3", ONE, OPTIONAL),
    ),
    ONE_SCALE,
)
"""What an attention stores for its cache; it holds no weight."""

BY_FORMAT = by_format(TEMPLATES)

QUANTIZED = tuple(one for one in TEMPLATES if one.holds != FAKE)

LINEAR, EMBEDDING = "Linear", "Embedding"


@dataclass(frozen=True)
class _Group:
    """A config group.

    Attributes:
        targets: names, expressions after "re:" and classes.
        format: of the modules.
        weights: the arguments of their quantization; empty where only activations are quantized.
        inputs: those of their inputs'.

    """

    targets: tuple[str, ...]
    format: str
    weights: dict[str, Any]
    inputs: dict[str, Any]


@dataclass(frozen=True)
class CompressedTensors:
    """The config of compressed-tensors.

    Attributes:
        groups: the config groups.
        ignore: names and expressions of modules that are left as they are.
        sparsity: what the config says of sparse weights.
        cache: the scheme of the key and value cache.

    """

    groups: tuple[_Group, ...]
    ignore: tuple[str, ...]
    sparsity: dict[str, Any]
    cache: dict[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What the config says of a module."""
        if _is_attention(module):
            return self._of_cache()
        pattern, doubtful = first_of(self.ignore, module, _matches)
        if pattern is not None:
            return Excluded(NAME, pattern)
        if doubtful:
            return None
        sparse = self._sparse_format(module)
        for step in (_is_name, _is_expression, _is_class):
            for group in self.groups:
                target, doubtful = first_of(group.targets, module, step)
                if doubtful:
                    return None
                if target is not None:
                    return _declared(group, sparse, target == module)
        if sparse:
            return Declared(NAME, sparse, BY_FORMAT.get(sparse, ()))
        return None if self.groups else Declared(NAME, "without groups", QUANTIZED)

    def _of_cache(self) -> Declared | None:
        """What an attention stores: only one scale for a whole cache is known."""
        if not self.cache or self.cache.get("dynamic") not in (False, None):
            return None
        known = text_of(self.cache.get("strategy")) in ("", "tensor")
        return Declared(NAME, KV_CACHE, (CACHE,) if known else ())

    def _sparse_format(self, module: str) -> str:
        """The format of sparse weights; empty where a module's are none."""
        format_ = text_of(self.sparsity.get("format"))
        if format_ in ("", "dense"):
            return ""
        ignored, _ = first_of(texts_of(self.sparsity.get("ignore")), module, _matches)
        targets = texts_of(self.sparsity.get("targets")) or (LINEAR,)
        found, _ = first_of(
            targets, module, lambda target, name: _matches(target, name) or _is_class(target, name)
        )
        return "" if ignored is not None or found is None else format_


def _declared(group: _Group, sparse: str, named: bool) -> Declared | None:
    """What a group says of its modules; None where it leaves their weights as they are."""
    if not group.weights:
        return None
    strategy = _strategy(group.weights)
    name = group.format
    if name in ONE_EACH:
        name = "int-quantized" if group.weights.get("type", "int") == "int" else FLOATS_OF_8_BITS
    prefix = f"{sparse} and " if sparse else ""
    full = prefix + name
    templates = (
        BY_FORMAT.get(f"{full}, {strategy}")
        or BY_FORMAT.get(full)
        or tuple(one for one in TEMPLATES if one.format.startswith(f"{full}, "))
    )
    return Declared(NAME, f"{prefix}{group.format}", templates, _parameters(group, strategy), named)


def _strategy(weights: dict[str, Any]) -> str:
    """What shares a scale; as compressed-tensors takes it where the config does not say."""
    strategy = text_of(weights.get("strategy"))
    if strategy == "tensor_group":
        return "group"
    if strategy:
        return strategy
    if weights.get("group_size") is None:
        return "tensor"
    return "group" if number_of(weights.get("group_size")) else "channel"


def _parameters(group: _Group, strategy: str) -> dict[str, Value | bool]:
    weights = group.weights
    rows_columns = pair_of(weights.get("block_structure")) or (None, None)
    found: dict[str, Value | bool] = {
        **numbers(
            b=number_of(weights.get("num_bits")),
            g=number_of(weights.get("group_size")) if strategy == "group" else None,
            r=rows_columns[0],
            c=rows_columns[1],
        ),
        "symmetric": weights.get("symmetric", True) is not False,
        "reordered": weights.get("actorder") in ("group", "dynamic") or weights.get("actorder") is True,
        "outer": weights.get("strategy") == "tensor_group",
    }
    if strategy == "channel":
        found["g"] = "K"
    if not found["symmetric"]:
        found["asymmetric"] = True
    dynamic = group.inputs.get("dynamic", False)
    if group.inputs and group.inputs.get("strategy") == "tensor_group":
        if dynamic is not True:
            found["input_global"] = True
    elif group.inputs and dynamic is False:
        found["static"] = True
    return found


def _matches(pattern: str, module: str) -> bool | None:
    return _is_name(pattern, module) or _is_expression(pattern, module)


def _is_name(pattern: str, module: str) -> bool:
    return pattern == module or ("." in pattern and module.endswith(f".{pattern}"))


def _is_expression(pattern: str, module: str) -> bool | None:
    return pattern.startswith("re:") and matches_expression(pattern.removeprefix("re:"), module)


def _is_class(target: str, module: str) -> bool:
    """Whether a class has a module; names tell embeddings from the rest."""
    return target == (EMBEDDING if _is_embedding(module) else LINEAR)


def _is_embedding(module: str) -> bool:
    last = module.rpartition(".")[2]
    return "embed" in last or last in ("wte", "wpe")


def _is_attention(module: str) -> bool:
    """Whether a module is a whole attention, which has scales of its cache and no weight."""
    return module.rpartition(".")[2].endswith(("attn", "attention"))


def _groups(config: dict[str, Any]) -> Iterator[_Group]:
    """The groups; a format of the whole checkpoint counts over a group's own, as for the tool's readers."""
    top = text_of(config.get("format"))
    for value in object_of(config.get("config_groups")).values():
        group = object_of(value)
        format_ = text_of(group.get("format")) if top in ("", MIXED) else top
        weights, inputs = object_of(group.get("weights")), object_of(group.get("input_activations"))
        yield _Group(texts_of(group.get("targets")) or (LINEAR,), format_, weights, inputs)


def _declare(companions: Companions) -> CompressedTensors | None:
    for config in quantizations(companions):
        method = text_of(config.get("quant_method"))
        has_own_key = "config_groups" in config or "sparsity_config" in config
        if method == NAME or (not method and has_own_key):
            return CompressedTensors(
                tuple(_groups(config)),
                texts_of(config.get("ignore")),
                object_of(config.get("sparsity_config")),
                object_of(config.get(KV_CACHE)),
            )
    return None


TOOL = Tool(NAME, (*TEMPLATES, CACHE), _declare, marks=(".scale_packed",))
