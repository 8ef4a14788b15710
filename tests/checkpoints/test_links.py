"""Which weights are linked to which scales, in real checkpoints and in one of each convention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kiln_check
from kiln_check import KilnError
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.importer import Imported, import_checkpoint
from kiln_check.checkpoints.links import IN_UNREAD_FILES
from kiln_check.checkpoints.plan import plan
from tests.checkpoints.building import copy_of, edit
from tests.checkpoints.models import MODELS, Linked, write_gguf
from tests.places import CHECKPOINTS

REAL = {
    "ct-nvfp4": ("weight_packed", 2, 16, "e2m1", "f8e4m3"),
    "ct-nvfp4-sharded": ("weight_packed", 2, 16, "e2m1", "f8e4m3"),
    "ct-mxfp4": ("weight_packed", 1, 32, "e2m1", "e8m0"),
    "ct-mxfp8": ("weight", 1, 32, "f8e4m3", "e8m0"),
    "ct-int4": ("weight_packed", 1, 128, "u4", "bf16"),
    "ct-fp8-channel": ("weight", 1, None, "f8e4m3", "bf16"),
}

NOT_LINKED = {
    "ct-int4-asym": "zero points",
    "ct-fp8-tensor": "one scale for a matrix",
    "ct-fp8-block": "a scale for each block of rows and columns",
}

QUANTIZED_MODULES = 8


def lead_of(folder: Path) -> str:
    index = folder / "model.safetensors.index.json"
    return str(index if index.exists() else folder / "model.safetensors")


def imported(folder: Path, output: Path) -> Imported:
    return import_checkpoint(lead_of(folder), output)


@pytest.mark.parametrize("folder", REAL)
@pytest.mark.parametrize("with_config", [True, False])
def test_each_quantized_weight_of_a_real_checkpoint_is_linked(
    folder: str, with_config: bool, tmp_path: Path
) -> None:
    suffix, scheme, group_size, dtype, scale_dtype = REAL[folder]
    source = CHECKPOINTS / folder
    if not with_config:
        source = tmp_path / folder
        source.mkdir()
        for path in (CHECKPOINTS / folder).glob("model*"):
            (source / path.name).write_bytes(path.read_bytes())
    done = imported(source, tmp_path / "out.kiln")
    assert done.plan.unlinked == []
    with kiln_check.open(tmp_path / "out.kiln") as file:
        quantized = [tensor for tensor in file.values() if tensor.scheme]
        assert len(quantized) == QUANTIZED_MODULES
        for tensor in quantized:
            assert tensor.name is not None
            base = tensor.name.removesuffix(suffix)
            assert tensor.scale is not None
            assert (tensor.scheme, tensor.axis, tensor.dtype) == (scheme, 1, dtype)
            assert tensor.group_size == (tensor.shape[1] if group_size is None else group_size)
            assert (tensor.scale.name, tensor.scale.dtype) == (base + "weight_scale", scale_dtype)
            assert (tensor.outer is not None) == (scheme == 2)
            if tensor.outer is not None:
                assert tensor.outer.name == base + "weight_global_scale"


@pytest.mark.parametrize("folder", NOT_LINKED)
def test_what_kiln_can_not_link_stays_whole_with_the_reason(folder: str, tmp_path: Path) -> None:
    done = imported(CHECKPOINTS / folder, tmp_path / "out.kiln")
    assert done.plan.links == []
    assert [one.reason for one in done.plan.unlinked] == [NOT_LINKED[folder]] * QUANTIZED_MODULES
    with kiln_check.open(tmp_path / "out.kiln") as file:
        assert {tensor.scheme for tensor in file.values()} == {0}


def test_an_outer_scale_that_may_be_in_another_file_is_not_missed(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / "model.safetensors.index.json").unlink()
    (copy / "model-00002-of-00002.safetensors").unlink()
    edit(
        copy / "model-00001-of-00002.safetensors",
        lambda tensors: tensors.pop("model.layers.0.self_attn.q_proj.weight_global_scale"),
    )
    made = plan(read_checkpoint(copy))
    assert [found.rule for found in made.findings] == ["shard-missing"]
    assert "model.layers.0.self_attn.q_proj.weight_packed" in {one.weight for one in made.unlinked}
    assert {one.reason for one in made.unlinked} == {IN_UNREAD_FILES}


def test_the_unpacked_elements_are_those_that_the_packing_package_unpacks(tmp_path: Path) -> None:
    imported(CHECKPOINTS / "ct-nvfp4", tmp_path / "out.kiln")
    wanted = np.load(CHECKPOINTS / "ct-nvfp4" / "layers.0.q_proj.values.npy")
    with kiln_check.open(tmp_path / "out.kiln") as file:
        found = file["model.layers.0.self_attn.q_proj.weight_packed"].array(unpack=True)
        assert found.shape == wanted.shape == (64, 64)
        assert np.array_equal(found.astype(np.float32), wanted)


@pytest.mark.parametrize("name", MODELS)
def test_each_convention_is_recognised(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    done = imported(model.write(tmp_path / "model"), tmp_path / "out.kiln")
    assert done.findings == ()
    assert len(done.plan.links) == len(model.linked)
    assert {one.weight: one.reason for one in done.plan.unlinked} == model.reasons
    with kiln_check.open(tmp_path / "out.kiln") as file:
        found = {}
        for tensor in file.values():
            if tensor.scheme:
                assert tensor.scale is not None
                found[tensor.name] = Linked(
                    tensor.scheme,
                    -1 if tensor.axis is None else tensor.axis,
                    tensor.group_size,
                    tensor.dtype,
                    tensor.shape,
                    tensor.scale.dtype,
                )
        assert found == model.linked
        for source, made in model.tensors.items():
            assert bytes(file[source].bytes()) == made.payload()


def test_gguf_blocks_are_foreign_with_their_type_as_the_tag(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    import_checkpoint(str(tmp_path / "model.gguf"), tmp_path / "out.kiln")
    with kiln_check.open(tmp_path / "out.kiln") as file:
        found = {name: (tensor.dtype, tensor.shape, tensor.foreign) for name, tensor in file.items()}
    assert {name: value for name, value in found.items() if not name.startswith("kiln.source/")} == {
        "blk.0.ffn_gate_exps.weight": ("foreign", (5, 64), (39, 32, 17)),
        "blk.0.attn_q.weight": ("foreign", (3, 512), (12, 256, 144)),
        "blk.0.attn_k.weight": ("foreign", (3, 64), (8, 32, 34)),
        "output_norm.weight": ("f32", (3, 5), None),
    }


@pytest.mark.parametrize("with_index", [True, False])
def test_scales_in_a_shard_that_is_gone_are_not_missed_and_stop_an_import(
    with_index: bool, tmp_path: Path
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    if not with_index:
        (copy / "model.safetensors.index.json").unlink()
    (copy / "model-00002-of-00002.safetensors").unlink()
    shard = copy / "model-00001-of-00002.safetensors"
    with pytest.raises(KilnError, match="shard-missing"):
        import_checkpoint(shard, tmp_path / "out.kiln")
    made = plan(read_checkpoint(shard))
    assert [found.rule for found in made.findings] == ["shard-missing"]
    assert {one.reason for one in made.unlinked} == {IN_UNREAD_FILES}
    assert sorted(one.weight for one in made.unlinked) == [
        "model.layers.0.mlp.down_proj.weight_packed",
        "model.layers.1.mlp.down_proj.weight_packed",
    ]
    assert len(made.links) == QUANTIZED_MODULES - 2
