"""torchao: parts of tensors under names of their own, whose types the file's metadata tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.template import SWIZZLED, ZERO_POINTS
from tests.checkpoints.cases import Case, hold_to, t, without
from tests.checkpoints.models import config


def described(type_: str, parts: list[str], **data: object) -> dict[str, str]:
    """The metadata of a file in which `x.weight` is of a type."""
    module = {"_type": type_, "_data": data, "_tensor_data_names": parts}
    return {"tensor_names": json.dumps(["x.weight"]), "x.weight": json.dumps(module)}


FLOAT8 = {"x._weight_qdata": t("F8_E4M3", 64, 192), "x._weight_scale": t("F32", 64, 1)}
FLOAT8_METADATA = described("Float8Tensor", ["qdata", "scale"], block_size=[1, 192])
INTX = {
    "x._weight_qdata": t("I8", 64, 192),
    "x._weight_scale": t("BF16", 64, 6),
    "x._weight_zero_point": t("I8", 64, 6),
}
INTX_METADATA = described("IntxUnpackedToInt8Tensor", ["qdata", "scale", "zero_point"], block_size=[1, 32])
NVFP4 = {
    "x._weight_qdata": t("U8", 64, 32),
    "x._weight_scale": t("F8_E4M3", 32, 16),
    "x._weight_per_tensor_scale": t("F32"),
}
NVFP4_METADATA = described("NVFP4Tensor", ["qdata", "scale", "per_tensor_scale"], is_swizzled_scales=True)
BY_CONFIG = config(
    quant_method="torchao",
    quant_type={"default": {"_type": "Float8WeightOnlyConfig", "_version": 2, "_data": {}}},
)

CASES = {
    "Float8Tensor": Case(FLOAT8, {"x._weight_qdata": ("f8e4m3", "f32")}, metadata=FLOAT8_METADATA),
    "Float8Tensor, as the config says": Case(
        FLOAT8, {"x._weight_qdata": ("f8e4m3", "f32")}, config=BY_CONFIG
    ),
    "integers with zero points": Case(INTX, reasons={"x._weight_qdata": ZERO_POINTS}, metadata=INTX_METADATA),
    "NVFP4Tensor in tiles": Case(NVFP4, reasons={"x._weight_qdata": SWIZZLED}, metadata=NVFP4_METADATA),
    "a short scale": Case(
        {**FLOAT8, "x._weight_scale": t("F32", 63, 1)},
        findings=(("scale-shape", "x._weight_scale"),),
        metadata=FLOAT8_METADATA,
    ),
    "a scale that is missing": Case(
        without(FLOAT8, "x._weight_scale"),
        findings=(("scale-missing", "x._weight_qdata"),),
        metadata=FLOAT8_METADATA,
    ),
    "zero points that are missing": Case(
        without(INTX, "x._weight_zero_point"),
        findings=(("scale-missing", "x._weight_qdata"),),
        metadata=INTX_METADATA,
    ),
    "a scale in tiles that lost a tile": Case(
        {**NVFP4, "x._weight_scale": t("F8_E4M3", 31, 16)},
        findings=(("scale-shape", "x._weight_scale"),),
        metadata=NVFP4_METADATA,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
