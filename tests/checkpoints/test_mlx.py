"""MLX in its four modes, and Metal of transformers, which stores its affine mode under other names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.template import PER_EXPERT, ZERO_POINTS
from kiln_check.checkpoints.links import NOT_KNOWN
from tests.checkpoints.cases import Case, hold_to, mlx, t, without
from tests.checkpoints.models import config

AFFINE = {"x.weight": t("U32", 64, 16), "x.scales": t("F16", 64, 2), "x.biases": t("F16", 64, 2)}
MXFP4 = {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)}
NVFP4 = {"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 8)}
METAL = {"x.weight": t("U32", 64, 24), "x.scales": t("BF16", 64, 3), "x.qbiases": t("BF16", 64, 3)}
METAL_CONFIG = config(quant_method="metal", bits=4, group_size=64, modules_to_not_convert=None)
GLOBAL = {
    "config.json": {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4", "global_scale": True}}
}

SOUND = {
    "affine": Case(AFFINE, reasons={"x.weight": ZERO_POINTS}, config=mlx("affine", group_size=64)),
    "affine, where no mode is said": Case(AFFINE, reasons={"x.weight": ZERO_POINTS}, config=mlx(None, 4, 64)),
    "mxfp4": Case(MXFP4, {"x.weight": ("e2m1", "e8m0")}, config=mlx("mxfp4")),
    "mxfp8": Case(
        {"x.weight": t("U32", 64, 32), "x.scales": t("U8", 64, 4)},
        {"x.weight": ("f8e4m3", "e8m0")},
        config=mlx("mxfp8", 8),
    ),
    "nvfp4": Case(NVFP4, {"x.weight": ("e2m1", "f8e4m3")}, config=mlx("nvfp4", group_size=16)),
    "nvfp4 with a scale over a matrix": Case(
        {**NVFP4, "x.global_scale": t("F32")}, {"x.weight": ("e2m1", "f8e4m3")}, config=GLOBAL
    ),
    "nvfp4 with a scale over each expert": Case(
        {"x.weight": t("U32", 2, 64, 16), "x.scales": t("U8", 2, 64, 8), "x.global_scale": t("F32", 2)},
        reasons={"x.weight": PER_EXPERT},
        config=GLOBAL,
    ),
    "scales of a dtype that MLX does not write": Case(
        {"x.weight": t("U32", 64, 16), "x.scales": t("F8_E8M0", 64, 4)}, reasons={"x.weight": NOT_KNOWN}
    ),
    "a mode that is not known": Case(MXFP4, reasons={"x.weight": NOT_KNOWN}, config=mlx("mxfp3")),
    "a part of the model with a config of its own": Case(
        MXFP4,
        {"x.weight": ("e2m1", "e8m0")},
        config={
            "config.json": {
                "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
                "text_config": {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}},
            }
        },
    ),
    "a module that the config leaves alone": Case(
        {**MXFP4, "y.weight": t("BF16", 64, 16)}, {"x.weight": ("e2m1", "e8m0")}, config=mlx("mxfp4", y=False)
    ),
    "a module of another mode": Case(
        {**MXFP4, "y.weight": t("U32", 64, 32), "y.scales": t("U8", 64, 4)},
        {"x.weight": ("e2m1", "e8m0"), "y.weight": ("f8e4m3", "e8m0")},
        config=mlx("mxfp4", y={"group_size": 32, "bits": 8, "mode": "mxfp8"}),
    ),
    "Metal": Case(METAL, reasons={"x.weight": ZERO_POINTS}, config=METAL_CONFIG),
}

BROKEN = {
    "scales of the mode of another group size": Case(
        MXFP4, findings=(("scale-shape", "x.scales"),), config=mlx("nvfp4", group_size=16)
    ),
    "scales of another dtype than the mode has": Case(
        {**NVFP4, "x.scales": t("F8_E8M0", 64, 8)},
        findings=(("scale-shape", "x.scales"),),
        config=mlx("nvfp4", group_size=16),
    ),
    "affine without its biases": Case(
        without(AFFINE, "x.biases"),
        findings=(("scale-missing", "x.weight"),),
        config=mlx("affine", group_size=64),
    ),
    "short scales of affine": Case(
        {**AFFINE, "x.scales": t("F16", 63, 2)}, findings=(("scale-shape", "x.scales"),)
    ),
    "short biases of affine": Case(
        {**AFFINE, "x.biases": t("F16", 63, 2)}, findings=(("scale-shape", "x.biases"),)
    ),
    "scales and biases of affine that lost a column": Case(
        {**AFFINE, "x.scales": t("F16", 64, 1), "x.biases": t("F16", 64, 1)},
        findings=(("scale-shape", "x.biases"), ("scale-shape", "x.scales")),
        config=mlx(None, 4, 64),
    ),
    "scales that nothing uses": Case(
        {"x.scales": t("U8", 64, 4)}, findings=(("scale-unused", "x.scales"),), config=mlx("mxfp4")
    ),
    "scales of mxfp4 that are missing": Case(
        {"x.weight": t("U32", 64, 16)}, findings=(("scale-missing", "x.weight"),), config=mlx("mxfp4")
    ),
    "short scales of Metal": Case(
        {**METAL, "x.scales": t("BF16", 63, 3)}, findings=(("scale-shape", "x.scales"),), config=METAL_CONFIG
    ),
    "biases of Metal that are missing": Case(
        without(METAL, "x.qbiases"), findings=(("scale-missing", "x.weight"),), config=METAL_CONFIG
    ),
}

CASES = SOUND | BROKEN


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
