"""The tool that breaks checkpoints breaks them in every way, each only in the one that it says."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.places import ROOT, ZOO
from tools.breaking import breaks as kinds
from tools.breaking.breaks import KINDS, Break
from tools.breaking.folder import BITS, Checkpoint, Tensor, read, write
from tools.breaking.ggufs import MAGIC_AND_VERSION_3, described
from tools.breaking.judging import Outcome, Said, breaks_of, errors_of, names_one, outcome_of
from tools.breaking.modules import parent_of, quantized_modules, representatives
from tools.breaking.tables import rate, seeable_rate
from tools.breaking.tensors import OTHER_DTYPES, alterations
from tools.zoo import unpack

SOME = ("llmc-kv-nvfp4", "tf-fp8-dsv3", "modelopt-gptoss-nvfp4mlp", "bnb-nf4", "gguf-q4_0")
"""Between them they have every kind of break."""


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each checkpoint of the zoo."""
    to = tmp_path_factory.mktemp("zoo")
    return {archive.stem: unpack(archive, to) for archive in sorted(ZOO.glob("*.zip"))}


def written(checkpoint: Checkpoint, folder: Path) -> tuple[tuple[str, bytes], ...]:
    """The files of a checkpoint, written into a new folder."""
    folder.mkdir()
    write(checkpoint, folder)
    return tuple((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))


def tensor(dtype: str, *shape: int) -> Tensor:
    return Tensor(dtype, shape, "model.safetensors")


def holding(**tensors: Tensor) -> Checkpoint:
    """A checkpoint of these tensors, all in the module "m"."""
    named = {f"m.{suffix}": one for suffix, one in tensors.items()}
    return Checkpoint("made", {"model.safetensors": None}, named, {}, {})


# --- the folder


def test_a_checkpoint_that_is_written_unchanged_is_read_as_it_was(
    zoo: dict[str, Path], tmp_path: Path
) -> None:
    for name, folder in zoo.items():
        checkpoint = read(folder)
        written(checkpoint, tmp_path / name)
        again = read(tmp_path / name)
        documents = {file: one for file, one in checkpoint.documents.items() if "index" not in file}
        assert again._replace(documents=documents) == checkpoint._replace(documents=documents)
        assert again.documents.keys() == checkpoint.documents.keys()
        assert checkpoint.tensors or checkpoint.ggufs


def test_an_index_loses_the_tensors_that_are_removed(zoo: dict[str, Path], tmp_path: Path) -> None:
    checkpoint = read(zoo["llmc-nvfp4-sharded"])
    name = next(iter(checkpoint.tensors))
    fewer = {other: one for other, one in checkpoint.tensors.items() if other != name}
    written(checkpoint._replace(tensors=fewer), tmp_path / "fewer")
    index = read(tmp_path / "fewer").documents["model.safetensors.index.json"]
    assert index["weight_map"].keys() == fewer.keys()
    assert index["metadata"]["total_size"] == sum(one.length for one in fewer.values())


# --- the breaks


@pytest.mark.parametrize("name", SOME)
def test_every_break_is_another_checkpoint(name: str, zoo: dict[str, Path], tmp_path: Path) -> None:
    sound = read(zoo[name])
    seen = {"sound": written(sound, tmp_path / "sound")}
    for number, broken in enumerate(breaks_of(sound)):
        assert broken.what not in seen
        seen[broken.what] = written(broken.broken, tmp_path / str(number))
    assert len(set(seen.values())) == len(seen) > 8


@pytest.mark.parametrize("name", SOME)
def test_a_break_changes_only_what_it_says(name: str, zoo: dict[str, Path]) -> None:
    sound = read(zoo[name])
    for broken in breaks_of(sound):
        after = broken.broken.tensors
        changed = {one for one in sound.tensors if after.get(one) != sound.tensors[one]}
        assert after.keys() <= sound.tensors.keys()
        assert changed <= broken.names
        assert len(changed) == len(broken.changes)
        if not broken.kind.startswith("config"):
            assert broken.broken.documents == sound.documents
        else:
            assert broken.broken.documents != sound.documents
        assert broken.kind == kinds.ALL_REMOVED or all(one in broken.what for one in changed)


def test_every_kind_is_applied(zoo: dict[str, Path]) -> None:
    assert {broken.kind for name in SOME for broken in breaks_of(read(zoo[name]))} == set(KINDS)


shapes = st.lists(st.integers(1, 5), max_size=4).map(tuple)


@given(st.builds(Tensor, st.sampled_from(sorted(OTHER_DTYPES)), shapes, st.just("x")))
def test_an_alteration_is_what_its_kind_says(before: Tensor) -> None:
    rows = [kind for kind, _ in alterations(before) if kind in (kinds.ROW_MORE, kinds.COLUMN_MORE)]
    assert len(rows) == len(before.shape)
    for kind, after in alterations(before):
        if kind == kinds.DTYPE:
            assert after.shape == before.shape
            assert after.dtype in BITS.keys() - {before.dtype}
        elif kind in (kinds.TRANSPOSED, kinds.FLATTENED):
            assert after.num_elements == before.num_elements
        elif kind == kinds.MADE_TWO:
            assert (before.num_elements, after.num_elements) == (1, 2)
        else:
            grown = sum(after.shape) - sum(before.shape)
            assert grown == (1 if kind.endswith("more") else -1)
            assert len(after.shape) == len(before.shape)
            assert math.prod(after.shape) > 0


def test_a_tensor_is_exchanged_with_one_of_the_same_count_and_one_of_another(zoo: dict[str, Path]) -> None:
    exchanged = [
        broken.changes[0]
        for broken in breaks_of(read(zoo["llmc-kv-nvfp4"]))
        if broken.kind == kinds.EXCHANGED and broken.changes[0].suffix == "weight_scale"
    ]
    counts = [
        change.after is not None and change.after.num_elements == change.before.num_elements
        for change in exchanged
    ]
    assert counts == [True, False]


def test_a_value_of_a_config_is_changed_in_every_copy(zoo: dict[str, Path]) -> None:
    sound = read(zoo["modelopt-nvfp4"])
    what = "config: group_size 16 to 32"
    (documents,) = (one.broken.documents for one in breaks_of(sound) if one.what == what)
    for file in ("config.json", "hf_quant_config.json"):
        before, after = (json.dumps(one[file], sort_keys=True) for one in (sound.documents, documents))
        inputs, _, weights = after.partition('"weights"')
        assert '"group_size": 16' in before
        assert '"group_size": 16' not in weights
        assert ('"input_activations"' in inputs) == ('"group_size": 16' in inputs)


def test_the_tensors_of_a_gguf_file_are_those_that_the_package_reads(zoo: dict[str, Path]) -> None:
    files = [path for folder in zoo.values() for path in sorted(folder.glob("*.gguf"))]
    little = [path for path in files if path.read_bytes().startswith(MAGIC_AND_VERSION_3)]
    assert len(little) == len(files) - 1
    for path in little:
        alignment, tensors = described(path.read_bytes())
        reader = gguf.GGUFReader(path)
        assert alignment == reader.alignment
        assert [(one.name, list(one.dimensions), one.type) for one in tensors] == [
            (one.name, one.shape.tolist(), one.tensor_type.value) for one in reader.tensors
        ]
        assert [one.length() for one in tensors] == [one.n_bytes for one in reader.tensors]


# --- the modules


def test_what_lies_below_a_weight_belongs_to_its_module() -> None:
    assert parent_of("a.b.weight") == "a.b"
    assert parent_of("a.b.weight.quant_state.bitsandbytes__nf4") == "a.b"
    assert parent_of("a_blocks") == ""


def test_modules_of_floats_alone_are_not_quantized_but_for_scales() -> None:
    floats = {"weight": tensor("BF16", 4, 4), "bias": tensor("F32", 4)}
    assert quantized_modules(holding(**floats)) == []
    assert quantized_modules(holding(scale=tensor("F32", 4))) == []
    assert quantized_modules(holding(k_scale=tensor("F32", 1))) != []
    (module,) = quantized_modules(holding(weight=tensor("F8_E4M3", 4, 4), bias=tensor("F32", 4)))
    assert list(module.tensors) == ["weight"]


def test_one_module_of_each_sort_is_broken(zoo: dict[str, Path]) -> None:
    modules = quantized_modules(read(zoo["llmc-kv-nvfp4"]))
    assert [module.name.split(".")[-1] for module in representatives(modules)] == ["down_proj", "self_attn"]
    assert len(modules) == 15


# --- the judging


def test_an_error_names_a_tensor_whole() -> None:
    names = frozenset({"m.0.weight"})
    assert names_one(Said("m.0.weight", "bad"), names)
    assert names_one(Said(None, 'there is no "m.0.weight" here'), names)
    assert not names_one(Said("m.1.weight", 'there is no "m.0.weight_scale" or "x.m.0.weight"'), names)


def test_a_missed_break_and_one_that_is_noticed(zoo: dict[str, Path]) -> None:
    sound = read(zoo["llmc-kv-nvfp4"])
    assert errors_of(sound) == []
    name = "model.layers.0.mlp.down_proj.weight_scale"
    without = {other: one for other, one in sound.tensors.items() if other != name}
    broken = Break(kinds.REMOVED, name, sound._replace(tensors=without), frozenset({name}))
    outcome = outcome_of(broken)
    assert outcome.noticed
    assert outcome.error is not None
    assert not outcome_of(broken._replace(names=frozenset({"another"}))).noticed
    assert not outcome_of(broken._replace(broken=sound)).noticed
    assert not outcome_of(broken._replace(broken=sound, names=frozenset())).noticed


def test_the_rates_count_what_headers_cannot_show_or_leave_it_out() -> None:
    noticed = Outcome("a", kinds.DTYPE, "x", True, None, "an error")
    missed = noticed._replace(noticed=False, error=None)
    outcomes = [noticed, missed, missed._replace(reason="a reason"), missed._replace(reason="a reason")]
    assert rate(outcomes) == 25
    assert seeable_rate(outcomes) == 50
    assert rate([]) == 0


# --- the command


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "break_checkpoints.py", *arguments]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


ONE = ("--only", "bnb-fp4", "--jobs", "1")


def test_the_exit_status_tells_whether_enough_is_noticed() -> None:
    done = run(*ONE, "--at-least", "1", "--list-missed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" %.")
    assert "| bitsandbytes |" in done.stdout
    done = run(*ONE, "--at-least", "100.1")
    assert done.returncode == 1
    assert done.stderr == "fewer than 100.1 % of what headers can show is noticed\n"


def test_what_headers_cannot_show_is_no_miss() -> None:
    done = run("--only", "mistral-consolidated", "--jobs", "1", "--at-least", "100")
    found = re.search(r"noticed, ([\d.]+) %; of the \d+ that headers can show, ([\d.]+) %", done.stdout)
    assert found is not None
    assert float(found[1]) < 99
    assert (float(found[2]), done.returncode) == (100, 0)


def test_the_page_is_written_and_found_out_of_date(tmp_path: Path) -> None:
    page = tmp_path / "reference" / "breaking.md"
    assert run(*ONE, "--check", page).returncode == 1
    assert run(*ONE, "--markdown", page).returncode == 0
    assert run(*ONE, "--check", page).returncode == 0
    page.write_text(page.read_text("utf-8").replace("bitsandbytes", "bitsandbits"), "utf-8")
    done = run(*ONE, "--check", page)
    assert done.returncode == 1
    assert "out of date" in done.stderr


def test_a_folder_without_checkpoints_is_bad_usage(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("there is no checkpoint in these folders")
