"""torchao: the parts of a tensor subclass under names of their own, its type and blocks in the metadata.

The source is torchao's `prototype/safetensors`, which writes `X._weight_qdata` and so on, and the subclasses
in `quantization/quantize_/workflows` and `prototype/mx_formats`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    object_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.skipping import by_skips
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    FLOATS,
    METADATA,
    OWN_ORDER,
    SWIZZLED,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
    by_format,
)

NAME = "torchao"
PLAIN = "Tensor"
"""The type of a tensor that is not quantized."""

PART = "._weight_"
QDATA, SCALE, ZERO_POINT, OUTER = (
    PART + name for name in ("qdata", "scale", "zero_point", "per_tensor_scale")
)

ONE = "[] | [1]"
BY_ROWS = "[*E, N, K / g]"
BY_BLOCKS = "[*E, N / r, K / g]"
BY_COLUMNS = "[*E, K / g, N]"

# Q groups in a row. A tile of 128 rows and 4 groups is stored as 32 rows of 16.
TILES = "[*E, up(N, 128) / 4, up(Q, 4) * 4]"

PRE_SCALE = Slot(PART + "act_pre_scale", FLOATS, "[*A]", "act_pre_scale")
OF_ACTIVATIONS = (
    Slot(PART + "act_quant_scale", FLOATS, "[*A]", "act_quant_scale"),
    Slot(PART + "act_quant_zero_point", "I8", "[*B]", "act_quant_zero_point"),
    PRE_SCALE,
)
OF_ONE_ACTIVATION = Slot(PART + "act_per_tensor_scale", "F32", ONE, "act_per_tensor_scale")


def _qdata(dtypes: str, shape: str = "[*E, N, K]") -> Slot:
    return Slot(QDATA, dtypes, shape)


def _scales(shape: str, dtypes: str = FLOATS) -> Slot:
    return Slot(SCALE, dtypes, shape)


def _hold(dtype: str) -> Hold:
    return Hold(dtype, "g", SCALE, unless=((ZERO_POINT, ZERO_POINTS),))


def _template(
    type_: str,
    *slots: Slot,
    holds: Hold | str,
    only: Mapping[str, Value | bool] | None = None,
) -> Template:
    return Template(NAME, type_, slots, holds, only=only or {})


def _mx(dtype: str, qdata: str, per_byte: int, kiln: str) -> tuple[Template, Template]:
    """A format of MXTensor, its scales in rows and in tiles."""
    in_rows = _qdata(qdata, f"[*E, N, K / {per_byte}]"), _scales("[*E, N, K / 32]", "F8_E8M0")
    in_tiles = _qdata(qdata, f"[*E, N, Q * 32 / {per_byte}]"), _scales(TILES, "F8_E8M0")
    hold = Hold(kiln, "32", SCALE)
    return (
        _template("MXTensor", *in_rows, holds=hold, only={"tiled": False, dtype: True}),
        _template("MXTensor", *in_tiles, holds=SWIZZLED, only={"tiled": True, dtype: True}),
    )


def _nv(tiled: bool, outer: bool) -> Template:
    """NVFP4Tensor, its scales in rows or in tiles, with a scale over the matrix or without."""
    weight, scales = ("Q * 8", TILES) if tiled else ("K / 2", "[*E, N, K / 16]")
    return _template(
        "NVFP4Tensor",
        Slot(QDATA, "U8", f"[*E, N, {weight}]"),
        _scales(scales, "F8_E4M3"),
        *((Slot(OUTER, "F32", ONE),) if outer else ()),
        OF_ONE_ACTIVATION,
        holds=SWIZZLED if tiled else Hold("e2m1", "16", SCALE, outer=OUTER if outer else None),
        only={"tiled": tiled, "per_tensor_scale": outer},
    )


ROWS, BLOCKED = {"blocked": False}, {"blocked": True}
INT8_ZERO = Slot(ZERO_POINT, "I8", BY_ROWS, "zero_point")
FLOAT_ZERO = Slot(ZERO_POINT, FLOATS, BY_COLUMNS)

TEMPLATES = (
    *(
        _template("Float8Tensor", _qdata(dtype), _scales(BY_ROWS, "F32"), holds=_hold(kiln), only=ROWS)
        for dtype, kiln in (("F8_E4M3", "f8e4m3"), ("F8_E5M2", "f8e5m2"))
    ),
    _template(
        "Float8Tensor", _qdata("F8_E4M3 F8_E5M2"), _scales(BY_BLOCKS, "F32"), holds=BLOCKS, only=BLOCKED
    ),
    _template(
        "Int8Tensor",
        _qdata("I8"),
        _scales(BY_ROWS),
        INT8_ZERO,
        *OF_ACTIVATIONS,
        holds=_hold("i8"),
        only=ROWS,
    ),
    _template(
        "Int8Tensor",
        _qdata("I8"),
        _scales(BY_BLOCKS),
        Slot(ZERO_POINT, "I8", BY_BLOCKS, "zero_point"),
        *OF_ACTIVATIONS,
        holds=BLOCKS,
        only=BLOCKED,
    ),
    _template(
        "IntxUnpackedToInt8Tensor",
        _qdata("I8"),
        _scales(BY_ROWS),
        Slot(ZERO_POINT, "I8", BY_ROWS),
        holds=ZERO_POINTS,
    ),
    _template(
        "Int4Tensor",
        _qdata("I8 U8", "[*E, N, K / 2]"),
        _scales(BY_COLUMNS),
        FLOAT_ZERO,
        PRE_SCALE,
        holds=ZERO_POINTS,
    ),
    _template(
        "Int4TilePackedTo4dTensor",
        _qdata("I32", "[n, k, 32, 4]"),
        Slot(PART + "scale_and_zero", "BF16", "[ceil(k * 128 / g), n * 8, 2]"),
        PRE_SCALE,
        holds=OWN_ORDER,
    ),
    *_mx("float8_e4m3fn", "F8_E4M3", 1, "f8e4m3"),
    *_mx("float8_e5m2", "F8_E5M2", 1, "f8e5m2"),
    *_mx("float4_e2m1fn_x2", "U8", 2, "e2m1"),
    *(_nv(tiled, outer) for tiled in (False, True) for outer in (False, True)),
)

TYPES = by_format(TEMPLATES)
FLOAT_TYPES = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2")

CONFIGS: Mapping[str, tuple[str, ...]] = {
    "Float8WeightOnlyConfig": ("Float8Tensor",),
    "Float8DynamicActivationFloat8WeightConfig": ("Float8Tensor",),
    "Int8WeightOnlyConfig": ("Int8Tensor",),
    "Int8DynamicActivationInt8WeightConfig": ("Int8Tensor",),
    "IntxWeightOnlyConfig": ("IntxUnpackedToInt8Tensor",),
    "Int8DynamicActivationIntxWeightConfig": ("IntxUnpackedToInt8Tensor",),
    "MXDynamicActivationMXWeightConfig": ("MXTensor",),
    "NVFP4DynamicActivationNVFP4WeightConfig": ("NVFP4Tensor",),
}
"""Types of tensors that a config makes."""


class _Scheme(NamedTuple):
    """The metadata of the files, which names each tensor and its type, and the config.

    Attributes:
        tensors: the metadata.
        declared: by the config, for modules that the metadata does not name.
        skipped: modules that the config leaves as they are.

    """

    tensors: Mapping[str, Any]
    declared: Declared | None
    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        name = module + ".weight"
        described = _object(self.tensors.get(name))
        type_ = text_of(described.get("_type"))
        if type_ == PLAIN:
            return Excluded(NAME, name)
        if type_:
            return Declared(NAME, type_, TYPES.get(type_, ()), _parameters(described), named=True)
        return None if self.declared is None else by_skips(NAME, self.declared, self.skipped, module)


def _parameters(described: dict[str, Any]) -> dict[str, Value | bool]:
    """Blocks, the element's type, which parts there are, and whether scales are in tiles."""
    attributes = object_of(described.get("_data"))
    given: dict[str, Value | bool] = {}
    block = attributes.get("block_size")
    if isinstance(block, list) and len(block) >= 2:
        rows, columns = number_of(block[-2]), number_of(block[-1])
        if rows is not None and columns is not None:
            given.update(r=rows, g=columns, blocked=rows != 1)
    if isinstance(tiled := attributes.get("is_swizzled_scales"), bool):
        given["tiled"] = tiled
    if element := text_of(object_of(attributes.get("elem_dtype")).get("_data")):
        given.update({name: name == element for name in FLOAT_TYPES})
    if parts := texts_of(described.get("_tensor_data_names")):
        given.update({name: name in parts for name in OPTIONAL_PARTS})
    return given


OPTIONAL_PARTS = (
    "zero_point",
    "act_pre_scale",
    "act_quant_scale",
    "act_quant_zero_point",
    "per_tensor_scale",
    "act_per_tensor_scale",
)


def _object(value: object) -> dict[str, Any]:
    """The JSON object in a text of the metadata; an empty one where it is none."""
    try:
        return object_of(json.loads(text_of(value) or "{}"))
    except (ValueError, RecursionError):
        return {}


def _declare(companions: Companions) -> _Scheme | None:
    tensors = companions.get(METADATA, {})
    described = "tensor_names" in tensors
    for config in quantizations(companions):
        if config.get("quant_method") == NAME:
            return _Scheme(tensors, _by_config(config), texts_of(config.get("modules_to_not_convert")))
    return _Scheme(tensors, None, ()) if described else None


def _by_config(config: dict[str, Any]) -> Declared:
    """What a config says of every module; those that it names one by one are not looked at."""
    kinds = object_of(config.get("quant_type"))
    kind = object_of(kinds.get("default"))
    types = CONFIGS.get(text_of(kind.get("_type")), ()) if list(kinds) == ["default"] else ()
    templates = tuple(template for type_ in types for template in TYPES[type_])
    return Declared(NAME, " or ".join(types) or "unknown", templates, _config_parameters(kind))


def _config_parameters(kind: dict[str, Any]) -> dict[str, Value | bool]:
    settings = object_of(kind.get("_data"))
    grouped = object_of(object_of(settings.get("granularity")).get("_data"))
    group = number_of(grouped.get("group_size")) or number_of(settings.get("group_size"))
    return {} if group is None else {"g": group}


TOOL = Tool(NAME, TEMPLATES, _declare, marks=(QDATA, PART + "scale_and_zero"))
