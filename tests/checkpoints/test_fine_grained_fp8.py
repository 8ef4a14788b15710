"""Fine-grained FP8 and what has its config, DeepSeek's own names, and Mistral's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.template import BLOCKS, ONE_SCALE
from tests.checkpoints.cases import BLOCK_FP8, Case, hold_to, t
from tests.checkpoints.models import config

PER_TENSOR = config(quant_method="fp8", activation_scheme="static", weight_block_size=None)
PARAMS = {"params.json": {"dim": 96, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}}
MISTRAL = {
    "layers.0.q.weight": t("F8_E4M3", 64, 96),
    "layers.0.q.qscale_weight": t("BF16"),
    "layers.0.q.qscale_act": t("BF16"),
}

SOUND = {
    "blocks": Case(
        {"x.weight": t("F8_E4M3", 200, 300), "x.weight_scale_inv": t("BF16", 2, 3)},
        reasons={"x.weight": BLOCKS},
        config=BLOCK_FP8,
    ),
    "blocks of fused experts, gate and up rounded each": Case(
        {"e.gate_up_proj": t("F8_E4M3", 2, 320, 128), "e.gate_up_proj_scale_inv": t("F32", 2, 4, 1)},
        reasons={"e.gate_up_proj": BLOCKS},
        config=BLOCK_FP8,
    ),
    "one scale, of activations too": Case(
        {
            "x.weight": t("F8_E4M3", 64, 96),
            "x.weight_scale_inv": t("BF16"),
            "x.activation_scale": t("BF16"),
        },
        reasons={"x.weight": ONE_SCALE},
        config=PER_TENSOR,
    ),
    "a module that is left out": Case(
        {"lm_head.weight": t("BF16", 64, 96)},
        config=config(quant_method="fp8", weight_block_size=[128, 128], modules_to_not_convert=["lm_head"]),
    ),
    "mxfp8": Case(
        {"x.weight": t("F8_E4M3", 64, 96), "x.weight_scale_inv": t("U8", 64, 3)},
        {"x.weight": ("f8e4m3", "e8m0")},
        config=config(quant_method="mxfp8"),
    ),
    "blocks of integers": Case(
        {"x.weight": t("I8", 256, 128), "x.weight_scale_inv": t("F32", 2, 1)},
        reasons={"x.weight": BLOCKS},
        config=config(quant_method="blockwise_int8", weight_block_size=[128, 128]),
    ),
    **{
        f"DeepSeek's experts in {dtype}": Case(
            {"x.weight": t(dtype, 64, width), "x.scale": t("F8_E8M0", 64, 2)},
            {"x.weight": ("e2m1", "e8m0")},
            config=BLOCK_FP8,
        )
        for dtype, width in (("I8", 32), ("F4", 64))
    },
    "DeepSeek's blocks": Case(
        {"x.weight": t("F8_E4M3", 256, 128), "x.scale": t("F8_E8M0", 2, 1)},
        reasons={"x.weight": BLOCKS},
        config=BLOCK_FP8,
    ),
    "Mistral": Case(MISTRAL, reasons={"layers.0.q.weight": ONE_SCALE}, config=PARAMS),
}

BROKEN = {
    "a scale of another format alone": Case(
        {"m.weight_scale": t("F32", 1)}, findings=(("other-format", "m.weight_scale"),), config=BLOCK_FP8
    ),
    "a scale of blocks that is missing": Case(
        {"x.weight": t("F8_E4M3", 256, 128)}, findings=(("scale-missing", "x.weight"),), config=BLOCK_FP8
    ),
    "a scale of blocks that is transposed": Case(
        {"x.weight": t("F8_E4M3", 256, 128), "x.weight_scale_inv": t("F32", 1, 2)},
        findings=(("scale-shape", "x.weight_scale_inv"),),
        config=BLOCK_FP8,
    ),
    "a scale of activations that is missing": Case(
        {"x.weight": t("F8_E4M3", 64, 96), "x.weight_scale_inv": t("BF16")},
        findings=(("scale-missing", "x.weight"),),
        config=PER_TENSOR,
    ),
    "a short scale of mxfp8": Case(
        {"x.weight": t("F8_E4M3", 64, 96), "x.weight_scale_inv": t("U8", 63, 3)},
        findings=(("scale-shape", "x.weight_scale_inv"),),
        config=config(quant_method="mxfp8"),
    ),
    "a short scale of blocks of integers": Case(
        {"x.weight": t("I8", 256, 128), "x.weight_scale_inv": t("F32", 1, 1)},
        findings=(("scale-shape", "x.weight_scale_inv"),),
        config=config(quant_method="blockwise_int8", weight_block_size=[128, 128]),
    ),
    **{
        f"a scale of DeepSeek's experts in {dtype} that is missing": Case(
            {"x.weight": t(dtype, 64, 32)}, findings=(("scale-missing", "x.weight"),), config=BLOCK_FP8
        )
        for dtype in ("I8", "F4")
    },
    "a short scale of DeepSeek's blocks": Case(
        {"x.weight": t("F8_E4M3", 256, 128), "x.scale": t("F8_E8M0", 1, 1)},
        findings=(("scale-shape", "x.scale"),),
        config=BLOCK_FP8,
    ),
    "a scale of Mistral that is missing": Case(
        {name: made for name, made in MISTRAL.items() if not name.endswith("qscale_weight")},
        findings=(("scale-missing", "layers.0.q.weight"),),
        config=PARAMS,
    ),
    "a scale of Mistral by row": Case(
        {**MISTRAL, "layers.0.q.qscale_weight": t("BF16", 64)},
        findings=(("scale-shape", "layers.0.q.qscale_weight"),),
        config=PARAMS,
    ),
}

CASES = SOUND | BROKEN


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
