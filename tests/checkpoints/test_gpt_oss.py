"""gpt-oss: experts in MXFP4, by the Hub's names and by OpenAI's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkpoints.cases import Case, hold_to, t
from tests.checkpoints.models import config

EXPERTS = {"x_blocks": t("U8", 4, 6, 4, 16), "x_scales": t("U8", 4, 6, 4)}
MXFP4 = config(quant_method="mxfp4", modules_to_not_convert=["model.embed_tokens", "lm_head"])

CASES = {
    "the Hub's names": Case(EXPERTS, {"x_blocks": ("e2m1", "e8m0")}, config=MXFP4),
    "OpenAI's names": Case(
        {"x.blocks": t("U8", 4, 6, 4, 16), "x.scales": t("U8", 4, 6, 4)}, {"x.blocks": ("e2m1", "e8m0")}
    ),
    "a module that is left out": Case(
        {**EXPERTS, "lm_head.weight": t("BF16", 6, 8)}, {"x_blocks": ("e2m1", "e8m0")}, config=MXFP4
    ),
    "scales of other meaning": Case(
        {**EXPERTS, "vision.image.scales": t("U8", 4), "a.kv_scales": t("F8_E4M3", 4)},
        {"x_blocks": ("e2m1", "e8m0")},
    ),
    "scales that are missing": Case(
        {"x_blocks": t("U8", 4, 6, 4, 16)}, findings=(("scale-missing", "x_blocks"),), config=MXFP4
    ),
    "scales that lost a column": Case(
        {**EXPERTS, "x_scales": t("U8", 4, 6, 3)}, findings=(("scale-shape", "x_scales"),), config=MXFP4
    ),
    "scales that nothing uses": Case(
        {**EXPERTS, "y_scales": t("U8", 4, 6, 4)},
        {"x_blocks": ("e2m1", "e8m0")},
        findings=(("scale-unused", "y_scales"),),
        config=MXFP4,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
