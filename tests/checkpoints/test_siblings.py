"""Modules that differ in a number alone, one of which deviates."""

from __future__ import annotations

from pathlib import Path

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.links import UNSAID
from tests.checkpoints.building import Made
from tests.checkpoints.cases import Case, hold_to, t

RULE = "unlike-siblings"


def name_of(layer: int) -> str:
    return f"model.layers.{layer}.q_proj.weight"


def linear(layer: int, **changes: Made) -> dict[str, Made]:
    """A module of 8-bit floats by row."""
    tensors = {"": t("F8_E4M3", 64, 64), "_scale": t("BF16", 64, 1), **changes}
    return {f"{name_of(layer)}{suffix}": made for suffix, made in tensors.items()}


LINKED = ("f8e4m3", "bf16")
THREE = {**linear(0), **linear(1), **linear(2)}
OF_THREE = {name_of(layer): LINKED for layer in range(3)}

CASES = {
    "layers that are alike": Case(THREE, OF_THREE),
    "a scale that the same module of other layers has": Case(
        {**THREE, name_of(11): t("F8_E4M3", 64, 64)}, OF_THREE, findings=((RULE, name_of(11)),)
    ),
    "a scale that one other layer has": Case(
        {**linear(0), name_of(11): t("F8_E4M3", 64, 64)}, {name_of(0): LINKED}, {name_of(11): UNSAID}
    ),
    "a layer that is not quantized": Case({**THREE, name_of(11): t("BF16", 64, 64)}, OF_THREE),
    "a scale of another dtype than other layers have": Case(
        {**THREE, **linear(3, _scale=t("F16", 64, 1))},
        {**OF_THREE, name_of(3): ("f8e4m3", "f16")},
        findings=((RULE, f"{name_of(3)}_scale"),),
    ),
    "as many layers of one dtype as of another": Case(
        {**linear(0), **linear(1), **linear(2, _scale=t("F16", 64, 1)), **linear(3, _scale=t("F16", 64, 1))},
        {
            name_of(0): LINKED,
            name_of(1): LINKED,
            name_of(2): ("f8e4m3", "f16"),
            name_of(3): ("f8e4m3", "f16"),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    hold_to(CASES[name], tmp_path)


def test_a_message_names_what_is_missing_and_who_has_it(tmp_path: Path) -> None:
    path = CASES["a scale that the same module of other layers has"].write(tmp_path)
    (found,) = check_checkpoint(path).findings
    assert found.message == (
        f'"{name_of(11)}_scale" is missing; 3 modules that differ in a number alone, '
        f'see "{name_of(0)}_scale", have it'
    )
