"""ComfyUI: each module says its format in the payload of its comfy_quant, or the file's metadata does.

The sources are ComfyUI's `quant_ops.py`, its QUANTIZATION.md, and convert_to_quant, which writes such files.
Older files have a `scale_weight` beside each FP8 weight, and one tensor `scaled_fp8`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, object_of, pair_of, text_of
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    CODEBOOK,
    FLOATS,
    METADATA,
    ONE_SCALE,
    OPTIONAL,
    SWIZZLED,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
    by_format,
)

NAME = "ComfyUI"
KEY = "_quantization_metadata"
"""Under which the metadata of a file names the formats of its modules."""

COMFY_QUANT = ".comfy_quant"


def comfy_quant(payload: bytes) -> dict[str, Value | bool]:
    """The parameters that the payload of a comfy_quant gives.

    Raises ValueError where it is no JSON object with a format.
    """
    try:
        config = object_of(json.loads(payload))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not text_of(config.get("format")):
        raise ValueError("no comfy_quant: it needs a format")
    return _parameters(config)


def _parameters(config: dict[str, Any]) -> dict[str, Value | bool]:
    """Which format it is, the block's size g, the shape before padding, and whether each row has a scale."""
    format_ = text_of(config.get("format"))
    given: dict[str, Value | bool] = {name: name == format_ for name in FORMATS}
    block, shape = number_of(config.get("group_size")), pair_of(config.get("orig_shape"))
    if block is not None:
        given["g"] = block
    if shape is not None:
        given.update(N=shape[0], K=shape[1])
    if isinstance(config.get("per_row"), bool):
        given["per_row"] = config["per_row"]
    return given


QUANT = Slot(COMFY_QUANT, "U8", "[s]", gives=comfy_quant)
ONE = "[] | [1]"
ROWS = "[*E, N] | [*E, N, 1]"
BLOCK = "[ceil(N / g), ceil(K / g)]"
FP8 = "F8_E4M3 F8_E5M2"

# The scale's rows are padded to 128, its columns to 4; the weight is padded before, and its bias is not.
NVFP4_SCALES = "[up(N, 128), up(ceil(K / 16), 4)]"
MXFP8_SCALES = "[up(N, 128), up(ceil(K / 32), 4)]"
BIAS = Slot(".bias", FLOATS, "[N]", OPTIONAL)


def _template(
    format_: str, weight: Slot, *scales: Slot, holds: Hold | str, per_row: bool | None = None
) -> Template:
    only: dict[str, Value | bool] = {format_: True}
    if per_row is not None:
        only["per_row"] = per_row
    return Template(NAME, format_, (weight, *scales, QUANT), holds, only=only)


def _weight(dtypes: str, shape: str = "[*E, N, K]") -> Slot:
    return Slot(".weight", dtypes, shape)


def _scale(shape: str, dtypes: str = "F32") -> Slot:
    return Slot(".weight_scale", dtypes, shape)


MXFP8_SLOTS = (_weight("F8_E4M3", "[up(N, 32), up(K, 32)]"), BIAS, _scale(MXFP8_SCALES, "U8 F8_E8M0"))

CURRENT = (
    _template("float8_e4m3fn", _weight("F8_E4M3"), _scale(ONE), holds=ONE_SCALE),
    _template("float8_e5m2", _weight("F8_E5M2"), _scale(ONE), holds=ONE_SCALE),
    _template(
        "float8_e4m3fn_rowwise",
        _weight("F8_E4M3"),
        _scale(ROWS),
        holds=Hold("f8e4m3", "K", ".weight_scale"),
    ),
    _template("float8_e4m3fn_blockwise", _weight("F8_E4M3", "[N, K]"), _scale(BLOCK), holds=BLOCKS),
    _template("int8_tensorwise", _weight("I8"), _scale(ONE), holds=ONE_SCALE, per_row=False),
    _template(
        "int8_tensorwise",
        _weight("I8"),
        _scale("[*E, N, 1]"),
        holds=Hold("i8", "K", ".weight_scale"),
        per_row=True,
    ),
    _template("int8_blockwise", _weight("I8", "[N, K]"), _scale(BLOCK), holds=BLOCKS),
    _template("mxfp8", *MXFP8_SLOTS, holds=SWIZZLED),
    _template("hybrid_mxfp8", *MXFP8_SLOTS, Slot(".weight_scalar", "F32", ONE), holds=SWIZZLED),
    _template(
        "nvfp4",
        _weight("U8", "[up(N, 16), up(K, 16) / 2]"),
        BIAS,
        _scale(NVFP4_SCALES, "F8_E4M3"),
        Slot(".weight_scale_2", "F32", ONE),
        holds=SWIZZLED,
    ),
    _template(
        "asym_w4a8_int8",
        _weight("I8", "[N, K / 2]"),
        Slot(".weight_s_rel", "F8_E4M3", "[N, ceil(K / g)]"),
        Slot(".weight_s_channel", "F32", "[N]"),
        Slot(".weight_codebook", "F32", "[16]"),
        holds=CODEBOOK,
    ),
)

SCALED = Template(
    NAME,
    "scaled_fp8",
    (
        _weight(FP8),
        Slot(".scale_weight", FLOATS, ONE),
        Slot(".scale_input", FLOATS, ONE, OPTIONAL),
    ),
    ONE_SCALE,
)

SCALED_ROWS = tuple(
    Template(
        NAME,
        f"scaled_fp8, {name}",
        (
            _weight("F8_E4M3", "[N, K]"),
            Slot(".scale_weight", FLOATS, shape),
            Slot(".scale_input", FLOATS, ONE, OPTIONAL),
        ),
        Hold("f8e4m3", group, ".scale_weight", shape="[N, K]"),
        options,
    )
    for name, shape, group, options in (
        ("by row", "[N, 1]", "K", {}),
        ("in groups", "[N, ceil(K / g), 1]", "g", {"g": (64, 128, 32)}),
    )
)
"""As musubi-tuner scales weights by row or group; ComfyUI multiplies whatever shape there is."""

FORMATS: Mapping[str, tuple[Template, ...]] = by_format(
    one._replace(slots=(*one.slots[:-1], QUANT._replace(when=OPTIONAL))) for one in CURRENT
)
"""By the name of a format, for modules that the metadata names: they may have no comfy_quant."""


class _Scheme(NamedTuple):
    """The metadata of a file that names modules and their formats."""

    layers: Mapping[str, dict[str, Any]]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        config = self.layers.get(module)
        if config is None:
            return None
        format_ = text_of(config.get("format"))
        return Declared(NAME, format_ or "unknown", FORMATS.get(format_, ()), _parameters(config), named=True)


def _declare(companions: Companions) -> _Scheme | None:
    try:
        found = json.loads(text_of(companions.get(METADATA, {}).get(KEY)) or "{}")
    except (ValueError, RecursionError):
        return None
    layers = object_of(object_of(found).get("layers"))
    known = {module: config for module, config in layers.items() if isinstance(config, dict)}
    return _Scheme(known) if known else None


TOOL = Tool(
    NAME, (*CURRENT, SCALED, *SCALED_ROWS), _declare, marks=(COMFY_QUANT, ".scale_weight", ".scale_input")
)
