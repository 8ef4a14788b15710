"""GPTQ and AWQ, and AutoRound, which takes the tensors of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.conventions.template import BLOCKS, OWN_ORDER
from kiln_check.checkpoints.links import NOT_KNOWN
from tests.checkpoints.cases import (
    Case,
    hold_to,
    hold_to_each_change,
    layers,
    t,
    without,
)
from tests.checkpoints.models import config

GPTQ = layers(
    {
        "x.qweight": t("I32", 8, 32),
        "x.qzeros": t("I32", 2, 4),
        "x.scales": t("F16", 2, 32),
        "x.g_idx": t("I32", 64),
    }
)
AWQ = layers({"x.qweight": t("I32", 64, 12), "x.qzeros": t("I32", 2, 12), "x.scales": t("F16", 2, 96)})
AUTOROUND = {"x.qweight": t("I32", 8, 64), "x.qzeros": t("I32", 2, 8), "x.scales": t("F16", 2, 64)}
AUTOROUND_BYTES = {
    "y.qweight": t("I32", 16, 64),
    "y.qzeros": t("I32", 2, 16),
    "y.scales": t("F16", 2, 64),
}

GPTQ_CONFIG = {"quant_method": "gptq", "bits": 4, "group_size": 32}
AWQ_CONFIG = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}
AUTOROUND_CONFIG = {
    "quant_method": "auto-round",
    "bits": 4,
    "group_size": 32,
    "data_type": "int",
    "sym": True,
}
IN_GPTQ = {**AUTOROUND_CONFIG, "packing_format": "auto_round:auto_gptq", "extra_config": {"y": {"bits": 8}}}
FP8 = {
    **AUTOROUND_CONFIG,
    "bits": 8,
    "data_type": "fp",
    "group_size": [128, 128],
    "packing_format": "auto_round:fp8",
    "weight_block_size": [128, 128],
}
FP8_MODULE = {"x.weight": t("F8_E4M3", 64, 192), "x.weight_scale_inv": t("BF16", 1, 2)}
OF_LAYERS = dict.fromkeys((f"l.{layer}.q.qweight" for layer in range(3)), OWN_ORDER)

SOUND = {
    "GPTQ": Case(GPTQ, reasons=OF_LAYERS, config=config(**GPTQ_CONFIG)),
    "AWQ": Case(AWQ, reasons=OF_LAYERS, config=config(**AWQ_CONFIG)),
    "GPTQ without a config": Case(GPTQ, reasons=OF_LAYERS),
    "AWQ without a config": Case(AWQ, reasons=OF_LAYERS),
    "GPTQ in quantize_config.json": Case(
        GPTQ, reasons=OF_LAYERS, config={"quantize_config.json": {"bits": 4, "group_size": 32}}
    ),
    "AWQ in quant_config.json": Case(
        AWQ,
        reasons=OF_LAYERS,
        config={"quant_config.json": {"w_bit": 4, "q_group_size": 32, "version": "GEMM"}},
    ),
    "a module that AWQ's config leaves out": Case(
        {**AWQ, "lm_head.weight": t("BF16", 96, 64)},
        reasons=OF_LAYERS,
        config=config(**AWQ_CONFIG, modules_to_not_convert=["lm_head"]),
    ),
    "a version of AWQ that is not known": Case(
        {**AWQ, "l.0.q.scales": t("F16", 3, 5)},
        reasons=dict.fromkeys(OF_LAYERS, NOT_KNOWN),
        config=config(**{**AWQ_CONFIG, "version": "invented"}),
    ),
    "AutoRound, a module with settings of its own": Case(
        AUTOROUND | AUTOROUND_BYTES,
        reasons={"x.qweight": OWN_ORDER, "y.qweight": OWN_ORDER},
        config=config(**IN_GPTQ),
    ),
    "AutoRound's FP8 in blocks": Case(FP8_MODULE, reasons={"x.weight": BLOCKS}, config=config(**FP8)),
}

BROKEN = {
    "the group size of GPTQ's config": Case(
        {name: made for name, made in GPTQ.items() if name.startswith("l.0")},
        findings=(("scale-shape", "l.0.q.qzeros"), ("scale-shape", "l.0.q.scales")),
        config=config(**{**GPTQ_CONFIG, "group_size": 16}),
    ),
    "AutoRound, a module of another width than is said": Case(
        {name.replace("x", "y", 1): made for name, made in AUTOROUND.items()},
        findings=(("scale-shape", "y.qzeros"), ("scale-shape", "y.scales")),
        config=config(**IN_GPTQ),
    ),
    "AutoRound's zero points that are missing": Case(
        without(AUTOROUND, "x.qzeros"), findings=(("scale-missing", "x.qweight"),), config=config(**IN_GPTQ)
    ),
    "AutoRound's FP8 with scales that are transposed": Case(
        {**FP8_MODULE, "x.weight_scale_inv": t("BF16", 2, 1)},
        findings=(("scale-shape", "x.weight_scale_inv"),),
        config=config(**FP8),
    ),
}

CASES = SOUND | BROKEN


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)


@pytest.mark.parametrize("name", ["GPTQ", "AWQ"])
def test_each_change_of_a_tensor_is_noticed(name: str, tmp_path: Path) -> None:
    case = SOUND[name]
    hold_to_each_change(case, tmp_path, [one for one in case.tensors if one.startswith("l.1.")])


def test_a_check_names_a_version_that_is_not_known(tmp_path: Path) -> None:
    notes = check_checkpoint(SOUND["a version of AWQ that is not known"].write(tmp_path)).notes
    assert any("invented" in note.lower() for note in notes)
