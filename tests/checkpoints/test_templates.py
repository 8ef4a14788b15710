"""Modules held to templates: GPTQ, AWQ, bitsandbytes, and siblings that deviate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.report import Report
from tests.checkpoints.building import Made, safetensors_bytes

Model = dict[str, Made]


def gptq() -> tuple[Model, dict[str, Any]]:
    made: Model = {}
    for layer in range(3):
        made[f"l.{layer}.q.qweight"] = Made("I32", (8, 32))
        made[f"l.{layer}.q.qzeros"] = Made("I32", (2, 4))
        made[f"l.{layer}.q.scales"] = Made("F16", (2, 32))
        made[f"l.{layer}.q.g_idx"] = Made("I32", (64,))
    return made, {"quant_method": "gptq", "bits": 4, "group_size": 32}


def awq() -> tuple[Model, dict[str, Any]]:
    made: Model = {}
    for layer in range(3):
        made[f"l.{layer}.q.qweight"] = Made("I32", (64, 12))
        made[f"l.{layer}.q.qzeros"] = Made("I32", (2, 12))
        made[f"l.{layer}.q.scales"] = Made("F16", (2, 96))
    return made, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}


def nf4() -> tuple[Model, dict[str, Any]]:
    made: Model = {}
    for layer in range(3):
        made[f"l.{layer}.q.weight"] = Made("U8", (2048, 1))
        made[f"l.{layer}.q.weight.absmax"] = Made("F32", (64,))
        made[f"l.{layer}.q.weight.quant_map"] = Made("F32", (16,))
        state = {"quant_type": "nf4", "blocksize": 64, "shape": [64, 64]}
        raw = json.dumps(state).encode()
        made[f"l.{layer}.q.weight.quant_state.bitsandbytes__nf4"] = Made("U8", (len(raw),), raw)
    return made, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


MODELS: dict[str, Callable[[], tuple[Model, dict[str, Any]]]] = {"gptq": gptq, "awq": awq, "nf4": nf4}


def report_on(folder: Path, made: Model, quantization: dict[str, Any] | None) -> Report:
    (folder / "model.safetensors").write_bytes(safetensors_bytes(made))
    if quantization is not None:
        (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}))
    return check_checkpoint(str(folder / "model.safetensors"))


@pytest.mark.parametrize("with_config", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_sound_model_is_ok(model: str, with_config: bool, tmp_path: Path) -> None:
    made, quantization = MODELS[model]()
    assert report_on(tmp_path, made, quantization if with_config else None).findings == ()


def broken(model: str) -> list[tuple[str, Model]]:
    """The model with one tensor of its middle layer lost, or a row or column longer or shorter, or of
    another dtype, one at a time.
    """
    made, _ = MODELS[model]()
    cases: list[tuple[str, Model]] = []
    for name, tensor in made.items():
        if not name.startswith("l.1.") or "quant_state" in name:
            continue
        cases.append((name, {one: value for one, value in made.items() if one != name}))
        other = "F64" if tensor.dtype != "F64" else "F32"
        shapes = [
            (*tensor.shape[:axis], length + step, *tensor.shape[axis + 1 :])
            for axis, length in enumerate(tensor.shape)
            for step in (-1, 1)
            if length + step > 0
        ]
        cases += [(name, {**made, name: Made(tensor.dtype, shape)}) for shape in shapes]
        cases.append((name, {**made, name: Made(other, tensor.shape)}))
    return cases


@pytest.mark.parametrize("model", MODELS)
def test_each_change_of_a_tensor_is_noticed(model: str, tmp_path: Path) -> None:
    _, quantization = MODELS[model]()
    for name, made in broken(model):
        report = report_on(tmp_path, made, quantization)
        assert report.verdict == "TYPE", (name, made.get(name))
        assert any(found.name is not None and found.name.startswith("l.1.q") for found in report.findings)


def test_the_config_s_group_size_is_held_to(tmp_path: Path) -> None:
    made, quantization = gptq()
    (found, *_) = report_on(tmp_path, made, {**quantization, "group_size": 16}).findings
    assert (found.rule, found.level) == ("scale-shape", "error")
    assert "[4, 32]" in found.message or "[4, 4]" in found.message


def test_a_module_that_the_config_leaves_out_may_be_plain(tmp_path: Path) -> None:
    made, quantization = awq()
    made["lm_head.weight"] = Made("BF16", (96, 64))
    left_out = {**quantization, "modules_to_not_convert": ["lm_head"]}
    assert report_on(tmp_path, made, left_out).findings == ()


def test_an_unknown_version_is_not_accused(tmp_path: Path) -> None:
    made, quantization = awq()
    made["l.0.q.scales"] = Made("F16", (3, 5))
    report = report_on(tmp_path, made, {**quantization, "version": "invented"})
    assert report.findings == ()
    assert any("INVENTED" in note for note in report.notes)
