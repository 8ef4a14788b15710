"""What holds of every module, whatever its tensors and its config are."""

from __future__ import annotations

from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kiln_check
from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.conventions.registry import tools
from kiln_check.checkpoints.formats.safetensors import TYPES
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.checkpoints.plan import plan
from tests.checkpoints.building import Made
from tests.checkpoints.cases import (
    ASYM,
    BLOCK_FP8,
    FP8,
    GROUP_ORDER,
    INT4,
    INT8,
    MXFP4,
    NVFP4,
    Case,
    mixed,
    mlx,
)
from tests.checkpoints.models import config, modelopt, sizes

TEMPLATES = [template for tool in tools() for template in tool.templates if len(template.slots) > 1]
SUFFIXES = sorted({slot.suffix for template in TEMPLATES for slot in template.slots})
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    INT4,
    ASYM,
    GROUP_ORDER,
    INT8,
    FP8,
    NVFP4,
    MXFP4,
    BLOCK_FP8,
    mixed(x={"quant_algo": "NVFP4", "group_size": 16}),
    modelopt("FP8"),
    config(quant_method="gptq", bits=4, group_size=32),
    config(quant_method="mxfp4"),
    mlx("nvfp4"),
    mlx(None),
)
DTYPES = ["U8", "I8", "U32", "I32", "I64", "F4", "F8_E4M3", "F8_E8M0", "BF16", "F32"]


@st.composite
def any_tensors(draw: st.DrawFn) -> dict[str, Made]:
    """A weight and a scale by some template, whose shapes nearly fit, and what may stand beside them."""
    template = draw(st.sampled_from(TEMPLATES))
    weight, scale = template.slots[:2]
    lead = draw(st.sampled_from([(), (2,), (0,), (1,)]))
    rows, columns = draw(st.sampled_from([(64, 16), (64, 32), (6, 16), (2, 0), (128, 128)]))
    groups = (columns // share for share in draw(st.permutations([1, 2, 4, 8, 16, 32, 128]))[:1])
    tensors = {
        "x" + weight.suffix: Made(draw(st.sampled_from(DTYPES)), (*lead, rows, columns)),
        "x" + scale.suffix: Made(
            draw(st.sampled_from(DTYPES)), (*lead, rows - draw(st.integers(0, 1)), *groups)
        ),
    }
    for suffix in draw(st.lists(st.sampled_from(SUFFIXES), max_size=3)):
        shape = draw(st.sampled_from([(), (1,), (2,), (*lead, rows, 1), (*lead, rows, columns)]))
        made = Made(draw(st.sampled_from(DTYPES)), shape)
        tensors.setdefault("x" + suffix, draw(st.sampled_from([made, sizes(rows, columns * 8)])))
    return {name: made for name, made in tensors.items() if made.dtype != "F4" or prod(made.shape) % 2 == 0}


@given(tensors=any_tensors(), sibling=st.sampled_from(CONFIGS))
@settings(max_examples=300, deadline=None)
def test_no_link_changes_a_scale_that_has_a_dtype_and_every_checkpoint_comes_in_apart(
    tensors: dict[str, Made], sibling: dict[str, Any]
) -> None:
    with TemporaryDirectory() as folder:
        path = Case(tensors, config=sibling).write(Path(folder))
        report = check_checkpoint(path)
        made = plan(read_checkpoint(path))
        claimed = [name for link in made.links for name in (link.weight, link.scale)]
        assert len(set(claimed)) == len(claimed)
        for link in made.links:
            assert tensors[link.scale].dtype == "U8" or (
                TYPES[tensors[link.scale].dtype].dtype == link.scale_dtype
            )
        done = import_checkpoint(path, f"{folder}/out.kiln", allow_unlinked=True)
        assert {one.rule for one in done.findings} <= {one.rule for one in report.findings}
        with kiln_check.open(f"{folder}/out.kiln") as file:
            for name, tensor in tensors.items():
                assert bytes(file[name].bytes()) == tensor.payload()
