"""ComfyUI: formats that a comfy_quant or the file's metadata names, and the older scaled FP8."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.comfyui import KEY
from kiln_check.checkpoints.conventions.template import BLOCKS, ONE_SCALE, SWIZZLED
from tests.checkpoints.cases import Case, hold_to, t, text, without

NVFP4 = {
    "x.weight": t("U8", 128, 64),
    "x.weight_scale": t("F8_E4M3", 128, 8),
    "x.weight_scale_2": t("F32"),
    "x.comfy_quant": text('{"format": "nvfp4"}'),
}
FP8 = {
    "x.weight": t("F8_E4M3", 64, 96),
    "x.weight_scale": t("F32"),
    "x.comfy_quant": text('{"format": "float8_e4m3fn", "full_precision_matrix_mult": true}'),
}
ROWS = {
    **FP8,
    "x.weight_scale": t("F32", 64),
    "x.comfy_quant": text('{"format": "float8_e4m3fn_rowwise"}'),
}
BLOCK_INT8 = {
    "x.weight": t("I8", 256, 128),
    "x.weight_scale": t("F32", 2, 1),
    "x.comfy_quant": text('{"format": "int8_blockwise", "group_size": 128}'),
}
SCALED = {"scaled_fp8": t("F8_E4M3", 2), "x.weight": t("F8_E4M3", 64, 96), "x.scale_weight": t("F32")}
METADATA = {
    KEY: json.dumps(
        {
            "format_version": "1.0",
            "layers": {"x": {"format": "nvfp4", "group_size": 16, "orig_shape": [100, 128]}},
        }
    )
}
PADDED = without({**NVFP4, "x.weight": t("U8", 112, 64)}, "x.comfy_quant")

CASES = {
    "nvfp4, in an order of its own": Case(NVFP4, reasons={"x.weight": SWIZZLED}),
    "nvfp4, as the metadata says": Case(PADDED, reasons={"x.weight": SWIZZLED}, metadata=METADATA),
    "one scale": Case(FP8, reasons={"x.weight": ONE_SCALE}),
    "a scale a row": Case(ROWS, {"x.weight": ("f8e4m3", "f32")}),
    "blocks of integers": Case(BLOCK_INT8, reasons={"x.weight": BLOCKS}),
    "scaled_fp8": Case(SCALED, reasons={"x.weight": ONE_SCALE}),
    "a scale of nvfp4 without its padding": Case(
        {**PADDED, "x.weight_scale": t("F8_E4M3", 100, 8)},
        findings=(("scale-shape", "x.weight_scale"),),
        metadata=METADATA,
    ),
    "a scale that is missing": Case(
        without(FP8, "x.weight_scale"), findings=(("scale-missing", "x.weight"),)
    ),
    "a short scale of rows": Case(
        {**ROWS, "x.weight_scale": t("F32", 63)}, findings=(("scale-shape", "x.weight_scale"),)
    ),
    "scales of blocks that are transposed": Case(
        {**BLOCK_INT8, "x.weight_scale": t("F32", 1, 2)}, findings=(("scale-shape", "x.weight_scale"),)
    ),
    "a scale_weight of a row": Case(
        {**SCALED, "x.scale_weight": t("F32", 64)}, findings=(("scale-shape", "x.scale_weight"),)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
