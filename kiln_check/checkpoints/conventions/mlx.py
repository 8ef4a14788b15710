"""MLX: words of 32 bits, low bits first, with `X.scales`, in the affine mode `X.biases` too.

The config is `quantization` in config.json, also written as `quantization_config`: group_size, bits and
mode, and for single modules, by their names, the same or false. Sources: mlx's `quantize` and
`nn.quantize`; mlx-lm's `load_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, numbers, quantizations
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    PER_EXPERT,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "MLX"

AFFINE = Template(
    NAME,
    "affine",
    (
        Slot(".weight", "U32", "[*E, N, K * b / 32]"),
        Slot(".scales", FLOATS, "[*E, N, K / g]"),
        Slot(".biases", FLOATS, "[*E, N, K / g]"),
    ),
    ZERO_POINTS,
    options={"b": (4, 8, 6, 5, 3, 2), "g": (64, 32, 128)},
)


def _micro(format_: str, bits: int, group: int, hold: Hold | str, *more: Slot) -> Template:
    """A mode with scales of one byte and no biases; it has one width and one group size."""
    slots = (
        Slot(".weight", "U32", "[*E, N, K * b / 32]"),
        Slot(".scales", "U8", "[*E, N, K / g]"),
        *more,
    )
    return Template(NAME, format_, slots, hold, {"b": (bits,), "g": (group,)}, closed=True)


_NVFP4 = Hold("e2m1", "g", ".scales", "f8e4m3")
MXFP4 = _micro("mxfp4", 4, 32, Hold("e2m1", "g", ".scales", "e8m0"))
MXFP8 = _micro("mxfp8", 8, 32, Hold("f8e4m3", "g", ".scales", "e8m0"))
NVFP4 = _micro("nvfp4", 4, 16, _NVFP4)
NVFP4_GLOBAL = _micro(
    "nvfp4, global scale",
    4,
    16,
    _NVFP4._replace(outer=".global_scale"),
    Slot(".global_scale", "F32", "[] | [1]"),
)
NVFP4_EXPERTS = _micro(
    "nvfp4, global scale for each expert", 4, 16, PER_EXPERT, Slot(".global_scale", "F32", "[*E]")
)

TEMPLATES = (AFFINE, MXFP4, MXFP8, NVFP4, NVFP4_GLOBAL, NVFP4_EXPERTS)


class _Mode(NamedTuple):
    """A mode as a config names it.

    Attributes:
        template: that a module has.
        bits: of an element, where the config says none.
        group: elements that share a scale, where the config says none.

    """

    template: Template
    bits: int
    group: int


MODES = {
    "affine": _Mode(AFFINE, 4, 64),
    "mxfp4": _Mode(MXFP4, 4, 32),
    "mxfp8": _Mode(MXFP8, 8, 32),
    "nvfp4": _Mode(NVFP4, 4, 16),
}


class _Scheme(NamedTuple):
    """`quantization` of a config.

    Attributes:
        usual: what is said of all modules.
        config: entries of single modules, among others.
        tool: NAME.

    """

    usual: Declared
    config: Mapping[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded:
        entry = self.config.get(module)
        if entry is False:
            return Excluded(self.tool, module)
        return _declared(entry, named=True) if isinstance(entry, dict) else self.usual


def _declared(entry: dict[str, Any], named: bool) -> Declared:
    """What an entry says: one of a module inherits nothing from that of all modules."""
    name = entry.get("mode", "affine")
    mode = MODES.get(name) if isinstance(name, str) else None
    if mode is None:
        return Declared(NAME, str(name), (), named=named)
    templates: tuple[Template, ...] = (mode.template,)
    if name == "nvfp4" and entry.get("global_scale"):
        templates = (NVFP4_GLOBAL, NVFP4_EXPERTS)
    parameters: dict[str, Value | bool] = {
        **numbers(b=number_of(entry.get("bits", mode.bits)), g=number_of(entry.get("group_size", mode.group)))
    }
    return Declared(NAME, name, templates, parameters, named)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions, "quantization", "quantization_config"):
        if "quant_method" not in config and ("group_size" in config or "bits" in config or "mode" in config):
            return _Scheme(_declared(config, named=False), config)
    return None


TOOL = Tool(NAME, TEMPLATES, _declare, is_first=True)
