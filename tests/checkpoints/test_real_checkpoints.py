"""Tensors that nobody here made, through Kiln and back.

They are read with the safetensors package. `tests/data/README.md` says where they
come from.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from safetensors import safe_open

import kiln_check
from kiln_check import NewTensor, Span
from tests.places import CHECKPOINTS as DATA
from tests.wheels import WHEELS, published_file

DTYPES = {
    "BF16": "bf16",
    "F32": "f32",
    "F16": "f16",
    "I8": "i8",
    "I64": "i64",
    "U8": "u8",
    "F8_E4M3": "f8e4m3",
}


class Stored(NamedTuple):
    """A tensor as a safetensors file has it."""

    dtype: str
    shape: tuple[int, ...]
    span: Span


def stored_tensors(path: Path) -> dict[str, Stored]:
    """Every tensor of a safetensors file: the package says what it is, the header where."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    places = json.loads(raw[8:start])
    found = {}
    with safe_open(path, framework="numpy") as file:
        for name in file.keys():  # noqa: SIM118 - no mapping
            piece = file.get_slice(name)
            begin, end = places[name]["data_offsets"]
            span = Span(str(path), start + begin, end - begin)
            found[name] = Stored(DTYPES[piece.get_dtype()], tuple(piece.get_shape()), span)
    return found


def linked(stored: dict[str, Stored], group_size: int) -> dict[str, NewTensor]:
    """As Kiln has them: packed nibbles are e2m1, and name their scales along the last axis."""
    tensors = {}
    for name, tensor in stored.items():
        dtype, shape, span = tensor
        links: dict[str, Any] = {}
        if name.endswith(".weight_packed"):
            base = name.removesuffix("packed")
            dtype, shape = "e2m1", (*shape[:-1], 2 * shape[-1])
            links = {"scale": base + "scale", "axis": len(shape) - 1, "group_size": group_size}
            if base + "global_scale" in stored:
                links["outer"] = base + "global_scale"
        elif name.endswith(".weight_scale") and dtype == "u8":
            dtype = "e8m0"
        tensors[name] = NewTensor(dtype, shape, span, **links)
    return tensors


def bytes_of(span: Span) -> bytes:
    raw = Path(span.path).read_bytes()
    return raw[span.offset : span.offset + span.length]


CHECKPOINTS = {"ct-nvfp4": (16, 2), "ct-mxfp4": (32, 1)}


@pytest.mark.parametrize("folder", CHECKPOINTS)
def test_a_quantized_checkpoint_goes_in_linked_and_comes_back_bit_for_bit(
    folder: str, tmp_path: Path
) -> None:
    group_size, scheme = CHECKPOINTS[folder]
    stored = stored_tensors(DATA / folder / "model.safetensors")
    path = tmp_path / "model.kiln"
    kiln_check.write(path, linked(stored, group_size))
    report = kiln_check.check(path)
    assert (report.verdict, report.num_tensors) == ("OK", len(stored))
    with kiln_check.open(path) as file:
        assert all(bytes(file[name].bytes()) == bytes_of(tensor.span) for name, tensor in stored.items())
        quantized = [tensor for tensor in file.values() if tensor.scheme]
        assert len(quantized) == sum(name.endswith("packed") for name in stored) > 0
        for tensor in quantized:
            assert tensor.scheme == scheme
            assert tensor.scale is not None
            assert math.prod(tensor.scale.shape) == math.prod(tensor.shape) // group_size


@pytest.mark.parametrize("folder", CHECKPOINTS)
def test_a_scale_that_is_cut_short_is_told_with_its_numbers(folder: str, tmp_path: Path) -> None:
    group_size, _ = CHECKPOINTS[folder]
    tensors = linked(stored_tensors(DATA / folder / "model.safetensors"), group_size)
    name = "model.layers.0.self_attn.q_proj.weight_packed"
    weight, scale = tensors[name], tensors[name.replace("packed", "scale")]
    rows, columns = scale.shape
    assert isinstance(scale.data, Span)
    short = scale._replace(shape=(rows - 1, columns), data=scale.data._replace(length=(rows - 1) * columns))
    tensors[name.replace("packed", "scale")] = short
    with pytest.raises(kiln_check.KilnError, match="scale-count") as caught:
        kiln_check.write(tmp_path / "model.kiln", tensors)
    report = caught.value.report
    assert report is not None
    (finding,) = report.findings
    expected, found = rows * columns, (rows - 1) * columns
    assert (report.verdict, finding.rule, finding.name) == ("TYPE", "scale-count", name)
    assert f"needs {expected} scales" in finding.message
    assert finding.message.endswith(f"has {found}")
    assert finding.working == f"ceil({weight.shape[1]} / {group_size}) · {weight.shape[0]} = {expected}"


@pytest.mark.parametrize("requirement", WHEELS)
def test_the_tensors_inside_a_published_wheel_come_back_bit_for_bit(
    requirement: str, wheels: Path, tmp_path: Path
) -> None:
    source = tmp_path / "model.safetensors"
    source.write_bytes(published_file(wheels, requirement))
    stored = stored_tensors(source)
    path = tmp_path / "model.kiln"
    kiln_check.write(path, {name: NewTensor(*tensor) for name, tensor in stored.items()})
    assert kiln_check.check(path).findings == ()
    with kiln_check.open(path) as file, safe_open(source, framework="numpy") as original:
        assert list(file) == list(stored)
        for name, tensor in file.items():
            assert bytes(tensor.bytes()) == bytes_of(stored[name].span)
            wanted = original.get_tensor(name)
            assert tensor.array().dtype == wanted.dtype
            assert tensor.array().tobytes() == wanted.tobytes()
