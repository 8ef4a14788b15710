"""compressed-tensors: modules that its config declares, or that have its names."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.conventions.template import ACTIVATION_ORDER, BLOCKS, PART_WORDS, ZERO_POINTS
from kiln_check.checkpoints.links import NOT_KNOWN, TOO_LARGE, UNSAID
from kiln_check.checkpoints.plan import plan
from kiln_check.cli import main
from tests.checkpoints.building import Made, copy_of, edit
from tests.checkpoints.cases import (
    ASYM,
    ASYM8,
    FP8,
    GROUP_ORDER,
    INT4,
    INT8,
    MXFP4,
    NVFP4,
    Case,
    hold_to,
    t,
    without,
    words,
)
from tests.checkpoints.models import compressed, config, sizes


def ignoring(*patterns: str) -> dict[str, Any]:
    """The config of integers by channel, some modules left out."""
    return config(**{**INT8["config.json"]["quantization_config"], "ignore": list(patterns)})


def two_groups() -> dict[str, Any]:
    """Groups of integers in words, those of `y` with zero points."""
    usual = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
    return config(
        quant_method="compressed-tensors",
        format="pack-quantized",
        config_groups={
            "group_0": {"targets": ["re:.*x$"], "weights": {**usual, "symmetric": True}},
            "group_1": {"targets": ["re:.*y$"], "weights": {**usual, "symmetric": False}},
        },
    )


NVFP4_MODULE = {
    "x.weight_packed": t("U8", 64, 32),
    "x.weight_scale": t("F8_E4M3", 64, 4),
    "x.weight_global_scale": t("F32", 1),
}
BYTES = {
    "x.weight": t("I8", 64, 64),
    "x.weight_scale": t("F32", 64, 1),
    "x.weight_zero_point": t("I8", 64, 1),
}

SOUND = {
    "a weight_shape of I32": Case(
        words(x__weight_shape=Made("I32", (2,), struct.pack("<2i", 4, 128))),
        {"x.weight_packed": ("u4", "bf16")},
    ),
    "integers in words": Case(words(), {"x.weight_packed": ("u4", "bf16")}, config=INT4),
    "integers in words with zero points": Case(
        words(x__weight_zero_point=t("I32", 1, 4)), reasons={"x.weight_packed": ZERO_POINTS}, config=ASYM
    ),
    "integers in activation order": Case(
        words(x__weight_g_idx=t("I32", 128)),
        reasons={"x.weight_packed": ACTIVATION_ORDER},
        config=GROUP_ORDER,
    ),
    "rows that do not fill words": Case(
        words(x__weight_shape=sizes(4, 124)), reasons={"x.weight_packed": PART_WORDS}, config=INT4
    ),
    "integers by channel": Case(
        without(BYTES, "x.weight_zero_point"), {"x.weight": ("i8", "f32")}, config=INT8
    ),
    "integers by channel with zero points": Case(BYTES, reasons={"x.weight": ZERO_POINTS}, config=ASYM8),
    "floats by channel": Case(
        {"x.weight": t("F8_E4M3", 6, 64), "x.weight_scale": t("BF16", 6, 1)},
        {"x.weight": ("f8e4m3", "bf16")},
        config=FP8,
    ),
    "floats in blocks": Case(
        {"x.weight": t("F8_E4M3", 200, 300), "x.weight_scale": t("BF16", 2, 3)},
        reasons={"x.weight": BLOCKS},
        config=compressed(
            "float-quantized", num_bits=8, type="float", strategy="block", block_structure=[128, 128]
        ),
    ),
    "NVFP4": Case(NVFP4_MODULE, {"x.weight_packed": ("e2m1", "f8e4m3")}, config=NVFP4),
    "MXFP4": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 2)},
        {"x.weight_packed": ("e2m1", "e8m0")},
        config=MXFP4,
    ),
    "groups of which one has zero points": Case(
        {
            **words(),
            **{
                name.replace("x", "y", 1): made
                for name, made in words(x__weight_zero_point=t("I32", 1, 4)).items()
            },
        },
        {"x.weight_packed": ("u4", "bf16")},
        {"y.weight_packed": ZERO_POINTS},
        config=two_groups(),
    ),
    "modules that the config leaves out": Case(
        {"lm_head.weight": t("BF16", 64, 32), "v.0.weight": t("BF16", 64, 32)},
        config=ignoring("lm_head", r"re:v\..*"),
    ),
    "a pattern that is not followed": Case(
        {"x.weight": t("I8", 64, 32)}, reasons={"x.weight": UNSAID}, config=ignoring(r"re:(?=x)x")
    ),
    "more elements in a row than a descriptor holds": Case(
        {"x.weight_packed": t("U8", 0, 2**63), "x.weight_scale": t("U8", 0, 2**59)},
        reasons={"x.weight_packed": TOO_LARGE},
    ),
    "scales of packed words that are integers": Case(
        words(x__weight_scale=t("I16", 4, 4)), reasons={"x.weight_packed": NOT_KNOWN}
    ),
}

BROKEN = {
    "integers whose zero points are missing": Case(
        words(), findings=(("scale-missing", "x.weight_packed"),), config=ASYM
    ),
    "integers of the group of a config that has zero points": Case(
        {name.replace("x", "y", 1): made for name, made in words().items()},
        findings=(("scale-missing", "y.weight_packed"),),
        config=two_groups(),
    ),
    "whole integers whose zero points are missing": Case(
        without(BYTES, "x.weight_zero_point"), findings=(("scale-missing", "x.weight"),), config=ASYM8
    ),
    "integers in activation order without the order": Case(
        words(), findings=(("scale-missing", "x.weight_packed"),), config=GROUP_ORDER
    ),
    "a scale of integers that is missing": Case(
        {"x.weight": t("I8", 64, 32)}, findings=(("scale-missing", "x.weight"),), config=ignoring("lm_head")
    ),
    "a scale that is missing where an expression has nested repetitions": Case(
        {"x.weight": t("I8", 64, 32)},
        findings=(("scale-missing", "x.weight"),),
        config=ignoring("re:(a+)+x$"),
    ),
    "a module that the config leaves out": Case(
        {"x.weight": t("I8", 64, 32), "x.weight_scale": t("F32", 64, 1)},
        findings=(("other-format", "x.weight"),),
        config=ignoring("x"),
    ),
    "a short scale of NVFP4": Case(
        {**NVFP4_MODULE, "x.weight_scale": t("F8_E4M3", 63, 4)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=NVFP4,
    ),
    "two outer scales for one matrix": Case(
        {**NVFP4_MODULE, "x.weight_global_scale": t("F32", 2)},
        findings=(("scale-shape", "x.weight_global_scale"),),
    ),
    "a short scale in activation order": Case(
        words(x__weight_g_idx=t("I32", 128), x__weight_scale=t("BF16", 3, 4)),
        findings=(("scale-shape", "x.weight_scale"),),
        config=GROUP_ORDER,
    ),
    "a short scale of rows that do not fill words": Case(
        words(x__weight_shape=sizes(4, 124), x__weight_scale=t("BF16", 3, 4)),
        findings=(("scale-shape", "x.weight_scale"),),
        config=INT4,
    ),
    "a short scale beside zero points": Case(
        {**BYTES, "x.weight_scale": t("F32", 63, 1)}, findings=(("scale-shape", "x.weight_scale"),)
    ),
    "short zero points": Case(
        {**BYTES, "x.weight_zero_point": t("I8", 63, 1)}, findings=(("scale-shape", "x.weight_zero_point"),)
    ),
    "short zero points in words": Case(
        words(x__weight_zero_point=t("I32", 1, 3)), findings=(("scale-shape", "x.weight_zero_point"),)
    ),
    "a weight_shape that is missing": Case(
        without(words(), "x.weight_shape"), findings=(("scale-missing", "x.weight_packed"),), config=INT4
    ),
    "a weight_shape that is missing beside zero points": Case(
        without(words(x__weight_zero_point=t("I32", 1, 4)), "x.weight_shape"),
        findings=(("scale-missing", "x.weight_packed"),),
        config=ASYM,
    ),
    "a weight_shape cut short": Case(
        words(x__weight_shape=sizes(4)), findings=(("scale-shape", "x.weight_shape"),), config=INT4
    ),
    "a weight_shape of three numbers": Case(
        words(x__weight_shape=sizes(4, 128, 1)), findings=(("scale-shape", "x.weight_shape"),), config=INT4
    ),
    "packed words cut short in activation order": Case(
        words(x__weight_g_idx=t("I32", 128), x__weight_packed=t("I32", 3, 16)),
        findings=(("packed-shape", "x.weight_packed"),),
        config=GROUP_ORDER,
    ),
    "scales of another dtype than the config's nvfp4 has": Case(
        {**NVFP4_MODULE, "x.weight_scale": t("F16", 64, 4)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=NVFP4,
    ),
    "scales of plain bytes where the config says nvfp4": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 2)},
        findings=(("scale-missing", "x.weight_packed"), ("scale-shape", "x.weight_scale")),
        config=NVFP4,
    ),
    "scales of another dtype than the config's mxfp4 has": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("F8_E4M3", 64, 4)},
        findings=(("scale-shape", "x.weight_scale"),),
        config=MXFP4,
    ),
    "a part of marlin-24 that is missing": Case(
        {"x.weight_packed": t("I32", 4, 256), "x.scale_packed": t("F16", 1, 128)},
        findings=(("scale-missing", "x.weight_packed"),),
    ),
}

CASES = SOUND | BROKEN


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)


@pytest.mark.parametrize("suffix", ["weight_zero_point", "weight_scale"])
def test_a_real_asymmetric_checkpoint_without_a_tensor_is_not_ok(suffix: str, tmp_path: Path) -> None:
    copy = copy_of("ct-int4-asym", tmp_path)
    gone = f"model.layers.0.mlp.down_proj.{suffix}"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(gone))
    (found,) = check_checkpoint(str(copy / "model.safetensors")).findings
    assert found.rule == "scale-missing"
    assert found.message.startswith(f'"{gone}" is missing beside ')
    assert plan(read_checkpoint(str(copy / "model.safetensors"))).links == []


def test_an_import_that_is_refused_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-int4-asym", tmp_path)
    gone = "model.layers.0.mlp.down_proj.weight_zero_point"
    edit(copy / "model.safetensors", lambda tensors: tensors.pop(gone))
    assert main(["import", str(copy), "-o", str(tmp_path / "out.kiln")]) == 1
    assert f'"{gone}" is missing' in capsys.readouterr().err
    assert not (tmp_path / "out.kiln").exists()
