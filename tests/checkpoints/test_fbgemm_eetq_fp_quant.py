"""FBGEMM, EETQ and FP-Quant, whose kernels transformers takes weights for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.fp_quant import NOT_F32
from kiln_check.checkpoints.conventions.template import OWN_ORDER
from tests.checkpoints.cases import Case, hold_to, t, without
from tests.checkpoints.models import config

FBGEMM = {"x.weight": t("F8_E4M3", 64, 96), "x.weight_scale": t("F32", 64, 1)}
EXPERTS = {
    "e.down_proj": t("F8_E4M3", 2, 64, 96),
    "e.down_proj_scale": t("F32", 2, 96, 1),
    "e.gate_up_proj": t("F8_E4M3", 2, 96, 128),
    "e.gate_up_proj_scale": t("F32", 2, 1, 128),
}
FBGEMM_CONFIG = config(
    quant_method="fbgemm_fp8", activation_scale_ub=1200.0, modules_to_not_convert=["lm_head"]
)
EETQ = {"x.weight": t("I8", 128, 96), "x.weight_scales": t("F16", 96)}
EETQ_CONFIG = config(quant_method="eetq", weights="int8")
FP_QUANT = {
    "x.qweight": t("U8", 64, 96),
    "x.scales": t("U8", 64, 6),
    "x.weight_global_scale": t("BF16", 1),
    "x.act_global_scale": t("BF16", 1),
    "x.forward_hadamard_matrix": t("BF16", 32, 32),
}
FP_QUANT_CONFIG = config(
    quant_method="fp_quant",
    forward_dtype="mxfp4",
    store_master_weights=False,
    pseudoquantization=False,
    hadamard_group_size=32,
    modules_to_not_convert=["lm_head"],
)

CASES = {
    "FBGEMM": Case(FBGEMM, {"x.weight": ("f8e4m3", "f32")}, config=FBGEMM_CONFIG),
    "FBGEMM, experts": Case(
        EXPERTS,
        {"e.down_proj": ("f8e4m3", "f32"), "e.gate_up_proj": ("f8e4m3", "f32")},
        config=FBGEMM_CONFIG,
    ),
    "FBGEMM, a short scale": Case(
        {**FBGEMM, "x.weight_scale": t("F32", 63, 1)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=FBGEMM_CONFIG,
    ),
    "FBGEMM, a scale of experts that is transposed": Case(
        {**EXPERTS, "e.down_proj_scale": t("F32", 2, 1, 96)},
        {"e.gate_up_proj": ("f8e4m3", "f32")},
        findings=(("scale-shape", "e.down_proj_scale"),),
        config=FBGEMM_CONFIG,
    ),
    "EETQ": Case(EETQ, reasons={"x.weight": OWN_ORDER}, config=EETQ_CONFIG),
    "EETQ, scales that are missing": Case(
        without(EETQ, "x.weight_scales"), findings=(("scale-missing", "x.weight"),), config=EETQ_CONFIG
    ),
    "EETQ, scales of the weight's inputs": Case(
        {**EETQ, "x.weight_scales": t("F16", 128)},
        findings=(("scale-shape", "x.weight_scales"),),
        config=EETQ_CONFIG,
    ),
    "FP-Quant": Case(FP_QUANT, reasons={"x.qweight": NOT_F32}, config=FP_QUANT_CONFIG),
    "FP-Quant, a short scale": Case(
        {**FP_QUANT, "x.scales": t("U8", 63, 6)},
        findings=(("scale-shape", "x.scales"),),
        config=FP_QUANT_CONFIG,
    ),
    "FP-Quant, a rotation of another size": Case(
        {**FP_QUANT, "x.forward_hadamard_matrix": t("BF16", 64, 64)},
        findings=(("scale-shape", "x.forward_hadamard_matrix"),),
        config=FP_QUANT_CONFIG,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
