"""bitsandbytes: codes of four bits with the state that decodes them, and integers by channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.conventions.template import CODEBOOK
from tests.checkpoints.cases import Case, hold_to, hold_to_each_change, layers, t, text, without
from tests.checkpoints.models import config

STATE = "weight.quant_state.bitsandbytes__nf4"
NF4 = layers(
    {
        "x.weight": t("U8", 2048, 1),
        "x.weight.absmax": t("F32", 64),
        "x.weight.quant_map": t("F32", 16),
        f"x.{STATE}": text('{"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [64, 64]}'),
    }
)
NF4_CONFIG = config(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4")
INT8 = {"x.weight": t("I8", 64, 96), "x.SCB": t("F32", 64), "x.weight_format": t("U8")}
INT8_CONFIG = config(quant_method="bitsandbytes", load_in_8bit=True, llm_int8_skip_modules=["lm_head"])
OF_LAYERS = dict.fromkeys((f"l.{layer}.q.weight" for layer in range(3)), CODEBOOK)

CASES = {
    "nf4": Case(NF4, reasons=OF_LAYERS, config=NF4_CONFIG),
    "nf4 without a config": Case(NF4, reasons=OF_LAYERS),
    "int8": Case(INT8, {"x.weight": ("i8", "f32")}, config=INT8_CONFIG),
    "int8 beside a module that is left out": Case(
        {**INT8, "lm_head.weight": t("BF16", 64, 96)}, {"x.weight": ("i8", "f32")}, config=INT8_CONFIG
    ),
    "a scale of int8 that is missing": Case(
        without(INT8, "x.SCB"), findings=(("scale-missing", "x.weight"),), config=INT8_CONFIG
    ),
    "a short scale of int8": Case(
        {**INT8, "x.SCB": t("F32", 63)}, findings=(("scale-shape", "x.SCB"),), config=INT8_CONFIG
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)


def test_each_change_of_a_tensor_is_noticed(tmp_path: Path) -> None:
    names = [name for name in NF4 if name.startswith("l.1.") and not name.endswith(STATE)]
    hold_to_each_change(CASES["nf4"], tmp_path, names)
