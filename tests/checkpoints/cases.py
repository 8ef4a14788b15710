"""Small checkpoints made by hand, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.checkpoints.links import FAULTY
from kiln_check.checkpoints.plan import plan
from tests.checkpoints.building import Made, safetensors_bytes
from tests.checkpoints.models import compressed, config, sizes

INT4 = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=True)
ASYM = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=False)
GROUP_ORDER = compressed(
    "pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, actorder="group"
)
INT8 = compressed("int-quantized", num_bits=8, type="int", strategy="channel")
ASYM8 = compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=False)
FP8 = compressed("float-quantized", num_bits=8, type="float", strategy="channel")
NVFP4 = compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16)
MXFP4 = compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32)
BLOCK_FP8 = config(quant_method="fp8", weight_block_size=[128, 128])


def mlx(mode: str | None, bits: int = 4, group_size: int = 32, **modules: object) -> dict[str, Any]:
    """MLX's config of a model, and of some of its modules."""
    declared = {} if mode is None else {"mode": mode}
    return {"config.json": {"quantization": {"group_size": group_size, "bits": bits, **declared, **modules}}}


def mixed(**layers: dict[str, Any]) -> dict[str, Any]:
    """ModelOpt's config of layers that have algorithms of their own."""
    quantization = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    return {"hf_quant_config.json": {"quantization": quantization}}


class Case(NamedTuple):
    """A checkpoint, and what comes of it.

    Attributes:
        tensors: dtype and shape, or what was made, by name.
        links: dtypes of weight and scale, by the weight's name.
        reasons: of weights that are not linked and of which no finding tells, by name.
        findings: rule and name of the tensor, of each finding.
        config: files beside it.
        metadata: of the safetensors file.

    """

    tensors: Mapping[str, Made]
    links: Mapping[str, tuple[str, str]] = {}
    reasons: Mapping[str, str] = {}
    findings: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, Any] = {}
    metadata: Mapping[str, str] = {}

    def write(self, folder: Path, file: str = "model.safetensors") -> str:
        """Write the checkpoint; gives the path of its safetensors file."""
        for name, value in self.config.items():
            (folder / name).write_text(json.dumps(value))
        (folder / file).write_bytes(safetensors_bytes(dict(self.tensors), dict(self.metadata) or None))
        return str(folder / file)


class Outcome(NamedTuple):
    """What comes of a checkpoint; see `Case`.

    Attributes:
        links: by the weight's name.
        reasons: by the weight's name.
        findings: rule and name, sorted.

    """

    links: dict[str, tuple[str, str]]
    reasons: dict[str, str]
    findings: list[tuple[str, str | None]]


def outcome(path: str) -> Outcome:
    """What a check and the plan of an import make of a checkpoint."""
    made = plan(read_checkpoint(path))
    return Outcome(
        {link.weight: (link.dtype, link.scale_dtype) for link in made.links},
        {one.weight: one.reason for one in made.unlinked if one.reason != FAULTY},
        sorted((one.rule, one.name) for one in check_checkpoint(path).findings),
    )


def hold_to(case: Case, folder: Path) -> None:
    """Compare what a case expects with what comes of it, in a check and in an import."""
    path = case.write(folder)
    found = outcome(path)
    expected = Outcome(dict(case.links), dict(case.reasons), sorted(case.findings))
    messages = [one.message for one in check_checkpoint(path).findings]
    assert found == expected, f"{found} instead of {expected}: {messages}"
    assert all(message.isprintable() for message in messages)
    done = import_checkpoint(path, folder / "out.kiln", allow_unlinked=True)
    assert len(done.plan.links) == len(case.links)


def t(dtype: str, *shape: int) -> Made:
    """A tensor of a dtype and shape."""
    return Made(dtype, shape)


def text(content: str) -> Made:
    """A tensor of the bytes of a text."""
    return Made("U8", (len(content.encode()),), content.encode())


def words(**changes: Made) -> dict[str, Made]:
    """Four rows of 128 four-bit integers in groups of 32, as compressed-tensors packs them."""
    tensors = {
        "x.weight_packed": t("I32", 4, 16),
        "x.weight_scale": t("BF16", 4, 4),
        "x.weight_shape": sizes(4, 128),
    }
    return tensors | {name.replace("__", "."): made for name, made in changes.items()}


def without(tensors: Mapping[str, Made], name: str) -> dict[str, Made]:
    """The tensors but one."""
    return {other: made for other, made in tensors.items() if other != name}


def layers(module: Mapping[str, Made]) -> dict[str, Made]:
    """Three layers of a module whose names begin with "x"."""
    return {
        f"l.{layer}.q{name.removeprefix('x')}": made for layer in range(3) for name, made in module.items()
    }


def changes_of(tensors: Mapping[str, Made], names: Iterable[str]) -> Iterator[tuple[str, dict[str, Made]]]:
    """The tensors with one of some lost, or longer or shorter by one, or of another dtype, one at a time."""
    for name in names:
        dtype, shape, _ = tensors[name]
        yield name, without(tensors, name)
        for axis, length in enumerate(shape):
            for other in {length - 1, length + 1} - {0}:
                yield name, {**tensors, name: Made(dtype, (*shape[:axis], other, *shape[axis + 1 :]))}
        yield name, {**tensors, name: Made("F64", shape)}


def hold_to_each_change(case: Case, folder: Path, names: Iterable[str]) -> None:
    """Change some tensors of a sound checkpoint, one at a time: a finding names the module each time."""
    for name, tensors in changes_of(case.tensors, names):
        report = check_checkpoint(case._replace(tensors=tensors).write(folder))
        assert report.verdict == "TYPE", (name, tensors.get(name))
        module = name[: name.index(".q") + 2]
        assert any(found.name is not None and found.name.startswith(module) for found in report.findings)
