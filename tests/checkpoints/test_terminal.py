"""Nothing that a checkpoint says moves the cursor, clears a line or adds one."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.cli import main
from tests.checkpoints.building import Made, safetensors_bytes

ESCAPE = "\x1b[2K\x1b[1A"
FORGED = "x: OK\n1 file: 1 OK\r"

TEXTS = st.text(max_size=6) | st.sampled_from(
    [ESCAPE, FORGED, "\x9b2J", "\u202e", "\u2028", "\x85", "\x7f", "a\\n"]
)
FILES = TEXTS.map(lambda text: text.replace("/", "").replace("\0", ""))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("terminal")


def printed(*arguments: str | Path) -> str:
    """What a command prints, all of which a terminal may show."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        main([str(argument) for argument in arguments])
    text = out.getvalue() + err.getvalue()
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    return text


def lines_of(path: Path) -> int:
    """How many lines a report has by its structure."""
    report = check_checkpoint(str(path))
    assert all(sign.isprintable() for one in report.findings for sign in one.message)
    return 1 + len(report.notes) + sum(2 + (one.working is not None) for one in report.findings)


@given(TEXTS, FILES, TEXTS)
@example(ESCAPE, ESCAPE, ESCAPE)
@example(FORGED, FORGED, FORGED)
@example("a", "b", FORGED)
@example(ESCAPE, "b", "c")
def test_names_print_on_one_line(folder: Path, tensor: str, file: str, other: str) -> None:
    source = folder / "model"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    first, second = f"{file}1.safetensors", f"{file}2.safetensors"
    scale = f"{tensor}.weight_scale"
    (source / first).write_bytes(
        safetensors_bytes({f"{tensor}.weight_packed": Made("U8", (2, 16)), other: Made("U8", (3,))})
    )
    (source / second).write_bytes(
        safetensors_bytes(
            {scale: Made("U8", (3, 1)), other: Made("U8", (3,)), f"{other}0": Made("F8_E4M3", (2,))}
        )
        + b"\x1b"
    )
    index = source / "model.safetensors.index.json"
    weight_map = {f"{tensor}.weight_packed": first, scale: second, f"{other}1": first}
    for listed in (weight_map, {**weight_map, "gone": other}):
        index.write_text(json.dumps({"weight_map": listed}))
        assert printed("check", index).count("\n") == lines_of(index)
        printed("import", index, "-o", folder / "out.kiln")
    for name in (first, second):
        path = source / name
        assert printed("check", path).count("\n") == lines_of(path)
        printed("import", "--allow-unlinked", path, "-o", folder / "out.kiln")
        if (folder / "out.kiln").exists():
            printed("export", folder / "out.kiln", "-o", folder / "out")
            shutil.rmtree(folder / "out", ignore_errors=True)
            (folder / "out.kiln").unlink()
    printed("check", source)
