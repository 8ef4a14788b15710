"""What is cleared in little time is what the reading of tensor by tensor calls sound, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kiln_check.checkpoints.check import report_on
from kiln_check.checkpoints.checkpoint import read_place
from kiln_check.checkpoints.clearing import clear
from kiln_check.checkpoints.folder import Folder, Place
from kiln_check.checkpoints.plan import plan
from kiln_check.errors import PathError
from kiln_check.paths import checkpoint_at
from kiln_check.report import Report
from kiln_check.writer import lay_out
from tests.checkpoints.building import FOLDERS, Made, copy_of, safetensors_bytes, split, with_header
from tests.places import CHECKPOINTS, ZOO
from tools.zoo import unpack


def in_full(place: Place) -> Report:
    """The report of a reading tensor by tensor."""
    made = plan(read_place(place))
    return report_on(made, lay_out(made.tensors), place.path)


def cleared(place: Place) -> Report | None:
    report = clear(place, Folder(str(Path(place.path).parent)))
    if report is not None:
        assert report == in_full(place)
        assert report.findings == ()
    return report


@pytest.mark.parametrize("archive", sorted(ZOO.glob("*.zip")), ids=lambda archive: archive.stem)
def test_a_cleared_checkpoint_is_reported_as_in_full(archive: Path, tmp_path: Path) -> None:
    try:
        place = checkpoint_at(str(unpack(archive, tmp_path)))
    except PathError:
        return
    cleared(place)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_real_checkpoint_is_cleared(folder: str) -> None:
    assert cleared(checkpoint_at(str(CHECKPOINTS / folder))) is not None


ENTRY = '"a":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]}'

UNUSUAL = {
    "a truth value as a length": '{"a":{"dtype":"U8","shape":[true,2],"data_offsets":[0,2]}}',
    "a truth value as an offset": '{"a":{"dtype":"U8","shape":[1,2],"data_offsets":[false,2]}}',
    "a truth value as an offset of two bytes": '{"a":{"dtype":"U8","shape":[2],"data_offsets":[false,2]}}',
    "a length below 0": '{"a":{"dtype":"U8","shape":[-0,2],"data_offsets":[0,2]}}',
    "a length that is not whole": '{"a":{"dtype":"U8","shape":[1.0,2],"data_offsets":[0,2]}}',
    "a tensor twice": f"{{{ENTRY},{ENTRY}}}",
    "a key twice": '{"a":{"dtype":"U8","dtype":"U8","shape":[1,2],"data_offsets":[0,2]}}',
    "a key more": '{"a":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2],"more":0}}',
    "a key of the metadata twice": f'{{"__metadata__":{{"k":"1","k":"2"}},{ENTRY}}}',
    "metadata twice": f'{{"__metadata__":{{}},"__metadata__":{{}},{ENTRY}}}',
    "metadata that are no text": f'{{"__metadata__":{{"k":1}},{ENTRY}}}',
    "a name that import keeps": f"{{{ENTRY.replace('a', 'kiln.source/head/a', 1)}}}",
    "an empty name": f"{{{ENTRY.replace('a', '', 1)}}}",
    "a name with a control character": f"{{{ENTRY.replace('a', chr(127), 1)}}}",
    "an escape": f"{{{ENTRY.replace('a', chr(92) + 'u0061', 1)}}}",
    "a shape that is text": '{"a":{"dtype":"U8","shape":"12","data_offsets":[0,2]}}',
    "a shape that is an object": '{"a":{"dtype":"U8","shape":{},"data_offsets":[0,2]}}',
    "an unknown dtype": '{"a":{"dtype":"U2","shape":[1,2],"data_offsets":[0,2]}}',
    "a payload too long": '{"a":{"dtype":"U8","shape":[1,1],"data_offsets":[0,2]}}',
    "a payload elsewhere": '{"a":{"dtype":"U8","shape":[1,1],"data_offsets":[1,2]}}',
    "no tensor": "{}",
    "no object": "[]",
    "more after the object": f"{{{ENTRY}}}x",
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_what_is_unusual_is_not_cleared(case: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(UNUSUAL[case].encode(), b"\0\0"))
    assert clear(checkpoint_at(str(path)), Folder(str(tmp_path))) is None


def test_a_header_without_anything_unusual_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(f'{{"__metadata__":{{"format":"pt"}},{ENTRY}}}'.encode(), b"\0\0"))
    assert cleared(checkpoint_at(str(path))) is not None


INDEXES = {
    "a tensor that it has elsewhere": {"a": "b.safetensors", "b": "a.safetensors"},
    "a tensor more": {"a": "a.safetensors", "b": "b.safetensors", "c": "b.safetensors"},
    "a file in another folder": {"a": "a.safetensors", "b": "../b.safetensors"},
    "a file without a name": {"a": "a.safetensors", "b": [1]},
}


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_of_another_checkpoint_is_not_cleared(case: str, tmp_path: Path) -> None:
    index = indexed(tmp_path, INDEXES[case])
    assert clear(Place(index), Folder(str(tmp_path))) is None


@pytest.mark.parametrize(("total", "is_cleared"), [(2, True), (None, True), (3, False), (2.0, False)])
def test_an_index_is_cleared_where_its_total_is_right(
    total: float | None, is_cleared: bool, tmp_path: Path
) -> None:
    index = indexed(tmp_path, {"a": "a.safetensors", "b": "b.safetensors"}, total)
    assert (cleared(Place(index)) is not None) == is_cleared


UNUSUAL_MEMBERS = {
    "deep": [[[]]],
    "a long number": 1 << 64,
    "a number below": -(1 << 64),
    "a truth value": {"a": [True]},
}


@pytest.mark.parametrize("case", UNUSUAL_MEMBERS)
def test_an_index_with_members_that_are_unusual_is_not_cleared(case: str, tmp_path: Path) -> None:
    index = indexed(tmp_path, {"a": "a.safetensors", "b": "b.safetensors"})
    content = json.loads(Path(index).read_text())
    Path(index).write_text(json.dumps({**content, "x": UNUSUAL_MEMBERS[case]}))
    assert cleared(Place(index)) is None


@pytest.mark.parametrize("name", ["mo\ndel.safetensors.index.json", "quant_model_description\n.json"])
def test_a_file_s_name_that_import_does_not_keep_is_not_cleared(name: str, tmp_path: Path) -> None:
    index = indexed(tmp_path, {"a": "a.safetensors", "b": "b.safetensors"})
    other = tmp_path / name
    if "index" in name:
        Path(index).rename(other)
        index = str(other)
    else:
        other.write_text("{}")
    assert cleared(Place(index)) is None


def test_metadata_of_many_keys_are_cleared(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes({"a": Made("U8", (2,))}, {str(one): "" for one in range(50_000)}))
    assert cleared(checkpoint_at(str(path))) is not None


def test_an_index_with_a_key_twice_is_not_cleared(tmp_path: Path) -> None:
    index = indexed(tmp_path, {"a": "a.safetensors", "b": "b.safetensors"})
    text = Path(index).read_text()
    for twice in ('"a": 0, "a":', '"weight_map": 0, "a":', '"a": "a.safetensors", "a":'):
        Path(index).write_text(text.replace('"a":', twice, 1))
        assert cleared(Place(index)) is None
    Path(index).write_text(text.replace('"weight_map":', '"weight_map": 0, "weight_map":', 1))
    assert cleared(Place(index)) is None


def indexed(folder: Path, weight_map: object, total: float | None = None) -> str:
    for name in ("a", "b"):
        (folder / f"{name}.safetensors").write_bytes(safetensors_bytes({name: Made("U8", (1,))}))
    metadata = {} if total is None else {"total_size": total}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))
    return str(index)


@given(
    folder=st.sampled_from(["ct-nvfp4", "ct-int4", "ct-fp8-block", "ct-int4-asym"]),
    at=st.floats(0, 1, exclude_max=True),
    old=st.integers(0, 30),
    new=st.binary(max_size=3) | st.sampled_from([b"true", b"1.0", b'"a"', b"[]", b"63", b"F32", b"-0", b" "]),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_header_is_not_cleared_where_a_fault_is_found(
    folder: str, at: float, old: int, new: bytes
) -> None:
    with TemporaryDirectory() as temporary:
        copy = copy_of(folder, Path(temporary))
        path = copy / "model.safetensors"
        raw = path.read_bytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        header = raw[8:end]
        place = int(at * len(header))
        path.write_bytes(with_header(header[:place] + new + header[place + old % 4 :], raw[end:], pad=False))
        cleared(checkpoint_at(str(path)))


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_changed_tensor_is_not_cleared_where_a_fault_is_found(data: st.DataObject) -> None:
    with TemporaryDirectory() as temporary:
        folder = data.draw(st.sampled_from(["ct-nvfp4", "ct-mxfp4", "ct-int4-asym", "ct-fp8-channel"]))
        path = copy_of(folder, Path(temporary)) / "model.safetensors"
        header, _ = split(path)
        metadata = header.pop("__metadata__", None)
        made = {name: Made(one["dtype"], tuple(one["shape"])) for name, one in header.items()}
        name = data.draw(st.sampled_from(sorted(made)))
        shape = list(made[name].shape)
        change = data.draw(st.sampled_from(["remove", "longer", "dtype", "flatten", "rename"]))
        if change == "longer" and shape:
            axis = data.draw(st.integers(0, len(shape) - 1))
            shape[axis] += data.draw(st.sampled_from([-1, 1, 8]))
            made[name] = made[name]._replace(shape=tuple(max(one, 1) for one in shape))
        elif change == "dtype":
            made[name] = made[name]._replace(dtype=data.draw(st.sampled_from(["F32", "BF16", "U8", "I32"])))
        elif change == "flatten":
            made[name] = made[name]._replace(shape=(*shape, 1))
        else:
            one = made.pop(name)
            if change == "rename":
                made[name.replace("layers.0", "layers.7")] = one
        path.write_bytes(safetensors_bytes(made, metadata))
        cleared(checkpoint_at(str(path)))
