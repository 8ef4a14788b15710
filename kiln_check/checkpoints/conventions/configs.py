"""Reads values from the JSON of configs, in which anything may stand anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kiln_check.checkpoints.conventions.template import Companions

CONFIG = "config.json"
"""The config of a model in the layout of the Hugging Face hub."""

QUANTIZATION_KEYS = ("quantization_config", "compression_config")
"""Where the tools say in it how weights are quantized."""


def quantizations(companions: Companions, *keys: str) -> Iterator[dict[str, Any]]:
    """Objects under some keys of config.json, the model's own first, then those of its parts.

    A part is an object whose key ends with "_config", such as `text_config` or `thinker_config`.

    Args:
        companions: the configs.
        keys: by default QUANTIZATION_KEYS.

    """
    yield from _within(companions.get(CONFIG, {}), keys or QUANTIZATION_KEYS, set())


def _within(place: dict[str, Any], keys: tuple[str, ...], seen: set[int]) -> Iterator[dict[str, Any]]:
    if id(place) in seen or len(seen) > 100:
        return
    seen.add(id(place))
    for key in keys:
        if isinstance(found := place.get(key), dict) and found:
            yield found
    for key, part in place.items():
        if key.endswith("_config") and key not in keys and isinstance(part, dict):
            yield from _within(part, keys, seen)


def object_of(value: object) -> dict[str, Any]:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """A text; an empty one where it is none."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> tuple[str, ...]:
    """The texts in a list; none where it is no list."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def number_of(value: object) -> int | None:
    """A whole number above 0; None where it is none."""
    return value if type(value) is int and value > 0 else None


def pair_of(value: object) -> tuple[int, int] | None:
    """Two whole numbers above 0, such as the rows and columns of a block; None where it is none."""
    if not (isinstance(value, list | tuple) and len(value) == 2):
        return None
    rows, columns = number_of(value[0]), number_of(value[1])
    return None if rows is None or columns is None else (rows, columns)


def kind_of_float(config: dict[str, Any]) -> dict[str, str]:
    """What `fmt` says of floats of 8 bits, under that name: "e4m3" or "e5m2", where it says so."""
    fmt = text_of(config.get("fmt"))
    return next(({"fmt": kind} for kind in ("e4m3", "e5m2") if kind in fmt), {})


def numbers(**values: int | None) -> dict[str, int]:
    """Those of some parameters that have a value."""
    return {name: value for name, value in values.items() if value is not None}
