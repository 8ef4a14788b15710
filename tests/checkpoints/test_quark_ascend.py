"""The quantizers of two makers of chips: AMD's Quark, and msModelSlim for Ascend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.conventions.template import ZERO_POINTS
from tests.checkpoints.cases import Case, hold_to, t, without
from tests.checkpoints.models import config


def quark(**weight: object) -> dict[str, Any]:
    return config(
        quant_method="quark",
        exclude=["lm_head"],
        export={"pack_method": "reorder", "weight_format": "real_quantized"},
        global_quant_config={"weight": weight, "input_tensors": None},
        layer_quant_config={},
        layer_type_quant_config={},
    )


QUARK_FP8 = {"x.weight": t("F8_E4M3", 64, 192), "x.weight_scale": t("BF16", 64)}
QUARK_MXFP4 = {"x.weight": t("U8", 64, 96), "x.weight_scale": t("U8", 64, 6)}
QUARK_INT4 = {
    "x.weight": t("I32", 192, 8),
    "x.weight_scale": t("BF16", 6, 64),
    "x.weight_zero_point": t("I32", 6, 8),
}
BY_CHANNEL = quark(dtype="fp8_e4m3", qscheme="per_channel", symmetric=True, scale_format=None)
BY_GROUP = quark(dtype="int4", qscheme="per_group", group_size=32, symmetric=True, scale_format=None)
MXFP4 = quark(dtype="fp4", qscheme="per_group", group_size=32, symmetric=None, scale_format="e8m0")

ASCEND = {
    "x.weight": t("I8", 64, 192),
    "x.weight_scale": t("BF16", 64, 1),
    "x.weight_offset": t("BF16", 64, 1),
}
DESCRIPTION = {
    "quant_model_description.json": {
        "model_quant_type": "W8A8_DYNAMIC",
        "lm_head.weight": "FLOAT",
        **dict.fromkeys(ASCEND, "W8A8_DYNAMIC"),
    }
}
WITHOUT_OFFSET = {
    "quant_model_description.json": {"x.weight": "W8A8_DYNAMIC", "x.weight_scale": "W8A8_DYNAMIC"}
}
MXFP8 = {"quant_model_description.json": {"x.weight": "W8A8_MXFP8", "x.weight_scale": "W8A8_MXFP8"}}

CASES = {
    "Quark, FP8 by channel": Case(
        {**QUARK_FP8, "lm_head.weight": t("BF16", 64, 64)},
        {"x.weight": ("f8e4m3", "bf16")},
        config=BY_CHANNEL,
    ),
    "Quark, MXFP4": Case(QUARK_MXFP4, {"x.weight": ("e2m1", "e8m0")}, config=MXFP4),
    "Quark, integers in words": Case(QUARK_INT4, reasons={"x.weight": ZERO_POINTS}, config=BY_GROUP),
    "Quark, a short scale": Case(
        {**QUARK_FP8, "x.weight_scale": t("BF16", 63)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=BY_CHANNEL,
    ),
    "Quark, a scale of MXFP4 that is missing": Case(
        without(QUARK_MXFP4, "x.weight_scale"), findings=(("scale-missing", "x.weight"),), config=MXFP4
    ),
    "Quark, scales of integers that are transposed": Case(
        {**QUARK_INT4, "x.weight_scale": t("BF16", 64, 6)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=BY_GROUP,
    ),
    "Ascend, with offsets": Case(ASCEND, reasons={"x.weight": ZERO_POINTS}, config=DESCRIPTION),
    "Ascend, without offsets": Case(
        without(ASCEND, "x.weight_offset"), {"x.weight": ("i8", "bf16")}, config=WITHOUT_OFFSET
    ),
    "Ascend, MXFP8": Case(
        {"x.weight": t("F8_E4M3", 64, 192), "x.weight_scale": t("U8", 64, 6)},
        {"x.weight": ("f8e4m3", "e8m0")},
        config=MXFP8,
    ),
    "Ascend, offsets that are missing": Case(
        without(ASCEND, "x.weight_offset"), findings=(("scale-missing", "x.weight"),), config=DESCRIPTION
    ),
    "Ascend, a short scale": Case(
        {**ASCEND, "x.weight_scale": t("BF16", 63, 1)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=DESCRIPTION,
    ),
    "Ascend, a module that is not quantized as it is said to be": Case(
        {"x.weight": t("BF16", 64, 192)}, findings=(("other-format", "x.weight"),), config=DESCRIPTION
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
