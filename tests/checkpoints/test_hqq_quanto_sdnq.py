"""HQQ, optimum-quanto and SDNQ, which pack weights in orders of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.conventions.template import OWN_ORDER, ZERO_POINTS
from tests.checkpoints.building import Made
from tests.checkpoints.cases import Case, hold_to, t, text, without
from tests.checkpoints.models import config, sizes


def number(value: int) -> Made:
    return Made("I32", (), value.to_bytes(4, "little"))


def flag(value: bool) -> Made:
    return Made("U8", (), bytes([value]))


HQQ = {
    "x.W_q": t("U8", 96, 64),
    "x.scale": t("BF16", 192, 1),
    "x.zero": t("BF16", 192, 1),
    "x.nbits": number(4),
    "x.group_size": number(64),
    "x.shape": sizes(64, 192),
    "x.axis": number(1),
    "x.packing": text("4bit_u8"),
    "x.unpack_view_dtype": text("torch.uint8"),
    "x.view_as_float": flag(False),
    "x.quant_scale": flag(False),
    "x.quant_zero": flag(False),
    "x.compute_dtype": text("torch.bfloat16"),
    "x.offload_meta": flag(False),
    "x.encoded_state_dict": flag(True),
    "x.stores_quant_config": flag(True),
    "x.channel_wise": flag(True),
    "x.optimize": flag(True),
    "x.round_zero": flag(True),
}

OF_ACTIVATIONS = {"x.input_scale": t("BF16"), "x.output_scale": t("BF16")}
QUANTO_BYTES = {
    **OF_ACTIVATIONS,
    "x.weight._data": t("F8_E4M3", 64, 192),
    "x.weight._scale": t("BF16", 64, 1),
}
QUANTO_BITS = {
    **OF_ACTIVATIONS,
    "x.weight._data._data": t("U8", 64, 96),
    "x.weight._scale": t("BF16", 128, 1),
    "x.weight._shift": t("BF16", 128, 1),
}


def quanto(format_: str) -> dict[str, Any]:
    return {"quanto_qmap.json": {"x": {"weights": format_, "activations": "none"}}}


SDNQ_INT6 = {"x.weight": t("U8", 3072, 3), "x.scale": t("F32", 64, 1)}
SDNQ_UINT4 = {
    "x.weight": t("U8", 6144),
    "x.scale": t("F32", 64, 3, 1),
    "x.zero_point": t("F32", 64, 3, 1),
}
SDNQ_MULTIPLIED = {"x.weight": t("I8", 192, 64), "x.scale": t("F32", 1, 64)}


def sdnq(format_: str, **settings: object) -> dict[str, Any]:
    return config(quant_method="sdnq", weights_dtype=format_, group_size=0, use_svd=False, **settings)


CASES = {
    "HQQ": Case(HQQ, reasons={"x.W_q": ZERO_POINTS}),
    "HQQ, scales that are missing": Case(without(HQQ, "x.scale"), findings=(("scale-missing", "x.W_q"),)),
    "HQQ, short zero points": Case(
        {**HQQ, "x.zero": t("BF16", 191, 1)}, findings=(("scale-shape", "x.zero"),)
    ),
    "quanto, bytes": Case(
        QUANTO_BYTES, {"x.weight._data": ("f8e4m3", "bf16")}, config=quanto("qfloat8_e4m3fn")
    ),
    "quanto, four bits": Case(
        QUANTO_BITS, reasons={"x.weight._data._data": ZERO_POINTS}, config=quanto("qint4")
    ),
    "quanto, a short scale of bytes": Case(
        {**QUANTO_BYTES, "x.weight._scale": t("BF16", 63, 1)},
        findings=(("scale-shape", "x.weight._scale"),),
        config=quanto("qfloat8_e4m3fn"),
    ),
    "quanto, shifts that are missing": Case(
        without(QUANTO_BITS, "x.weight._shift"),
        findings=(("scale-missing", "x.weight._data._data"),),
        config=quanto("qint4"),
    ),
    "SDNQ, elements of 6 bits": Case(SDNQ_INT6, reasons={"x.weight": OWN_ORDER}, config=sdnq("int6")),
    "SDNQ, groups with zero points": Case(SDNQ_UINT4, reasons={"x.weight": OWN_ORDER}, config=sdnq("uint4")),
    "SDNQ, bytes that lie transposed": Case(
        SDNQ_MULTIPLIED, {"x.weight": ("i8", "f32")}, config=sdnq("int8", use_quantized_matmul=True)
    ),
    "SDNQ, a scale that lies the other way": Case(
        {**SDNQ_MULTIPLIED, "x.scale": t("F32", 64, 1)},
        findings=(("scale-shape", "x.scale"),),
        config=sdnq("int8", use_quantized_matmul=True),
    ),
    "SDNQ, zero points that are missing": Case(
        without(SDNQ_UINT4, "x.zero_point"), findings=(("scale-missing", "x.weight"),), config=sdnq("uint4")
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)
