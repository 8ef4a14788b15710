"""What config.json and hf_quant_config.json say about how weights are quantized."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kiln_check.constants import MOST_PATTERNS

COMPANIONS = (
    "config.json",
    "hf_quant_config.json",
    "params.json",
    "quant_config.json",
    "quanto_qmap.json",
    "quantize_config.json",
)
"""Names of files beside a checkpoint that say how it is quantized."""

DESCRIPTION = "quant_model_description"
"""How the name of Ascend's begins; the rest tells the format."""

COMPRESSED_TENSORS = "compressed-tensors"
MODELOPT = "modelopt"
MLX = "mlx"


class Hint(NamedTuple):
    """One way in which a config says that weights are quantized; None where it says nothing.

    Attributes:
        method: the tool: "compressed-tensors", "modelopt", "mlx", "mxfp4", "fp8" and so on.
        format: as the tool calls it: "nvfp4-pack-quantized", "NVFP4", "mxfp4" and so on.
        bits: width of an element.
        kind: "float" or "int".
        strategy: "tensor", "channel", "group", "block" and so on.
        group_size: elements that share a scale.
        block: rows and columns that share a scale.
        symmetric: False where weights have zero points.
        reordered: True where the elements of a group are not side by side, and a
            weight_g_idx says which they are.

    """

    method: str
    format: str | None = None
    bits: int | None = None
    kind: str | None = None
    strategy: str | None = None
    group_size: int | None = None
    block: tuple[int, int] | None = None
    symmetric: bool | None = None
    reordered: bool | None = None


class Config(NamedTuple):
    """All hints of a checkpoint.

    Attributes:
        hints: those for any module.
        modules: those for one module, by its name; none for one that is not quantized.
        ignored: names of modules that are not quantized.
        patterns: regular expressions of more of them.

    """

    hints: tuple[Hint, ...] = ()
    modules: Mapping[str, tuple[Hint, ...]] = {}
    ignored: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def hints_for(self, module: str) -> tuple[Hint, ...]:
        """The hints for a module, such as "model.layers.0.mlp.up_proj"."""
        return self.modules.get(module, self.hints)

    def may_ignore(self, module: str) -> bool:
        """Whether a module is one of those that are not quantized, or may be one."""
        if module in self.ignored or len(self.patterns) > MOST_PATTERNS:
            return True
        return any(_may_match(pattern, module) for pattern in self.patterns)


def is_config_name(name: str) -> bool:
    """Whether a file of this name says how a checkpoint is quantized."""
    return name in COMPANIONS or (name.startswith(DESCRIPTION) and name.endswith(".json"))


def read_config(raw: bytes) -> dict[str, Any]:
    """A companion's JSON object.

    Raises ValueError where it is none.
    """
    try:
        found = json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def config_of(companions: Mapping[str, dict[str, Any]]) -> Config:
    """The hints that companions give, by their file names."""
    hints: list[Hint] = []
    modules: dict[str, tuple[Hint, ...]] = {}
    ignored: list[str] = []
    config = companions.get("config.json", {})
    for place in (config, _dict(config.get("text_config"))):
        for key in ("quantization_config", "compression_config"):
            quantization = _dict(place.get(key))
            hints += _quantization_hints(quantization)
            _add_modelopt_layers(quantization, modules)
            ignored += _texts(quantization.get("ignore"))
        _add_mlx(_dict(place.get("quantization")), hints, modules)
    hf = _dict(companions.get("hf_quant_config.json", {}).get("quantization"))
    hints += _modelopt_hints(hf)
    _add_modelopt_layers(hf, modules)
    patterns = {text.removeprefix("re:") for text in ignored if text.startswith("re:")}
    return Config(tuple(dict.fromkeys(hints)), modules, frozenset(ignored), tuple(sorted(patterns)))


def _quantization_hints(quantization: dict[str, Any]) -> Iterator[Hint]:
    method = _text(quantization.get("quant_method"))
    if method == COMPRESSED_TENSORS or "config_groups" in quantization:
        yield from _groups(quantization, MODELOPT if method == MODELOPT else COMPRESSED_TENSORS)
    if method == MODELOPT:
        yield from _modelopt_hints(quantization)
    elif method is not None and method != COMPRESSED_TENSORS:
        bits = _number(quantization.get("bits"))
        group_size = _number(quantization.get("group_size"))
        block = _block(quantization.get("weight_block_size"))
        strategy = "block" if block else None
        yield Hint(method, None, bits, None, strategy, group_size, block)


def _groups(quantization: dict[str, Any], method: str) -> Iterator[Hint]:
    """A hint for each config group of compressed-tensors."""
    for group in _dict(quantization.get("config_groups")).values():
        weights = _dict(_dict(group).get("weights"))
        symmetric = weights.get("symmetric", True if weights else None)
        format_ = _text(_dict(group).get("format")) or _text(quantization.get("format"))
        yield Hint(
            method,
            format_,
            _number(weights.get("num_bits")),
            _text(weights.get("type")),
            _text(weights.get("strategy")),
            _number(weights.get("group_size")),
            _block(weights.get("block_structure")),
            symmetric if isinstance(symmetric, bool) else None,
            weights.get("actorder") in ("group", "dynamic", True),
        )


def _modelopt_hints(quantization: dict[str, Any]) -> Iterator[Hint]:
    algorithm = _text(quantization.get("quant_algo"))
    if algorithm is not None:
        yield Hint(MODELOPT, algorithm, group_size=_number(quantization.get("group_size")))


def _add_modelopt_layers(quantization: dict[str, Any], modules: dict[str, tuple[Hint, ...]]) -> None:
    """ModelOpt's MIXED_PRECISION has an entry for each layer."""
    for module, value in _dict(quantization.get("quantized_layers")).items():
        own = tuple(_modelopt_hints(_dict(value)))
        if own:
            modules[module] = own


def _add_mlx(quantization: dict[str, Any], hints: list[Hint], modules: dict[str, tuple[Hint, ...]]) -> None:
    """MLX has one entry for the model, and one a module that differs from it; false for none."""
    if "group_size" not in quantization:
        return
    hints.append(_mlx_hint(quantization, {}))
    for module, value in quantization.items():
        if isinstance(value, dict):
            modules[module] = (_mlx_hint(value, quantization),)
        elif value is False:
            modules[module] = ()


def _mlx_hint(values: dict[str, Any], default: dict[str, Any]) -> Hint:
    mode, bits, group_size = (values.get(key, default.get(key)) for key in ("mode", "bits", "group_size"))
    return Hint(MLX, _text(mode) or "affine", _number(bits), group_size=_number(group_size))


_MORE_THAN_DOTS = frozenset("[](){}|+?^*\\")


def _may_match(pattern: str, module: str) -> bool:
    """Whether a name matches from its start; of a regular expression only dots, ".*" and "$" are understood.

    One that has more may match: a config's expression is never run.
    """
    pattern = pattern.removeprefix("^")
    to_end = pattern.endswith("$")
    parts = pattern.removesuffix("$").replace("\\.", ".").split(".*")
    if any(_MORE_THAN_DOTS & set(part) for part in parts):
        return True
    first, *others = parts
    if not module.startswith(first):
        return False
    at = len(first)
    for part in others:
        at = module.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return not to_end or module.endswith(parts[-1])


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _number(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _block(value: object) -> tuple[int, int] | None:
    if not (isinstance(value, list) and len(value) == 2):
        return None
    rows, columns = _number(value[0]), _number(value[1])
    return None if rows is None or columns is None else (rows, columns)
