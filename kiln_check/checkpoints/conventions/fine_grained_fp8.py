"""Fine-grained FP8 of transformers, vLLM and SGLang, and what shares its config: AutoFP8, MXFP8, block INT8.

`quant_method` is "fp8", "mxfp8" or "blockwise_int8". Sources: transformers' `FP8Linear`, `FP8Experts` and
`FineGrainedFP8Config`; AutoFP8; vLLM's `Fp8Config`; SGLang's `BlockInt8Config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from kiln_check.checkpoints.conventions import deepseek
from kiln_check.checkpoints.conventions.configs import (
    kind_of_float,
    numbers,
    pair_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.skipping import excluded
from kiln_check.checkpoints.conventions.template import (
    BLOCKS,
    FAKE,
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

NAME = "fine-grained FP8"
AUTOFP8 = "AutoFP8"
BYTES = "F8_E8M0 U8"

DEFAULT_BLOCK = (128, 128)
"""What transformers takes where a config has no weight_block_size."""

Options: TypeAlias = "Mapping[str, tuple[Value, ...]]"

SQUARES: Options = {"r": (128, 64, 32, 16, 256, 512), "c": ("r",)}
"""Blocks that are tried where no config says which."""

IN_ROWS: Options = {"c": (32, 128, 64, 16)}
_NONE: Options = {}

SHARED = "a scale for many weights"

_ONE = "[] | [1] | [1, 1]"
_ONE_EACH = "[*E, 1, 1] | [*E]"
_TILES = "[*E, ceil(N / r), ceil(K / c)]"
_ROWS = "[*E, N, ceil(K / c)]"
_STACKED = "[E, ceil(m * N / r), ceil(K / c)] | [E, m * ceil(N / r), ceil(K / c)]"

HALVES = {"gate_up_proj", "w13"}
"""Names of fused experts that hold two matrices, one below the other, each with blocks of its own."""

_IN_HALVES = {
    _TILES: "[*E, ceil(N / r), ceil(K / c)] | [*E, 2 * ceil(N / 2 / r), ceil(K / c)]",
    _ONE_EACH: "[*E, 1, 1] | [*E, 2, 1] | [*E]",
}


FIXED: Mapping[str, Value] = {"fmt": "e4m3"}


def _linear(
    format_: str, weight: str, scale: tuple[str, str], holds: Hold | str, options: Options = _NONE
) -> Template:
    """A module of its own: `X.weight` with `X.weight_scale_inv`, dtypes and shape of the scale given."""
    slots = (
        Slot(".weight", weight, "[*E, N, K]"),
        Slot(".weight_scale_inv", *scale),
        Slot(".activation_scale", FLOATS, "[] | [1]", "static"),
    )
    return Template(NAME, format_, slots, holds, options, fixed=FIXED)


def _experts(
    format_: str,
    weight: tuple[str, str],
    scale: tuple[str, str],
    holds: Hold | str,
    options: Options = _NONE,
    *,
    spread: bool = False,
) -> Template:
    """Experts that share a scale tensor: `down_proj`, or one by one, with `down_proj_scale_inv`."""
    slots = (
        Slot("", *weight),
        Slot("_scale_inv", *scale),
        Slot("_activation_scale", FLOATS, "[E]" if spread else "[*E]", "static"),
    )
    return Template(NAME, format_, slots, holds, options, {"spread": spread}, fixed=FIXED)


_ROW = Hold("f8e4m3", "c", ".weight_scale_inv")
_EXPERT_ROW = Hold("f8e4m3", "c", "_scale_inv")

BLOCK_SCALES = _linear("blocks", "F8_E4M3", (FLOATS, _TILES), BLOCKS, SQUARES)
BLOCK_BYTES = _linear("blocks, ue8m0", "F8_E4M3", (BYTES, _TILES), BLOCKS, SQUARES)
ROW_SCALES = _linear("groups in rows", "F8_E4M3", (FLOATS, _ROWS), _ROW, IN_ROWS)
ROW_BYTES = _linear(
    "groups in rows, ue8m0", "F8_E4M3", (BYTES, _ROWS), _ROW._replace(scale_dtype="e8m0"), IN_ROWS
)
TENSOR_SCALE = _linear("one scale", "F8_E4M3", (FLOATS, _ONE), ONE_SCALE)
UNCONVERTED = _linear("unconverted", FLOATS, (f"{FLOATS} {BYTES}", _TILES), FAKE, SQUARES)
MXFP8 = _linear(
    "mxfp8",
    "F8_E4M3",
    (BYTES, "[*E, N, ceil(K / 32)]"),
    Hold("f8e4m3", "32", ".weight_scale_inv", "e8m0"),
)
INT8_BLOCKS = _linear("int8 blocks", "I8", (FLOATS, _TILES), BLOCKS, SQUARES)

_MATRICES = ("F8_E4M3", "[*E, N, K]")
FUSED_SCALES = _experts("blocks, fused experts", _MATRICES, (FLOATS, _TILES), BLOCKS, SQUARES)
FUSED_BYTES = _experts("blocks, ue8m0, fused experts", _MATRICES, (BYTES, _TILES), BLOCKS, SQUARES)
FUSED_ROW_SCALES = _experts("groups in rows, fused experts", _MATRICES, (FLOATS, _ROWS), _EXPERT_ROW, IN_ROWS)
FUSED_ROW_BYTES = _experts(
    "groups in rows, ue8m0, fused experts",
    _MATRICES,
    (BYTES, _ROWS),
    _EXPERT_ROW._replace(scale_dtype="e8m0"),
    IN_ROWS,
)
FUSED_ONE = _experts("one scale, fused experts", _MATRICES, (FLOATS, _ONE_EACH), ONE_SCALE)
FUSED_FP4 = _experts(
    "fp4, fused experts",
    ("I8", "[*E, N, K / 2]"),
    (f"F8_E8M0 {FLOATS}", "[*E, N, ceil(K / 32)]"),
    Hold("e2m1", "32", "_scale_inv"),
)
FUSED_UNCONVERTED = _experts(
    "unconverted, fused experts", (FLOATS, "[*E, N, K]"), (f"{FLOATS} {BYTES}", _TILES), FAKE, SQUARES
)

_EXPERT = ("F8_E4M3", "[N, K]")
SPREAD_SCALES = _experts(
    "blocks, experts that share a scale", _EXPERT, (FLOATS, _STACKED), BLOCKS, SQUARES, spread=True
)
SPREAD_BYTES = _experts(
    "blocks, ue8m0, experts that share a scale", _EXPERT, (BYTES, _STACKED), BLOCKS, SQUARES, spread=True
)
SPREAD_ONE = _experts(
    "one scale, experts that share it",
    _EXPERT,
    (FLOATS, "[E, 1, 1] | [E, m, 1] | [E]"),
    ONE_SCALE,
    spread=True,
)
SPREAD_FP4 = _experts(
    "fp4, experts that share a scale",
    ("I8", "[N, K / 2]"),
    (f"F8_E8M0 {FLOATS}", "[E, m * N, ceil(K / 32)]"),
    SHARED,
    spread=True,
)
SPREAD_UNCONVERTED = _experts(
    "unconverted, experts that share a scale",
    (FLOATS, "[N, K]"),
    (f"{FLOATS} {BYTES}", _STACKED),
    FAKE,
    SQUARES,
    spread=True,
)

AUTOFP8_TENSOR = Template(
    AUTOFP8,
    "one scale",
    (
        Slot(".weight", "F8_E4M3", "[*E, N, K]"),
        Slot(".weight_scale", FLOATS, "[] | [1]"),
        Slot(".input_scale", FLOATS, "[] | [1]", "static"),
    ),
    ONE_SCALE,
)
EMBEDDING = Template(
    NAME,
    "embedding",
    (Slot(".weight", "F8_E4M3", "[N, K]"), Slot(".weight_scale", FLOATS, "[1] | []")),
    ONE_SCALE,
)

_PER_TENSOR = (TENSOR_SCALE, AUTOFP8_TENSOR, FUSED_ONE, SPREAD_ONE)
_FLOAT_BLOCKS = (BLOCK_SCALES, FUSED_SCALES, SPREAD_SCALES)
_BYTE_BLOCKS = (BLOCK_BYTES, FUSED_BYTES, SPREAD_BYTES)
_FLOAT_ROWS = (ROW_SCALES, FUSED_ROW_SCALES, SPREAD_SCALES)
_BYTE_ROWS = (ROW_BYTES, FUSED_ROW_BYTES, SPREAD_BYTES)
_KEPT = (UNCONVERTED, FUSED_UNCONVERTED, SPREAD_UNCONVERTED)


def _with_halves(template: Template) -> Template:
    """The same where the rows are those of two matrices."""
    slots = tuple(
        slot._replace(shape=_IN_HALVES.get(slot.shape, slot.shape)) if slot.suffix == "_scale_inv" else slot
        for slot in template.slots
    )
    return template._replace(slots=slots)


class _Scheme(NamedTuple):
    """A quantization_config of one of the three methods.

    Attributes:
        format: as the config calls it.
        templates: that a module may have.
        parameters: that the config gives.
        kept: patterns of modules that are not quantized.
        tables: last letters of the names of embeddings that are.
        tool: NAME.

    """

    format: str
    templates: tuple[Template, ...]
    parameters: Mapping[str, Value | bool]
    kept: tuple[str, ...]
    tables: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        found, doubtful = excluded(self.tool, self.kept, module)
        if found is not None or doubtful:
            return found
        templates = self.templates
        if module.rpartition(".")[2] in HALVES:
            templates = tuple(map(_with_halves, templates))
        if any(module.endswith(table) for table in self.tables):
            templates = (EMBEDDING, *templates)
        return Declared(self.tool, self.format, templates, self.parameters)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        method = text_of(config.get("quant_method"))
        if method in ("fp8", "mxfp8", "blockwise_int8"):
            return _Scheme(
                method,
                _templates(method, config),
                _parameters(config),
                texts_of(config.get("modules_to_not_convert")) + texts_of(config.get("ignored_layers")),
                tuple(filter(None, texts_of(config.get("modules_to_convert")))),
            )
    return None


def _templates(method: str, config: dict[str, Any]) -> tuple[Template, ...]:
    """Those of a config; none of GPTQModel's, which has a weight_scale_method."""
    if method == "mxfp8":
        return (MXFP8,)
    if method == "blockwise_int8":
        return (INT8_BLOCKS,)
    if "weight_scale_method" in config:
        return ()
    if "weight_block_size" in config and config["weight_block_size"] is None:
        return _PER_TENSOR
    block = _block(config)
    if block is None:
        return ()
    floats, bytes_ = (_FLOAT_ROWS, _BYTE_ROWS) if block[0] == 1 else (_FLOAT_BLOCKS, _BYTE_BLOCKS)
    unsaid = "weight_block_size" not in config
    return (
        *((AUTOFP8_TENSOR,) if unsaid else ()),
        *floats,
        *(() if config.get("scale_fmt") == "float" else bytes_),
        *((TENSOR_SCALE, FUSED_ONE, SPREAD_ONE) if unsaid else ()),
        *(_KEPT if "dequantize" in config else ()),
        *(() if config.get("expert_dtype") == "fp8" else (FUSED_FP4, SPREAD_FP4, *deepseek.TEMPLATES)),
    )


def _block(config: dict[str, Any]) -> tuple[int, int] | None:
    """The block's rows and columns; None where the config has something else there."""
    return pair_of(config["weight_block_size"]) if "weight_block_size" in config else DEFAULT_BLOCK


def _parameters(config: dict[str, Any]) -> dict[str, Value | bool]:
    r, c = _block(config) or (None, None)
    static = {"static": True} if text_of(config.get("activation_scheme")).lower() == "static" else {}
    return {**numbers(r=r, c=c), **static, **kind_of_float(config)}


TOOL = Tool(
    NAME,
    (
        BLOCK_SCALES,
        BLOCK_BYTES,
        ROW_SCALES,
        ROW_BYTES,
        TENSOR_SCALE,
        MXFP8,
        INT8_BLOCKS,
        UNCONVERTED,
        AUTOFP8_TENSOR,
        EMBEDDING,
        FUSED_SCALES,
        FUSED_BYTES,
        FUSED_ROW_SCALES,
        FUSED_ROW_BYTES,
        FUSED_ONE,
        FUSED_FP4,
        FUSED_UNCONVERTED,
        SPREAD_SCALES,
        SPREAD_BYTES,
        SPREAD_ONE,
        SPREAD_FP4,
        SPREAD_UNCONVERTED,
    ),
    _declare,
    spread={
        "down_proj": ("down_proj", "w2"),
        "gate_up_proj": ("gate_proj", "up_proj", "w1", "w3"),
    },
)
