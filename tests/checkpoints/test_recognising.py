"""What is paired, what is not, and what is missed or found wrong, one small checkpoint for each."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kiln_check
from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.config import Hint, config_of
from kiln_check.checkpoints.conventions.forms import FORMS, Form
from kiln_check.checkpoints.formats.safetensors import TYPES
from kiln_check.checkpoints.importer import closing_report, import_checkpoint
from kiln_check.checkpoints.matching import COMPANION_SUFFIXES
from kiln_check.checkpoints.plan import plan
from kiln_check.cli import main
from tests.checkpoints.building import (
    FOLDERS,
    Made,
    copy_of,
    edit,
    safetensors_bytes,
    with_header,
)
from tests.checkpoints.models import MODELS, compressed, config, modelopt, sizes
from tests.places import CHECKPOINTS

BLOCKS = "a scale for each block of rows and columns"
ONE_SCALE = "one scale for a matrix"
ZERO_POINTS = "zero points"
UNKNOWN = "no known convention"
MISSING = "its scale is missing"
PER_EXPERT = "an outer scale for each expert"
ORDER = "groups in activation order"
IN_UNREAD_FILES = "its scale is in another file"
SHARED = "a scale that two weights claim"
SWIZZLED = "a scale that is swizzled or padded"

INT4 = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=True)
ASYM = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=False)
GROUP_ORDER = compressed(
    "pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, actorder="group"
)
INT8 = compressed("int-quantized", num_bits=8, type="int", strategy="channel")
ASYM8 = compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=False)
FP8 = compressed("float-quantized", num_bits=8, type="float", strategy="channel")
NVFP4 = compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16)
MXFP4 = compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32)
BLOCK_FP8 = config(quant_method="fp8", weight_block_size=[128, 128])


def mlx(mode: str | None, bits: int = 4, group_size: int = 32, **modules: object) -> dict[str, Any]:
    declared = {} if mode is None else {"mode": mode}
    return {"config.json": {"quantization": {"group_size": group_size, "bits": bits, **declared, **modules}}}


MIXED = {
    "hf_quant_config.json": {
        "quantization": {
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4", "group_size": 16}},
        }
    }
}


class Case(NamedTuple):
    """A checkpoint, and what comes of it.

    Attributes:
        tensors: dtype and shape, or what was made, by name.
        links: dtypes of weight and scale, by the weight's name.
        reasons: of weights that are not linked, by name.
        findings: rule and name of the tensor, of each finding.
        config: files beside it.

    """

    tensors: Mapping[str, Made]
    links: Mapping[str, tuple[str, str]] = {}
    reasons: Mapping[str, str] = {}
    findings: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, Any] = {}

    def write(self, folder: Path, file: str = "model.safetensors") -> str:
        for name, value in self.config.items():
            (folder / name).write_text(json.dumps(value))
        (folder / file).write_bytes(safetensors_bytes(dict(self.tensors)))
        return str(folder / file)


def t(dtype: str, *shape: int) -> Made:
    return Made(dtype, shape)


def words(**changes: Made) -> dict[str, Made]:
    """Four rows of 128 four-bit integers in groups of 32."""
    tensors = {
        "x.weight_packed": t("I32", 4, 16),
        "x.weight_scale": t("BF16", 4, 4),
        "x.weight_shape": sizes(4, 128),
    }
    return tensors | {name.replace("__", "."): made for name, made in changes.items()}


def without(tensors: Mapping[str, Made], name: str) -> dict[str, Made]:
    return {other: made for other, made in tensors.items() if other != name}


WRONG_LINKS = {
    "ComfyUI's nibbles and scales are in an order of their own": Case(
        {
            "x.weight": t("U8", 128, 64),
            "x.weight_scale": t("F8_E4M3", 128, 8),
            "x.weight_scale_2": t("F32"),
            "x.comfy_quant": t("U8", 19),
        },
        reasons={"x.weight": SWIZZLED},
    ),
    "one scale a column": Case(
        {"x.weight": t("F8_E4M3", 128, 256), "x.weight_scale": t("F32", 1, 256)},
        reasons={"x.weight": UNKNOWN},
    ),
    "one scale a filter of a convolution": Case(
        {"x.weight": t("I8", 64, 32, 3), "x.weight_scale": t("F32", 64, 1, 1)},
        reasons={"x.weight": ONE_SCALE},
    ),
    "e8m0 scales a row, as the config says": Case(
        {"x.weight": t("F8_E4M3", 128, 128), "x.weight_scale": t("F8_E8M0", 128, 1)},
        {"x.weight": ("f8e4m3", "e8m0")},
        config=FP8,
    ),
    "a weight_shape of I32": Case(
        words(x__weight_shape=Made("I32", (2,), struct.pack("<2i", 4, 128))),
        {"x.weight_packed": ("u4", "bf16")},
    ),
    "scales of tools that have no form": Case(
        {
            "a._weight_qdata": t("U8", 4, 8),
            "a._weight_scale": t("F8_E4M3", 4, 1),
            "b.compressed": t("I32", 4, 8),
            "b.weight_scale": t("F32", 4, 1),
            "c.weight_packed": t("I32", 4, 8),
            "c.scale_packed": t("F16", 1, 8),
            "d.w_weight_scale": t("U8", 3),
        }
    ),
    "MLX scales of their own dtype are not renamed": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F8_E8M0", 64, 8)}, reasons={"x.weight": UNKNOWN}
    ),
    "MLX scales that fit another mode by their dtype": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F8_E4M3", 64, 4)}, reasons={"x.weight": UNKNOWN}
    ),
    "MLX scales that fit a mode by dtype and shape": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F8_E8M0", 64, 4)}, {"x.weight": ("e2m1", "e8m0")}
    ),
    "MLX scales of another dtype than the config's mode has": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F8_E8M0", 64, 8)},
        reasons={"x.weight": UNKNOWN},
        findings=(("scale-shape", "x.weight"),),
        config=mlx("nvfp4", group_size=16),
    ),
    "MLX affine without its biases": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)},
        reasons={"x.weight": MISSING},
        findings=(("scale-missing", "x.weight"),),
        config=mlx("affine"),
    ),
    "an MLX mode that is not known": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)},
        reasons={"x.weight": UNKNOWN},
        config=mlx("mxfp3"),
    ),
    "two MLX modes for one model": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)},
        reasons={"x.weight": UNKNOWN},
        config={
            "config.json": {
                "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
                "text_config": {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}},
            }
        },
    ),
    "integers whose zero points are missing": Case(
        words(),
        reasons={"x.weight_packed": MISSING},
        findings=(("scale-missing", "x.weight_packed"),),
        config=ASYM,
    ),
    "integers of a config that gives some of them zero points": Case(
        words(),
        reasons={"x.weight_packed": ZERO_POINTS},
        config=config(
            quant_method="compressed-tensors",
            config_groups={
                key: {
                    "format": "pack-quantized",
                    "weights": {"num_bits": 4, "type": "int", "symmetric": value},
                }
                for key, value in (("a", True), ("b", False))
            },
        ),
    ),
    "whole integers whose zero points are missing": Case(
        {"x.weight": t("I8", 6, 64), "x.weight_scale": t("F32", 6, 1)},
        reasons={"x.weight": MISSING},
        findings=(("scale-missing", "x.weight"),),
        config=ASYM8,
    ),
    "integers in activation order without the order": Case(
        words(),
        reasons={"x.weight_packed": MISSING},
        findings=(("scale-missing", "x.weight_packed"),),
        config=GROUP_ORDER,
    ),
    "two weights of one base claim a scale": Case(
        {"x.weight": t("U8", 64, 32), "x.weight_packed": t("U8", 63, 32), "x.weight_scale": t("U8", 64, 2)},
        reasons={"x.weight": SHARED, "x.weight_packed": SHARED},
        findings=(("scale-unused", "x.weight_scale"),),
    ),
    "a tensor as a scale and as a weight": Case(
        {
            "x": t("U8", 64, 32),
            "x_weight_scale": t("U8", 64, 2),
            "x_weight_scale_weight_scale": t("U8", 64, 1),
        },
        reasons={"x": SHARED, "x_weight_scale": SHARED},
        findings=(("scale-unused", "x_weight_scale"),),
    ),
    **{
        f"scales by channel of {dtype}": Case(
            {"x.weight": t("F8_E4M3", 6, 64), "x.weight_scale": t(dtype, 6, 1)}, reasons={"x.weight": UNKNOWN}
        )
        for dtype in ("I64", "BOOL", "I32", "U16")
    },
    "scales by channel of plain bytes beside integers": Case(
        {"x.weight": t("I8", 6, 64), "x.weight_scale": t("U8", 6, 1)}, reasons={"x.weight": UNKNOWN}
    ),
    "scales of packed words that are integers": Case(
        words(x__weight_scale=t("I16", 4, 4)), reasons={"x.weight_packed": UNKNOWN}
    ),
    "more elements in a row than a descriptor holds": Case(
        {"x.weight_packed": t("U8", 0, 2**63), "x.weight_scale": t("U8", 0, 2**59)},
        reasons={"x.weight_packed": UNKNOWN},
    ),
}

MISSED = {
    "a short scale under outer scales for each expert": Case(
        {
            "x.weight_packed": t("U8", 4, 64, 32),
            "x.weight_scale": t("F8_E4M3", 4, 63, 4),
            "x.weight_global_scale": t("F32", 4),
        },
        reasons={"x.weight_packed": PER_EXPERT},
        findings=(("scale-shape", "x.weight_packed"),),
    ),
    "two outer scales for each expert": Case(
        {
            "x.weight_packed": t("U8", 4, 64, 32),
            "x.weight_scale": t("F8_E4M3", 4, 64, 4),
            "x.weight_global_scale": t("F32", 4, 2),
        },
        reasons={"x.weight_packed": PER_EXPERT},
    ),
    "two outer scales for one matrix": Case(
        {
            "x.weight_packed": t("U8", 64, 32),
            "x.weight_scale": t("F8_E4M3", 64, 4),
            "x.weight_global_scale": t("F32", 2),
        },
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("scale-shape", "x.weight_packed"),),
    ),
    "a short scale in activation order": Case(
        words(x__weight_g_idx=t("I32", 128), x__weight_scale=t("BF16", 3, 4)),
        reasons={"x.weight_packed": ORDER},
        findings=(("scale-shape", "x.weight_packed"),),
    ),
    "a short scale of rows that do not fill words": Case(
        words(x__weight_shape=sizes(4, 124), x__weight_scale=t("BF16", 3, 4)),
        reasons={"x.weight_packed": "rows that do not fill whole words"},
        findings=(("scale-shape", "x.weight_packed"),),
        config=INT4,
    ),
    "a short scale beside zero points": Case(
        {
            "x.weight": t("I8", 64, 64),
            "x.weight_scale": t("F32", 63, 1),
            "x.weight_zero_point": t("I8", 64, 1),
        },
        reasons={"x.weight": ZERO_POINTS},
        findings=(("scale-shape", "x.weight"),),
    ),
    "short zero points": Case(
        {
            "x.weight": t("I8", 64, 64),
            "x.weight_scale": t("F32", 64, 1),
            "x.weight_zero_point": t("I8", 63, 1),
        },
        reasons={"x.weight": ZERO_POINTS},
        findings=(("scale-shape", "x.weight"),),
    ),
    "short zero points in words": Case(
        words(x__weight_zero_point=t("I32", 1, 3)),
        reasons={"x.weight_packed": ZERO_POINTS},
        findings=(("scale-shape", "x.weight_packed"),),
    ),
    "short scales of MLX affine": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F16", 63, 2), "x.biases": t("F16", 64, 2)},
        reasons={"x.weight": ZERO_POINTS},
        findings=(("scale-shape", "x.weight"),),
    ),
    "short biases of MLX affine": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F16", 64, 2), "x.biases": t("F16", 63, 2)},
        reasons={"x.weight": ZERO_POINTS},
        findings=(("scale-shape", "x.weight"),),
    ),
    "scales and biases of MLX affine that lost a column": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F16", 64, 1), "x.biases": t("F16", 64, 1)},
        reasons={"x.weight": ZERO_POINTS},
        findings=(("scale-shape", "x.weight"),),
        config=mlx(None, 4, 64),
    ),
    **{
        f"a scale of ModelOpt {algorithm} that is missing": Case(
            {"x.weight": t("U8", 64, 32)},
            reasons={"x.weight": MISSING},
            findings=(("scale-missing", "x.weight"),),
            config=modelopt(algorithm),
        )
        for algorithm in (
            *("NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "MXFP4", "W4A8_MXFP4_FP8"),
            *("MIXED_PRECISION", "W4A8_AWQ"),
        )
    },
    "scales of ModelOpt's mixed layers that are missing": Case(
        {"a.weight": t("F8_E4M3", 64, 32), "b.weight": t("U8", 64, 32)},
        reasons={"a.weight": MISSING, "b.weight": MISSING},
        findings=(("scale-missing", "a.weight"), ("scale-missing", "b.weight")),
        config=MIXED,
    ),
    "a scale of ModelOpt FP8 that is missing": Case(
        {"x.weight": t("F8_E4M3", 64, 32)},
        reasons={"x.weight": MISSING},
        findings=(("scale-missing", "x.weight"),),
        config=modelopt("FP8"),
    ),
    "an outer scale without a scale": Case(
        {"x.weight": t("U8", 64, 32), "x.weight_scale_2": t("F32")},
        reasons={"x.weight": MISSING},
        findings=(("scale-missing", "x.weight"),),
    ),
    "an outer scale of stacked experts without a scale": Case(
        {"e.down_proj": t("U8", 4, 64, 32), "e.down_proj_weight_scale_2": t("F32")},
        reasons={"e.down_proj": MISSING},
        findings=(("scale-missing", "e.down_proj"),),
    ),
    "an outer scale of stacked experts without them": Case(
        {"e.down_proj_weight_scale_2": t("F32")},
        findings=(("scale-unused", "e.down_proj_weight_scale_2"),),
    ),
    "a scale of stacked experts of ModelOpt that is missing": Case(
        {"e.down_proj": t("U8", 4, 64, 32)},
        reasons={"e.down_proj": MISSING},
        findings=(("scale-missing", "e.down_proj"),),
        config=modelopt("NVFP4"),
    ),
    "a scale of stacked experts of compressed-tensors that is missing": Case(
        {"e.down_proj": t("F8_E4M3", 4, 64, 32), "e.kv_scale": t("F8_E4M3", 4, 64, 32)},
        reasons={"e.down_proj": MISSING},
        findings=(("scale-missing", "e.down_proj"),),
        config=FP8,
    ),
    "a scale of integers that is missing": Case(
        {"x.weight": t("I8", 64, 32), "lm_head.weight": t("I8", 64, 32), "v.0.weight": t("I8", 64, 32)},
        reasons={"x.weight": MISSING},
        findings=(("scale-missing", "x.weight"),),
        config={
            "config.json": {
                "quantization_config": {
                    **INT8["config.json"]["quantization_config"],
                    "ignore": ["lm_head", r"re:v\..*"],
                }
            }
        },
    ),
    **{
        f"a scale of DeepSeek's experts in {dtype} that is missing": Case(
            {"x.weight": t(dtype, 64, 32)},
            reasons={"x.weight": MISSING},
            findings=(("scale-missing", "x.weight"),),
            config=BLOCK_FP8,
        )
        for dtype in ("I8", "F4")
    },
    "a scale of gpt-oss of two dimensions that is missing": Case(
        {"x_blocks": t("U8", 64, 16)},
        reasons={"x_blocks": MISSING},
        findings=(("scale-missing", "x_blocks"),),
        config=config(quant_method="mxfp4"),
    ),
    "a scale that the same module of another layer has": Case(
        {
            "model.layers.0.q_proj.weight": t("F8_E4M3", 64, 64),
            "model.layers.0.q_proj.weight_scale": t("BF16", 64, 1),
            "model.layers.11.q_proj.weight": t("F8_E4M3", 64, 64),
            "model.layers.2.q_proj.weight": t("BF16", 64, 64),
        },
        {"model.layers.0.q_proj.weight": ("f8e4m3", "bf16")},
        {"model.layers.11.q_proj.weight": MISSING},
        (("scale-missing", "model.layers.11.q_proj.weight"),),
    ),
    "a weight_shape that is missing": Case(
        without(words(), "x.weight_shape"),
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("packed-shape", "x.weight_packed"),),
        config=INT4,
    ),
    "a weight_shape that is missing beside zero points": Case(
        without(words(x__weight_zero_point=t("I32", 1, 4)), "x.weight_shape"),
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("packed-shape", "x.weight_packed"),),
        config=ASYM,
    ),
    "packed words cut short in activation order": Case(
        words(x__weight_g_idx=t("I32", 128), x__weight_packed=t("I32", 3, 16)),
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("packed-shape", "x.weight_packed"),),
        config=GROUP_ORDER,
    ),
    "a weight_shape that is missing, of a config without a format": Case(
        without(words(), "x.weight_shape"),
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("packed-shape", "x.weight_packed"),),
        config=config(
            quant_method="compressed-tensors",
            config_groups={"a": {"weights": {"num_bits": 4, "type": "int"}}},
        ),
    ),
    "a weight_shape cut short": Case(
        words(x__weight_shape=sizes(4)),
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("packed-shape", "x.weight_packed"),),
        config=INT4,
    ),
    "scales of another dtype than the config's nvfp4 has": Case(
        {
            "x.weight_packed": t("U8", 64, 32),
            "x.weight_scale": t("F16", 64, 4),
            "x.weight_global_scale": t("F32", 1),
        },
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("scale-shape", "x.weight_packed"),),
        config=NVFP4,
    ),
    "scales of plain bytes where the config says nvfp4": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 2)},
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("scale-shape", "x.weight_packed"),),
        config=NVFP4,
    ),
    "scales of another dtype than the config's mxfp4 has": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("F8_E4M3", 64, 4)},
        reasons={"x.weight_packed": UNKNOWN},
        findings=(("scale-shape", "x.weight_packed"),),
        config=MXFP4,
    ),
    "scales of another dtype than ModelOpt's NVFP4 has": Case(
        {"x.weight": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 4), "x.weight_scale_2": t("F32")},
        reasons={"x.weight": UNKNOWN},
        findings=(("scale-shape", "x.weight"),),
        config=modelopt("NVFP4"),
    ),
}

LAYERS = {
    "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"a": {"quant_algo": "W4A8_AWQ"}, "b": {"quant_algo": "NVFP4"}},
}

FALSE_ALARMS = {
    **{
        f"ModelOpt's layers of two kinds in {file}": Case(
            {
                "a.weight": t("U8", 64, 32),
                "a.weight_scale": t("F8_E4M3", 64, 1),
                "b.weight": t("U8", 64, 32),
                "b.weight_scale": t("F8_E4M3", 64, 4),
                "b.weight_scale_2": t("F32"),
            },
            {"b.weight": ("e2m1", "f8e4m3")},
            {"a.weight": UNKNOWN},
            config={file: content},
        )
        for file, content in (
            ("hf_quant_config.json", {"quantization": LAYERS}),
            ("config.json", {"quantization_config": {"quant_method": "modelopt", **LAYERS}}),
        )
    },
    "scales of other meaning": Case(
        {
            "img_attn.norm.key_norm.scale": t("F8_E4M3", 128),
            "a.q_scales": t("U8", 4),
            "vision.image.scales": t("U8", 4),
            "a.kv_scales": t("F8_E4M3", 4),
            "b.scale": t("F8_E8M0", 4),
        }
    ),
    "scales of other meaning beside gpt-oss": Case(
        {
            "x_blocks": t("U8", 4, 6, 4, 16),
            "x_scales": t("U8", 4, 6, 4),
            "vision.image.scales": t("U8", 4),
            "a.kv_scales": t("F8_E4M3", 4),
        },
        {"x_blocks": ("e2m1", "e8m0")},
    ),
    "a scale of gpt-oss that nothing uses": Case(
        {"x_blocks": t("U8", 4, 6, 4, 16), "x_scales": t("U8", 4, 6, 4), "y_scales": t("U8", 4, 6, 4)},
        {"x_blocks": ("e2m1", "e8m0")},
        findings=(("scale-unused", "y_scales"),),
    ),
    "a scale of MLX that nothing uses": Case(
        {"x.scales": t("U8", 64, 4)}, findings=(("scale-unused", "x.scales"),), config=mlx("mxfp4")
    ),
    "a scalar for each expert": Case(
        {
            "x.weight": t("F8_E4M3", 8, 256, 256),
            "x.weight_scale": t("F32", 8, 1, 1),
            "y.weight": t("F8_E4M3", 8, 256, 256),
            "y.weight_scale": t("F32", 8),
        },
        reasons={"x.weight": ONE_SCALE, "y.weight": ONE_SCALE},
    ),
    "blocks of another size": Case(
        {
            "x.weight": t("F8_E4M3", 256, 256),
            "x.weight_scale": t("F32", 4, 4),
            "y.weight": t("F8_E4M3", 256, 256),
            "y.weight_scale_inv": t("F32", 4, 4),
        },
        reasons={"x.weight": BLOCKS, "y.weight": BLOCKS},
    ),
    "blocks with e8m0 scales": Case(
        {"x.weight": t("F8_E4M3", 256, 512), "x.weight_scale": t("F8_E8M0", 2, 4)},
        reasons={"x.weight": BLOCKS},
    ),
    "scales that are called scale": Case(
        {
            "x.weight": t("F8_E4M3", 256, 256),
            "x.scale": t("F32"),
            "y.weight": t("F8_E4M3", 256, 256),
            "y.scale": t("F32", 256),
            "z.weight": t("F8_E4M3", 256, 256),
            "z.scale": t("F32", 2, 2),
        },
        reasons={"x.weight": ONE_SCALE, "y.weight": UNKNOWN, "z.weight": BLOCKS},
    ),
    "ModelOpt W4A8_AWQ": Case(
        {"x.weight": t("U8", 64, 32), "x.weight_scale": t("F8_E4M3", 64, 1)},
        reasons={"x.weight": UNKNOWN},
        config=modelopt("W4A8_AWQ"),
    ),
    "a module that MLX's config leaves alone": Case(
        {"x.weight": t("U32", 64, 16), "y.weight": t("U32", 64, 16), "y.scales": t("U8", 64, 4)},
        {"y.weight": ("e2m1", "e8m0")},
        config=mlx("mxfp4", x=False),
    ),
    "integers of a compressed-tensors config with a pattern that is not understood": Case(
        {"x.weight": t("I8", 64, 32)},
        config={
            "config.json": {
                "quantization_config": {
                    **INT8["config.json"]["quantization_config"],
                    "ignore": ["re:(a+)+x$"],
                }
            }
        },
    ),
}

CASES = {**WRONG_LINKS, **MISSED, **FALSE_ALARMS}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.write(tmp_path)
    made = plan(read_checkpoint(path))
    assert {link.weight: (link.dtype, link.scale_dtype) for link in made.links} == case.links
    assert {one.weight: one.reason for one in made.unlinked} == case.reasons
    report = check_checkpoint(path)
    assert sorted((one.rule, one.name) for one in report.findings) == sorted(case.findings)
    assert all(one.message.isprintable() for one in report.findings)
    done = import_checkpoint(path, tmp_path / "out.kiln", allow_unlinked=True)
    assert len(done.plan.links) == len(case.links)


SHARD = "model-00001-of-00002.safetensors"
OTHER = "model-00002-of-00002.safetensors"

PIECES = {
    "zero points": (words(), "x.weight_zero_point", {}),
    "zero points of a config": (words(), "x.weight_zero_point", ASYM),
    "an activation order": (words(), "x.weight_g_idx", {}),
    "an activation order of a config": (words(), "x.weight_g_idx", GROUP_ORDER),
    "the shape of packed words": (without(words(), "x.weight_shape"), "x.weight_shape", INT4),
    "zero points of whole integers": (
        {"x.weight": t("I8", 6, 64), "x.weight_scale": t("F32", 6, 1)},
        "x.weight_zero_point",
        {},
    ),
    "biases": ({"x.weight": t("U32", 64, 16), "x.scales": t("BF16", 64, 2)}, "x.biases", {}),
    "biases of a config": (
        {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)},
        "x.biases",
        mlx("affine"),
    ),
}


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("name", PIECES)
def test_what_is_in_another_shard_keeps_a_weight_from_being_linked(
    name: str, with_index: bool, tmp_path: Path
) -> None:
    tensors, piece, sibling = PIECES[name]
    path = Case(tensors, config=sibling).write(tmp_path, SHARD)
    if with_index:
        places = {**dict.fromkeys(tensors, SHARD), piece: OTHER}
        index = {"metadata": {}, "weight_map": places}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    made = plan(read_checkpoint(path))
    assert made.links == []
    assert [(one.reason, one.finding) for one in made.unlinked] == [(IN_UNREAD_FILES, None)]


def test_what_an_index_names_is_believed_more_than_a_config(tmp_path: Path) -> None:
    path = Case(words(), config=INT4).write(tmp_path, SHARD)
    places = {**dict.fromkeys(words(), SHARD), "x.weight_zero_point": OTHER}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    made = plan(read_checkpoint(path))
    assert made.links == []
    assert [one.reason for one in made.unlinked] == [IN_UNREAD_FILES]


@pytest.mark.parametrize(
    ("tensors", "sibling"),
    [
        (words(), INT4),
        ({"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)}, {}),
        ({"x.weight": t("I8", 6, 64), "x.weight_scale": t("F32", 6, 1)}, INT8),
    ],
)
def test_a_shard_alone_is_linked_where_nothing_more_can_be_in_another(
    tensors: dict[str, Made], sibling: dict[str, Any], tmp_path: Path
) -> None:
    made = plan(read_checkpoint(Case(tensors, config=sibling).write(tmp_path, SHARD)))
    assert len(made.links) == 1


@pytest.mark.parametrize("suffix", ["weight_zero_point", "weight_scale"])
def test_a_real_asymmetric_checkpoint_without_a_tensor_is_not_ok(suffix: str, tmp_path: Path) -> None:
    copy = copy_of("ct-int4-asym", tmp_path)
    gone = f"model.layers.0.mlp.down_proj.{suffix}"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(gone))
    report = check_checkpoint(str(copy / "model.safetensors"))
    (found,) = report.findings
    assert found.rule == "scale-missing"
    assert f'there is no "{gone}"' in found.message
    assert plan(read_checkpoint(str(copy / "model.safetensors"))).links == []


def test_what_two_weights_claim_comes_back_as_it_was(tmp_path: Path) -> None:
    path = WRONG_LINKS["two weights of one base claim a scale"].write(tmp_path)
    done = import_checkpoint(path, tmp_path / "out.kiln", allow_unlinked=True)
    assert done.plan.links == []
    kept = {name: made.dtype for name, made in done.plan.tensors.items() if name.startswith("x.")}
    assert kept == {"x.weight": "u8", "x.weight_packed": "u8", "x.weight_scale": "u8"}


@pytest.mark.parametrize(
    ("tensors", "sibling", "text"),
    [
        ({"x.weight_scale": t("U8", 3)}, {}, 'neither "x.weight_packed" nor "x.weight"'),
        ({"a.weight": t("U32", 6, 8)}, mlx("mxfp4"), 'no "a.scales"'),
        (
            {"a.weight": t("F8_E4M3", 6, 8)},
            BLOCK_FP8,
            'neither "a.weight_scale_inv" nor "a.weight_scale" nor "a.scale"',
        ),
        ({"a_blocks": t("U8", 2, 6, 16)}, {}, 'no "a_scales"'),
        ({"a.weight_packed": t("U8", 6, 16)}, {}, 'no "a.weight_scale"'),
    ],
)
def test_a_message_names_the_tensors_that_the_convention_wants(
    tensors: dict[str, Made], sibling: dict[str, Any], text: str, tmp_path: Path
) -> None:
    (found,) = check_checkpoint(Case(tensors, config=sibling).write(tmp_path)).findings
    assert found.message.endswith(f"there is {text}")


@pytest.mark.parametrize(
    "tensors",
    [
        {"x.weight": ("F8_E4M3", [64, 64]), "x.weight_scale_inv": ("F32", None)},
        {
            "x.weight_packed": ("U8", [64, 64]),
            "x.weight_scale": ("F8_E4M3", [64, 8]),
            "x.weight_global_scale": ("F32", None),
        },
        {"x.weight": ("U8", None), "x.weight_scale": ("U8", [64, 8])},
        {"x.weight_scale": ("U8", None)},
    ],
)
def test_a_tensor_of_too_many_dimensions_is_of_no_convention(
    tensors: dict[str, tuple[str, list[int] | None]], tmp_path: Path
) -> None:
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        length = 4 if shape is None else prod(shape)
        header[name] = {
            "dtype": dtype,
            "shape": [2**60] * 300 if shape is None else shape,
            "data_offsets": [at, at + length],
        }
        at += length
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(json.dumps(header).encode(), bytes(at)))
    assert check_checkpoint(str(path)).findings[0].rule == "source-rank"


def test_a_config_of_many_modules_is_read_module_by_module() -> None:
    modules = {f"m.{number}": {"bits": 8, "mode": "mxfp8"} for number in range(60_000)}
    found = config_of({"config.json": {"quantization": {"group_size": 32, "bits": 4, **modules}}})
    assert found.hints_for("m.59999") == (Hint("mlx", "mxfp8", 8, group_size=32),)
    assert found.hints_for("other") == (Hint("mlx", "affine", 4, group_size=32),)


@pytest.mark.parametrize(
    "pattern", ["a.b", "re:a.*", r"re:^a\.b$", "re:.*b", "re:.*a.*", "re:a", "re:[ab].*"]
)
def test_an_ignored_module_is_told_by_its_name(pattern: str) -> None:
    found = config_of({"config.json": {"quantization_config": {"ignore": [pattern, 7]}}})
    assert found.may_ignore("a.b")


@pytest.mark.parametrize("pattern", ["a", "re:b.*", "re:.*c", "re:.*a$", "re:a.*c", r"re:.*\.b\.b"])
def test_a_module_that_no_pattern_names_is_not_ignored(pattern: str) -> None:
    found = config_of({"config.json": {"quantization_config": {"ignore": [pattern]}}})
    assert not found.may_ignore("a.b")


@pytest.mark.parametrize(
    ("tensors", "sibling"),
    [
        (
            {"x.weight": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 4), "x.weight_scale_2": t("F32")},
            modelopt("NVFP4\x1b[2J\n"),
        ),
        ({"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)}, mlx("\x1b[2J\n")),
    ],
)
def test_what_a_config_says_is_printed_on_one_line(
    tensors: dict[str, Made], sibling: dict[str, Any], tmp_path: Path
) -> None:
    path = Case(tensors, config=sibling).write(tmp_path)
    report = check_checkpoint(path)
    assert report.findings or report.notes
    assert all(text.isprintable() for text in (*report.notes, *(one.message for one in report.findings)))


def test_many_patterns_are_not_held_against_each_module() -> None:
    patterns = [f"re:x{number}" for number in range(100_000)]
    found = config_of({"config.json": {"quantization_config": {"ignore": patterns}}})
    assert all(found.may_ignore(f"m.{number}") for number in range(100_000))


def test_an_import_that_is_refused_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-int4-asym", tmp_path)
    gone = "model.layers.0.mlp.down_proj.weight_zero_point"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(gone))
    assert main(["import", str(copy), "-o", str(tmp_path / "out.kiln")]) == 1
    assert "has no zero points" in capsys.readouterr().err
    assert not (tmp_path / "out.kiln").exists()


ALONE: dict[tuple[str, str], tuple[Made, dict[str, Any]]] = {
    (".weight_packed", ".weight_scale"): (t("U8", 6, 32), {}),
    (".weight", ".weight_scale"): (t("F8_E4M3", 6, 32), FP8),
    ("", "_weight_scale"): (t("U8", 2, 6, 32), modelopt("NVFP4")),
    (".weight", ".weight_scale_inv"): (t("F8_E4M3", 6, 32), BLOCK_FP8),
    ("_blocks", "_scales"): (t("U8", 2, 6, 16), {}),
    (".blocks", ".scales"): (t("U8", 2, 6, 16), {}),
    (".weight", ".scales"): (t("U32", 6, 8), mlx("mxfp4")),
    (".qweight", ".scales"): (t("I32", 6, 8), config(quant_method="gptq")),
    (".weight", ".scale"): (t("I8", 6, 32), BLOCK_FP8),
}
"""A weight of each form without its scale, and a config by which the scale is due."""


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_model_and_misses_its_scale(form: Form, tmp_path: Path) -> None:
    judged = [(name, model) for model in MODELS.values() for name in (*model.linked, *model.reasons)]
    assert any(
        name.endswith(form.weight) and name[: len(name) - len(form.weight)] + form.scale in model.tensors
        for name, model in judged
    )
    made, sibling = ALONE[form.weight, form.scale]
    path = Case({"x" + form.weight: made}, config=sibling).write(tmp_path)
    scale = f'"x{form.scale}"'
    (found,) = [one for one in check_checkpoint(path).findings if scale in one.message]
    assert (found.rule, found.name) == ("scale-missing", "x" + form.weight)
    (tmp_path / "other").mkdir()
    other = Case({"y": made}, config=sibling).write(tmp_path / "other")
    assert form.weight == "" or check_checkpoint(other).findings == ()


def notes(path: str) -> tuple[str, ...]:
    return check_checkpoint(path).notes


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_check_says_what_an_import_says_of_links(folder: str, tmp_path: Path) -> None:
    (lead,) = [*(CHECKPOINTS / folder).glob("*.index.json")] or (CHECKPOINTS / folder).glob("*.safetensors")
    done = import_checkpoint(str(lead), tmp_path / "out.kiln")
    assert [f"  {note}" for note in notes(str(lead))] == closing_report(done).splitlines()[1:]
    assert len(notes(str(lead))) >= 1


def test_notes_leave_out_what_a_finding_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = {
        "short.weight_packed": t("U8", 64, 32),
        "short.weight_scale": t("U8", 63, 2),
        "gone.weight_packed": t("U8", 64, 32),
        "good.weight_packed": t("U8", 64, 32),
        "good.weight_scale": t("U8", 64, 2),
        "one.weight": t("F8_E4M3", 64, 32),
        "one.weight_scale": t("F32"),
    }
    path = Case(tensors).write(tmp_path)
    wanted = (
        "linked 1: compressed-tensors mxfp4-pack-quantized, scheme 1, e2m1 with e8m0 scales",
        "not linked 1: one scale for a matrix",
        '  "one.weight": F32 []',
    )
    assert notes(path) == wanted
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[:4] == [f"{path}: TYPE", *(f"  {note}" for note in wanted)]
    assert main(["check", "--format", "json", path]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    assert tuple(entry["notes"]) == wanted


def test_there_are_no_notes_where_nothing_is_a_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Case({"x": t("U8", 3)}).write(tmp_path)
    kiln_check.write(tmp_path / "x.kiln", {"x": kiln_check.NewTensor("u8", [3], b"abc")})
    assert main(["check", "--format", "json", path, str(tmp_path / "x.kiln")]) == 0
    assert all("notes" not in entry for entry in json.loads(capsys.readouterr().out)["files"])


SUFFIXES = sorted(
    {suffix for form in FORMS for suffix in (form.weight, form.scale)} | set(COMPANION_SUFFIXES)
)
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    INT4,
    ASYM,
    GROUP_ORDER,
    INT8,
    FP8,
    NVFP4,
    MXFP4,
    BLOCK_FP8,
    MIXED,
    mlx("nvfp4"),
    mlx(None),
)
DTYPES = ["U8", "I8", "U32", "I32", "I64", "F4", "F8_E4M3", "F8_E8M0", "BF16", "F32"]


@st.composite
def any_tensors(draw: st.DrawFn) -> dict[str, Made]:
    """A weight and a scale by some form, whose shapes nearly fit, and what may stand beside them."""
    form = draw(st.sampled_from(FORMS))
    lead = draw(st.sampled_from([(), (2,), (0,), (1,)]))
    rows, columns = draw(st.sampled_from([(64, 16), (64, 32), (6, 16), (2, 0), (128, 128)]))
    groups = (columns // share for share in draw(st.permutations([1, 2, 4, 8, 16, 32, 128]))[:1])
    tensors = {
        "x" + form.weight: Made(draw(st.sampled_from(DTYPES)), (*lead, rows, columns)),
        "x" + form.scale: Made(
            draw(st.sampled_from(DTYPES)), (*lead, rows - draw(st.integers(0, 1)), *groups)
        ),
    }
    for suffix in draw(st.lists(st.sampled_from(SUFFIXES), max_size=3)):
        shape = draw(st.sampled_from([(), (1,), (2,), (*lead, rows, 1), (*lead, rows, columns)]))
        made = Made(draw(st.sampled_from(DTYPES)), shape)
        tensors.setdefault("x" + suffix, draw(st.sampled_from([made, sizes(rows, columns * 8)])))
    return {name: made for name, made in tensors.items() if made.dtype != "F4" or prod(made.shape) % 2 == 0}


@given(tensors=any_tensors(), sibling=st.sampled_from(CONFIGS))
@settings(max_examples=300, deadline=None)
def test_no_link_changes_a_scale_that_has_a_dtype_and_every_checkpoint_comes_in_apart(
    tensors: dict[str, Made], sibling: dict[str, Any]
) -> None:
    with TemporaryDirectory() as folder:
        path = Case(tensors, config=sibling).write(Path(folder))
        report = check_checkpoint(path)
        made = plan(read_checkpoint(path))
        claimed = [name for link in made.links for name in (link.weight, link.scale)]
        assert len(set(claimed)) == len(claimed)
        for link in made.links:
            assert tensors[link.scale].dtype == "U8" or (
                TYPES[tensors[link.scale].dtype].dtype == link.scale_dtype
            )
        done = import_checkpoint(path, f"{folder}/out.kiln", allow_unlinked=True)
        assert {one.rule for one in done.findings} <= {one.rule for one in report.findings}
        with kiln_check.open(f"{folder}/out.kiln") as file:
            for name, tensor in tensors.items():
                assert bytes(file[name].bytes()) == tensor.payload()


def test_the_numbers_of_shards_may_differ_in_width(tmp_path: Path) -> None:
    halves = ({"x.weight": t("F8_E4M3", 128, 128)}, {"x.weight_scale_inv": t("F32", 1, 1)})
    for number, tensors in enumerate(halves, 1):
        Case(tensors, config=BLOCK_FP8).write(tmp_path, f"model-0000{number}-of-000002.safetensors")
    assert main(["check", str(tmp_path)]) == 0
    (tmp_path / "model-00002-of-000002.safetensors").unlink()
    assert main(["check", str(tmp_path)]) == 1
