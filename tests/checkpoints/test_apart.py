"""What is in another file of the model than the one that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.links import IN_UNREAD_FILES
from kiln_check.checkpoints.plan import plan
from kiln_check.cli import main
from tests.checkpoints.building import Made
from tests.checkpoints.cases import (
    ASYM,
    ASYM8,
    BLOCK_FP8,
    GROUP_ORDER,
    INT4,
    INT8,
    Case,
    mlx,
    t,
    without,
    words,
)

SHARD = "model-00001-of-00002.safetensors"
OTHER = "model-00002-of-00002.safetensors"

PIECES = {
    "zero points": (words(), "x.weight_zero_point", {}),
    "zero points of a config": (words(), "x.weight_zero_point", ASYM),
    "an activation order": (words(), "x.weight_g_idx", {}),
    "an activation order of a config": (words(), "x.weight_g_idx", GROUP_ORDER),
    "the shape of packed words": (without(words(), "x.weight_shape"), "x.weight_shape", INT4),
    "zero points of whole integers": (
        {"x.weight": t("I8", 6, 64), "x.weight_scale": t("F32", 6, 1)},
        "x.weight_zero_point",
        ASYM8,
    ),
    "biases": ({"x.weight": t("U32", 64, 16), "x.scales": t("BF16", 64, 2)}, "x.biases", {}),
    "biases of a config": (
        {"x.weight": t("U32", 64, 16), "x.scales": t("BF16", 64, 4)},
        "x.biases",
        mlx("affine"),
    ),
}


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("name", PIECES)
def test_what_is_in_another_shard_keeps_a_weight_from_being_linked(
    name: str, with_index: bool, tmp_path: Path
) -> None:
    tensors, piece, sibling = PIECES[name]
    path = Case(tensors, config=sibling).write(tmp_path, SHARD)
    if with_index:
        places = {**dict.fromkeys(tensors, SHARD), piece: OTHER}
        index = {"metadata": {}, "weight_map": places}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    made = plan(read_checkpoint(path))
    assert made.links == []
    assert [(one.reason, one.finding) for one in made.unlinked] == [(IN_UNREAD_FILES, None)]


def test_what_an_index_names_is_believed_more_than_a_config(tmp_path: Path) -> None:
    path = Case(words(), config=INT4).write(tmp_path, SHARD)
    places = {**dict.fromkeys(words(), SHARD), "x.weight_zero_point": OTHER}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    made = plan(read_checkpoint(path))
    assert made.links == []
    assert [one.reason for one in made.unlinked] == [IN_UNREAD_FILES]


@pytest.mark.parametrize(
    ("tensors", "sibling"),
    [
        (words(), INT4),
        ({"x.weight": t("U32", 64, 16), "x.scales": t("U8", 64, 4)}, mlx("mxfp4")),
        ({"x.weight": t("I8", 6, 64), "x.weight_scale": t("F32", 6, 1)}, INT8),
    ],
)
def test_a_shard_alone_is_linked_where_nothing_more_can_be_in_another(
    tensors: dict[str, Made], sibling: dict[str, Any], tmp_path: Path
) -> None:
    made = plan(read_checkpoint(Case(tensors, config=sibling).write(tmp_path, SHARD)))
    assert len(made.links) == 1


def test_the_numbers_of_shards_may_differ_in_width(tmp_path: Path) -> None:
    halves = ({"x.weight": t("F8_E4M3", 128, 128)}, {"x.weight_scale_inv": t("F32", 1, 1)})
    for number, tensors in enumerate(halves, 1):
        Case(tensors, config=BLOCK_FP8).write(tmp_path, f"model-0000{number}-of-000002.safetensors")
    assert main(["check", str(tmp_path)]) == 0
    (tmp_path / "model-00002-of-000002.safetensors").unlink()
    assert main(["check", str(tmp_path)]) == 1
