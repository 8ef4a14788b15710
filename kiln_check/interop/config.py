"""What config.json and hf_quant_config.json say about how weights are quantized."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

COMPANIONS = ("config.json", "hf_quant_config.json")
"""Files beside a checkpoint that say how it is quantized."""

LONGEST_CONFIG = 1 << 22
"""Bytes of a companion that are read."""

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

    """

    method: str
    format: str | None = None
    bits: int | None = None
    kind: str | None = None
    strategy: str | None = None
    group_size: int | None = None
    block: tuple[int, int] | None = None


class Config(NamedTuple):
    """All hints of a checkpoint.

    Attributes:
        hints: those for any module.
        modules: those for one module, by its name.

    """

    hints: tuple[Hint, ...] = ()
    modules: Mapping[str, Hint] = {}

    def of(self, module: str) -> tuple[Hint, ...]:
        """The hints for a module, such as "model.layers.0.mlp.up_proj"."""
        own = self.modules.get(module)
        return self.hints if own is None else (own,)

    def of_method(self, module: str, method: str) -> tuple[Hint, ...]:
        """The hints for a module that come from one tool."""
        return tuple(hint for hint in self.of(module) if hint.method == method)


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
    modules: dict[str, Hint] = {}
    config = companions.get("config.json", {})
    for place in (config, _dict(config.get("text_config"))):
        for key in ("quantization_config", "compression_config"):
            hints += _quantization_hints(_dict(place.get(key)))
        _add_mlx(_dict(place.get("quantization")), hints, modules)
    hf = _dict(companions.get("hf_quant_config.json", {}).get("quantization"))
    hints += _modelopt_hints(hf)
    return Config(tuple(dict.fromkeys(hints)), modules)


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
        format_ = _text(_dict(group).get("format")) or _text(quantization.get("format"))
        yield Hint(
            method,
            format_,
            _number(weights.get("num_bits")),
            _text(weights.get("type")),
            _text(weights.get("strategy")),
            _number(weights.get("group_size")),
            _block(weights.get("block_structure")),
        )


def _modelopt_hints(quantization: dict[str, Any]) -> Iterator[Hint]:
    algorithm = _text(quantization.get("quant_algo"))
    if algorithm is not None:
        yield Hint(MODELOPT, algorithm, group_size=_number(quantization.get("group_size")))


def _add_mlx(quantization: dict[str, Any], hints: list[Hint], modules: dict[str, Hint]) -> None:
    """MLX has one entry for the model, and one a module that differs from it."""
    if "group_size" not in quantization:
        return
    hints.append(_mlx_hint(quantization))
    for module, value in quantization.items():
        if isinstance(value, dict):
            modules[module] = _mlx_hint({**quantization, **value})


def _mlx_hint(values: dict[str, Any]) -> Hint:
    mode = _text(values.get("mode")) or "affine"
    return Hint(MLX, mode, _number(values.get("bits")), group_size=_number(values.get("group_size")))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _block(value: object) -> tuple[int, int] | None:
    if not (isinstance(value, list) and len(value) == 2):
        return None
    rows, columns = _number(value[0]), _number(value[1])
    return None if rows is None or columns is None else (rows, columns)
