"""Any bytes get a verdict, and no claim is believed that the file can't back."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors import safe_open

from kiln_check import KilnError
from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.formats.safetensors import TYPES
from kiln_check.checkpoints.importer import import_checkpoint
from kiln_check.checkpoints.plan import plan
from kiln_check.cli import main
from kiln_check.constants import LONGEST_HEADER, MOST_FINDINGS
from kiln_check.report import UNREADABLE
from kiln_check.writer import Layout, NewTensor, lay_out
from tests.checkpoints.building import Made, safetensors_bytes, with_header
from tests.checkpoints.models import MODELS, write_gguf
from tests.places import CHECKPOINTS

PATHS = ("model.safetensors", "model.gguf", "model.safetensors.index.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def judged(path: Path) -> str:
    """The verdict; import agrees that there is one."""
    report = check_checkpoint(str(path))
    assert (report.verdict == "OK") == all(one.level == "warning" for one in report.findings)
    assert report.verdict != UNREADABLE
    output = path.with_name("out.kiln")
    refusal = None
    try:
        import_checkpoint(str(path), output, allow_unlinked=True)
    except KilnError as error:
        refusal = error.report
    assert output.exists() == (refusal is None)
    output.unlink(missing_ok=True)
    return report.verdict


@given(st.sampled_from(PATHS), st.binary(max_size=200))
@example("model.safetensors", b"\2" + bytes(7) + b"{}")
@example("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
def test_any_bytes_get_a_verdict(folder: Path, name: str, raw: bytes) -> None:
    (folder / name).write_bytes(raw)
    judged(folder / name)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, 3, 4, 8, 2**63, 2**64 - 1, 2**64])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*TYPES, "dtype", "shape", "data_offsets", "weight_map", "model.safetensors"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["dtype", "shape", "data_offsets", "weight_map"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)

SIZES = st.integers(0, 40) | st.sampled_from([2**31, 2**32, 2**63, 2**64 - 1])

ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*TYPES, "?"]),
        "shape": st.lists(SIZES, max_size=10),
        "data_offsets": st.lists(SIZES, min_size=2, max_size=2),
    }
)

NAMES = st.text(max_size=5) | st.builds(
    str.__add__,
    st.sampled_from("ab"),
    st.sampled_from(
        [
            ".weight",
            ".weight_packed",
            ".weight_scale",
            ".weight_scale_2",
            ".weight_global_scale",
            ".weight_shape",
            ".weight_zero_point",
            ".weight_scale_inv",
            ".scale",
            ".scales",
            ".biases",
            ".blocks",
            ".qweight",
            "_blocks",
            "_scales",
            "_weight_scale",
        ]
    ),
)


@given(st.dictionaries(NAMES, ENTRIES | JSON, max_size=6), st.binary(max_size=60))
def test_any_header_of_safetensors_gets_a_verdict(folder: Path, header: dict[str, Any], body: bytes) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(with_header(json.dumps(header).encode("utf-8", "surrogatepass"), body))
    if judged(path) == "OK":
        with safe_open(path, framework="numpy") as file:
            assert sorted(file.keys()) == sorted(name for name in header if name != "__metadata__")


@given(
    st.dictionaries(
        NAMES,
        st.builds(
            Made,
            st.sampled_from(sorted(TYPES)),
            st.lists(st.integers(0, 9), max_size=9).map(tuple),
        ).filter(lambda made: TYPES[made.dtype].bits % 8 == 0),
        max_size=8,
    )
)
def test_any_tensors_under_the_names_of_conventions_get_a_verdict(
    folder: Path, tensors: dict[str, Made]
) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(safetensors_bytes(tensors))
    judged(path)


@given(JSON)
def test_any_index_and_any_config_get_a_verdict(folder: Path, content: Any) -> None:
    config = folder / "config.json"
    (folder / "model.safetensors").write_bytes(safetensors_bytes({"a.weight": Made("F8_E4M3", (3, 4))}))
    try:
        for key in ("quantization_config", "quantization", "text_config"):
            config.write_text(json.dumps({key: content}))
            judged(folder / "model.safetensors")
        index = folder / "model.safetensors.index.json"
        for whole in (content, {"weight_map": content}, {"weight_map": {"a.weight": content}}):
            index.write_text(json.dumps(whole))
            judged(index)
    finally:
        config.unlink()
        index.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Sound files to damage, by the end of their name."""
    folder = tmp_path_factory.mktemp("sound")
    write_gguf(folder / "model.gguf")
    real = CHECKPOINTS / "ct-nvfp4-sharded" / "model-00002-of-00002.safetensors"
    return {"model.gguf": (folder / "model.gguf").read_bytes(), "model.safetensors": real.read_bytes()}


@given(st.data())
def test_a_damaged_file_gets_a_verdict(folder: Path, sound: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(sound)))
    raw = bytearray(sound[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, min(len(raw), 2000) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    (folder / name).write_bytes(raw)
    judged(folder / name)


def peak_of(path: Path) -> int:
    tracemalloc.start()
    try:
        check_checkpoint(str(path))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


REFUSED_AT_ONCE = (
    "a header of 2^64 bytes",
    "2^64 tensors",
    "2^64 keys",
    "a key of 2^40 bytes",
)

CLAIMS = {
    "the longest header": ("model.safetensors", LONGEST_HEADER.to_bytes(8, "little") + b"{}"),
    "a header of 2^64 bytes": ("model.safetensors", b"\xff" * 8 + b"{}"),
    "a tensor of 2^64 bytes": (
        "model.safetensors",
        with_header(
            b'{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}'
        ),
    ),
    "2^64 tensors": ("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 0)),
    "2^64 keys": ("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 2**64 - 1)),
    "a key of 2^40 bytes": ("model.gguf", b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**40)),
    "an array of 2^60 numbers": (
        "model.gguf",
        b"GGUF" + struct.pack("<IQQQsIIQ", 3, 0, 1, 1, b"a", 9, 12, 2**60) + bytes(64),
    ),
    "2^32 dimensions": (
        "model.gguf",
        b"GGUF" + struct.pack("<IQQQsI", 3, 1, 0, 1, b"a", 2**32 - 1) + bytes(64),
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_allocates_nothing(claim: str, tmp_path: Path) -> None:
    name, raw = CLAIMS[claim]
    (tmp_path / name).write_bytes(raw)
    peak_of(tmp_path / name)  # modules are loaded the first time
    assert peak_of(tmp_path / name) < 1 << 20
    report = check_checkpoint(str(tmp_path / name))
    assert report.verdict not in ("OK", UNREADABLE)
    assert ("the header claims" in report.findings[0].message) == (claim in REFUSED_AT_ONCE)


@pytest.mark.parametrize("depth", [500, 1900, 30_000])
def test_nesting_of_any_depth_gets_a_verdict(depth: int, tmp_path: Path) -> None:
    nested = "[" * depth + "]" * depth
    (tmp_path / "model.safetensors").write_bytes(with_header(f'{{"a":{nested}}}'.encode()))
    assert judged(tmp_path / "model.safetensors") == "TYPE"
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(f'{{"metadata":{nested},"weight_map":{{"a":"gone.safetensors"}}}}')
    assert judged(index) != "OK"


def test_a_header_of_faults_ends(tmp_path: Path) -> None:
    header = "{" + ",".join(['"":{}'] * 200_000) + "}"
    (tmp_path / "model.safetensors").write_bytes(with_header(header.encode()))
    report = check_checkpoint(str(tmp_path / "model.safetensors"))
    assert len(report.findings) == MOST_FINDINGS + 1
    assert report.findings[0].rule == "header-text"


def test_a_sparse_file_is_checked_by_its_header_alone(tmp_path: Path) -> None:
    size = 1 << 40
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(with_header(header))
        file.truncate(file.tell() + size)
    assert check_checkpoint(str(tmp_path / "model.safetensors")).findings == ()
    assert peak_of(tmp_path / "model.safetensors") < 1 << 20


def test_no_payload_is_looked_at(tmp_path: Path) -> None:
    path = MODELS["compressed-by-shape"].write(tmp_path) / "model.safetensors"
    raw = path.read_bytes()
    len_head = 8 + int.from_bytes(raw[:8], "little")
    report = check_checkpoint(str(path))
    path.write_bytes(raw[:len_head] + bytes(len(raw) - len_head))
    assert check_checkpoint(str(path)) == report


def test_a_weight_too_great_for_a_descriptor_ends_in_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = {"x.weight_packed": Made("U8", (0, 1 << 63)), "x.weight_scale": Made("U8", (0, 1 << 59))}
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes(wide))
    assert main(["check", "--format", "json", str(tmp_path)]) in (0, 2)
    assert len(json.loads(capsys.readouterr().out)["files"]) == 1
    assert main(["import", str(tmp_path), "-o", str(tmp_path / "out.kiln")]) in (0, 1)


def sparse_channel(path: Path, columns: int) -> None:
    """Integers of one row, of which no byte is written, and their one scale."""
    entries = {
        "y.weight_scale": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
        "y.weight": {"dtype": "I8", "shape": [1, columns], "data_offsets": [4, 4 + columns]},
    }
    with open(path, "wb") as file:
        file.write(with_header(json.dumps(entries).encode()))
        file.truncate(file.tell() + 4 + columns)


def test_a_group_too_great_for_a_descriptor_is_not_linked(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for columns, linked in ((1 << 31, True), (1 << 32, False)):
        sparse_channel(path, columns)
        made = plan(read_checkpoint(str(path)))
        assert [bool(made.links), bool(made.unlinked)] == [linked, not linked]
        assert check_checkpoint(str(path)).findings == ()


def test_what_can_not_be_laid_out_stops_neither_the_run_nor_its_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_great(tensors: dict[str, NewTensor]) -> Layout:
        if "y" in tensors:
            raise KilnError('tensor "y": a number does not fit its field')
        return lay_out(tensors)

    monkeypatch.setattr("kiln_check.checkpoints.check.lay_out", too_great)
    with_escape = {"note": "\\"}  # which is not cleared, but laid out
    for file, name in (("a", "y"), ("b", "x")):
        raw = safetensors_bytes({name: Made("U8", (3,))}, with_escape)
        (tmp_path / f"{file}.safetensors").write_bytes(raw)
    assert main(["check", "--format", "json", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert [file["verdict"] for file in json.loads(captured.out)["files"]] == ["UNREADABLE", "OK"]
    assert captured.err.count("\n") == 1
    assert '"y"' in captured.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", PATHS)
def test_a_pipe_is_refused_at_once(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / name)
    for arguments in (["check"], ["import", "-o", str(tmp_path / "out.kiln")]):
        assert main([*arguments, str(tmp_path / name)]) == 2
        assert capsys.readouterr().err == f"kiln: {tmp_path / name}: not a regular file\n"


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")
def test_a_config_that_leads_nowhere_is_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes({"x": Made("U8", (3,))}))
    (tmp_path / "config.json").symlink_to(tmp_path / "gone.json")
    assert main(["check", str(tmp_path)]) == 2
    assert "config.json" in capsys.readouterr().err


def test_a_fault_of_its_own_ends_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.safetensors").write_bytes(safetensors_bytes({name: Made("U8", (3,))}))

    def fails(*_: object) -> None:
        raise LookupError("gone")

    monkeypatch.setattr("kiln_check.checkpoints.check.clear", fails)
    assert main(["check", "--format", "json", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert [file["verdict"] for file in json.loads(captured.out)["files"]] == ["UNREADABLE"] * 2
    assert captured.err.count("LookupError('gone')") == 2
