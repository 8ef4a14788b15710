"""ModelOpt: modules that hf_quant_config.json or config.json declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.modelopt import ACROSS
from kiln_check.checkpoints.conventions.template import ONE_SCALE, PER_EXPERT
from tests.checkpoints.cases import Case, hold_to, mixed, t, without
from tests.checkpoints.models import config, modelopt

FP8_MODULE = {"a.weight": t("F8_E4M3", 64, 32), "a.weight_scale": t("F32"), "a.input_scale": t("F32")}
NVFP4_MODULE = {
    "b.weight": t("U8", 64, 32),
    "b.weight_scale": t("F8_E4M3", 64, 4),
    "b.weight_scale_2": t("F32"),
}
AWQ_MODULE = {
    "a.weight": t("U8", 32, 64),
    "a.weight_scale": t("BF16", 64, 4),
    "a.weight_scale_2": t("F32"),
    "a.pre_quant_scale": t("BF16", 64),
}
EXPERTS = {
    "e.down_proj": t("U8", 4, 64, 32),
    "e.down_proj_weight_scale": t("F8_E4M3", 4, 64, 4),
    "e.down_proj_weight_scale_2": t("F32"),
}

MIXED = mixed(a={"quant_algo": "FP8"}, b={"quant_algo": "NVFP4", "group_size": 16})
TWO_KINDS = mixed(a={"quant_algo": "W4A8_AWQ", "group_size": 16}, b={"quant_algo": "NVFP4", "group_size": 16})
IN_CONFIG = config(quant_method="modelopt", **TWO_KINDS["hf_quant_config.json"]["quantization"])

SOUND = {
    "FP8": Case(FP8_MODULE, reasons={"a.weight": ONE_SCALE}, config=modelopt("FP8")),
    "NVFP4": Case(NVFP4_MODULE, {"b.weight": ("e2m1", "f8e4m3")}, config=modelopt("NVFP4")),
    "W4A8_AWQ": Case(AWQ_MODULE, reasons={"a.weight": ACROSS}, config=modelopt("W4A8_AWQ")),
    "stacked experts": Case(EXPERTS, {"e.down_proj": ("e2m1", "f8e4m3")}, config=modelopt("NVFP4")),
    "an outer scale for each of the stacked experts": Case(
        {**EXPERTS, "e.down_proj_weight_scale_2": t("F32", 4)},
        reasons={"e.down_proj": PER_EXPERT},
        config=modelopt("NVFP4"),
    ),
    "an algorithm that is not known": Case({"x.weight": t("BF16", 64, 32)}, config=modelopt("INVENTED")),
    **{
        f"layers of two kinds in {file}": Case(
            {**AWQ_MODULE, **NVFP4_MODULE},
            {"b.weight": ("e2m1", "f8e4m3")},
            {"a.weight": ACROSS},
            config=content,
        )
        for file, content in (("hf_quant_config.json", TWO_KINDS), ("config.json", IN_CONFIG))
    },
}

BROKEN = {
    **{
        f"both scales of {algorithm} that are missing": Case(
            {"x.weight": t("U8", 64, 32)},
            findings=(("scale-missing", "x.weight"), ("scale-missing", "x.weight")),
            config=modelopt(algorithm),
        )
        for algorithm in ("NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "W4A8_AWQ")
    },
    **{
        f"a scale of {algorithm} that is missing": Case(
            {"x.weight": t(dtype, 64, 32)},
            findings=(("scale-missing", "x.weight"),),
            config=modelopt(algorithm),
        )
        for algorithm, dtype in (
            ("MXFP4", "U8"),
            ("W4A8_MXFP4_FP8", "U8"),
            ("FP8", "F8_E4M3"),
            ("W8A16", "I8"),
        )
    },
    "scales of mixed layers that are missing": Case(
        {"a.weight": t("F8_E4M3", 64, 32), "b.weight": t("U8", 64, 32)},
        findings=(
            ("scale-missing", "a.weight"),
            ("scale-missing", "b.weight"),
            ("scale-missing", "b.weight"),
        ),
        config=MIXED,
    ),
    "a layer of another algorithm than it is said to have": Case(
        {name.replace("b", "a", 1): made for name, made in NVFP4_MODULE.items()},
        findings=(
            ("other-format", "a.weight"),
            ("other-format", "a.weight_scale_2"),
            ("scale-shape", "a.weight_scale"),
        ),
        config=MIXED,
    ),
    "an outer scale without a scale": Case(
        without(NVFP4_MODULE, "b.weight_scale"), findings=(("scale-missing", "b.weight"),)
    ),
    "an outer scale of stacked experts without a scale": Case(
        without(EXPERTS, "e.down_proj_weight_scale"), findings=(("scale-missing", "e.down_proj"),)
    ),
    "an outer scale of stacked experts without them": Case(
        {"e.down_proj_weight_scale_2": t("F32")},
        findings=(("scale-unused", "e.down_proj_weight_scale_2"),),
    ),
    "both scales of stacked experts that are missing": Case(
        {"e.down_proj": t("U8", 4, 64, 32)},
        findings=(("scale-missing", "e.down_proj"), ("scale-missing", "e.down_proj")),
        config=modelopt("NVFP4"),
    ),
    "scales of another dtype than NVFP4 has": Case(
        {**NVFP4_MODULE, "b.weight_scale": t("U8", 64, 4)},
        findings=(("scale-shape", "b.weight_scale"),),
        config=modelopt("NVFP4"),
    ),
    "a short scale of W4A8_AWQ": Case(
        {**AWQ_MODULE, "a.weight_scale": t("BF16", 63, 4)},
        findings=(("scale-shape", "a.weight_scale"),),
        config=modelopt("W4A8_AWQ"),
    ),
}

CASES = SOUND | BROKEN


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
