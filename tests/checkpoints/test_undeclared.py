"""Modules that no config declares: what alone fits them, or why nothing is said of them."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.conventions.template import BLOCKS, ONE_SCALE
from kiln_check.checkpoints.links import NOT_KNOWN, UNSAID
from tests.checkpoints.building import Made, with_header
from tests.checkpoints.cases import BLOCK_FP8, Case, hold_to, mlx, t
from tests.checkpoints.models import config, modelopt

CASES = {
    "one scale a column": Case(
        {"x.weight": t("F8_E4M3", 128, 256), "x.weight_scale": t("F32", 1, 256)}, reasons={"x.weight": UNSAID}
    ),
    **{
        f"scales by channel of {dtype}": Case(
            {"x.weight": t("F8_E4M3", 6, 64), "x.weight_scale": t(dtype, 6, 1)},
            reasons={"x.weight": NOT_KNOWN},
        )
        for dtype in ("I64", "BOOL", "I32", "U16")
    },
    "a scalar for each expert": Case(
        {"x.weight": t("F8_E4M3", 8, 256, 256), "x.weight_scale": t("F32", 8)},
        reasons={"x.weight": ONE_SCALE},
    ),
    "blocks of a size that is not usual": Case(
        {"x.weight": t("F8_E4M3", 256, 256), "x.weight_scale": t("F32", 4, 4)}, reasons={"x.weight": UNSAID}
    ),
    "blocks of a size that the tool has too": Case(
        {"x.weight": t("F8_E4M3", 256, 256), "x.weight_scale_inv": t("F32", 4, 4)},
        reasons={"x.weight": BLOCKS},
    ),
    "blocks with e8m0 scales": Case(
        {"x.weight": t("F8_E4M3", 256, 512), "x.weight_scale": t("F8_E8M0", 2, 4)},
        reasons={"x.weight": BLOCKS},
    ),
    "blocks whose scale is called scale": Case(
        {"x.weight": t("F8_E4M3", 256, 256), "x.scale": t("F32", 2, 2)}, reasons={"x.weight": BLOCKS}
    ),
    "scales of other meaning": Case(
        {
            "img_attn.norm.key_norm.scale": t("F8_E4M3", 128),
            "a.q_scales": t("U8", 4),
            "vision.image.scales": t("U8", 4),
            "a.kv_scales": t("F8_E4M3", 4),
            "b.scale": t("F8_E8M0", 4),
        }
    ),
    "a weight of bytes alone": Case(
        {"x.weight": t("F8_E4M3", 64, 32), "y.weight": t("U8", 64, 32), "z.weight": t("U8", 64)},
        reasons={"x.weight": UNSAID, "y.weight": UNSAID},
    ),
    "weights of a tool that is not known": Case(
        {
            "x.weight": t("F8_E4M3", 64, 32),
            "x.weight_scale": t("F32", 63, 1),
            "y.weight": t("BF16", 64, 32),
        },
        reasons={"x.weight": NOT_KNOWN},
        config=config(quant_method="invented"),
    ),
    "packed bytes whose scale is missing": Case(
        {"x.weight_packed": t("U8", 64, 32)}, findings=(("scale-missing", "x.weight_packed"),)
    ),
    "a short scale of packed bytes": Case(
        {"x.weight_packed": t("U8", 64, 32), "x.weight_scale": t("U8", 63, 2)},
        findings=(("scale-shape", "x.weight_scale"),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)


@pytest.mark.parametrize(
    ("tensors", "sibling", "message"),
    [
        (
            {"x.weight": t("U8", 64, 32), "x.weight_scale_2": t("F32")},
            modelopt("NVFP4"),
            '"x.weight_scale" is missing beside "x.weight" U8 [64, 32]; '
            "ModelOpt NVFP4 has F8_E4M3 [64, 4] there",
        ),
        (
            {"a.weight": t("U32", 6, 8)},
            mlx("mxfp4"),
            '"a.scales" is missing beside "a.weight" U32 [6, 8]; MLX mxfp4 has U8 [6, 2] there',
        ),
        (
            {"a.weight": t("F8_E4M3", 6, 8), "a.weight_scale_inv": t("F32", 2, 1)},
            BLOCK_FP8,
            '"a.weight_scale_inv" is F32 [2, 1] beside "a.weight" F8_E4M3 [6, 8]; '
            "fine-grained FP8 blocks has F16 or BF16 or F32 [1, 1] there",
        ),
        (
            {"a_blocks": t("U8", 2, 6, 1, 16)},
            {},
            '"a_scales" is missing beside "a_blocks" U8 [2, 6, 1, 16]; '
            "gpt-oss MXFP4 has U8 or F8_E8M0 [2, 6, 1] there",
        ),
    ],
)
def test_a_message_names_the_tensor_its_module_and_what_the_format_has(
    tensors: dict[str, Made], sibling: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (found,) = check_checkpoint(Case(tensors, config=sibling).write(tmp_path)).findings
    assert found.message == message


@pytest.mark.parametrize(
    "tensors",
    [
        {"x.weight": ("F8_E4M3", [64, 64]), "x.weight_scale_inv": ("F32", None)},
        {
            "x.weight_packed": ("U8", [64, 64]),
            "x.weight_scale": ("F8_E4M3", [64, 8]),
            "x.weight_global_scale": ("F32", None),
        },
        {"x.weight": ("U8", None), "x.weight_scale": ("U8", [64, 8])},
        {"x.weight_scale": ("U8", None)},
    ],
)
def test_a_tensor_of_too_many_dimensions_is_found_first(
    tensors: dict[str, tuple[str, list[int] | None]], tmp_path: Path
) -> None:
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        length = 4 if shape is None else prod(shape)
        header[name] = {
            "dtype": dtype,
            "shape": [2**60] * 300 if shape is None else shape,
            "data_offsets": [at, at + length],
        }
        at += length
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(json.dumps(header).encode(), bytes(at)))
    assert check_checkpoint(str(path)).findings[0].rule == "source-rank"


@pytest.mark.parametrize(
    ("tensors", "sibling"),
    [
        (
            {"x.weight": t("U8", 64, 32), "x.weight_scale": t("U8", 64, 4), "x.weight_scale_2": t("F32")},
            modelopt("NVFP4\x1b[2J\n"),
        ),
        ({"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)}, mlx("\x1b[2J\n")),
    ],
)
def test_what_a_config_says_is_printed_on_one_line(
    tensors: dict[str, Made], sibling: dict[str, Any], tmp_path: Path
) -> None:
    report = check_checkpoint(Case(tensors, config=sibling).write(tmp_path))
    assert report.findings or report.notes
    assert all(line.isprintable() for line in (*report.notes, *(one.message for one in report.findings)))
