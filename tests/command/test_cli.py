"""The command as a person or a script meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kiln_check import check
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.cli import check_main, main
from kiln_check.constants import FINDINGS_SHOWN
from kiln_check.rules import RULES
from tests.places import CORPUS
from tools.corpus.layout import File, Tensor

SOUND, BROKEN = CORPUS / "kiln-v2-scales.kiln", CORPUS / "kiln-v2-scale-count.kiln"


def kiln(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "kiln_check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload, no-any-return]


def test_the_text_says_what_is_wrong_so_that_a_person_can_fix_it() -> None:
    done = kiln("check", BROKEN)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{BROKEN}: TYPE",
        '  scale-count: tensor 0 "w" (e2m1 [32], groups of 32 along axis 0) needs 1 scale; '
        'tensor 1 "w.scale" (e8m0 [2]) has 2',
        "    ceil(32 / 32) · 1 = 1",
        "    0x0054  01 00 00 00   scale_index = 1",
    ]


def test_the_short_form_is_the_same_command(capsys: pytest.CaptureFixture[str]) -> None:
    short = check_main([str(BROKEN)]), capsys.readouterr()
    assert short == (main(["check", str(BROKEN)]), capsys.readouterr())


def test_folders_patterns_and_files_are_all_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for path in (inner / "x.kiln", tmp_path / "y.kiln", tmp_path / "z.other"):
        path.write_bytes(SOUND.read_bytes())
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path / 'y.kiln'}: OK",
        f"{inner / 'x.kiln'}: OK",
        "2 files: 2 OK",
    ]
    assert main(["check", str(tmp_path / "**" / "*.kiln")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["check", str(tmp_path / "z.other")]) == 0


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a[1].kiln"
    path.write_bytes(SOUND.read_bytes())
    assert main(["check", str(path)]) == 0


def test_quiet_leaves_out_what_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-q", str(SOUND)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["check", "-q", str(SOUND), str(BROKEN)]) == 1
    assert capsys.readouterr().out.startswith(f"{BROKEN}: TYPE\n  scale-count")
    assert main(["check", "-q", "--format", "json", str(SOUND)]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": []}


def test_standard_input_is_a_file_too() -> None:
    command = [sys.executable, "-m", "kiln_check", "check", "-"]
    done = subprocess.run(command, input=SOUND.read_bytes(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"-: OK\n")
    with BROKEN.open("rb") as file:
        assert subprocess.run(command, stdin=file, capture_output=True).returncode == 1


@pytest.mark.parametrize("closed", ["- <&-", "x.kiln >&-"])
def test_a_closed_stream_is_one_line(closed: str, tmp_path: Path) -> None:
    (tmp_path / "x.kiln").write_bytes(SOUND.read_bytes())
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m kiln_check check {closed}', sys.executable],
        capture_output=True,
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["check"],
        ["chekc", "a"],
        ["check", "--format", "xml", str(SOUND)],
        ["check", "absent.kiln"],
        ["check", "absent*.kiln"],
        ["check", "nul\n.kiln"],
        ["rules", "no-such-rule"],
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(arguments: list[str], tmp_path: Path) -> None:
    done = kiln(*arguments, cwd=tmp_path, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_folder_is_not_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"kiln: {tmp_path}: no *.kiln file and no checkpoint in this folder\n"


def test_hidden_folders_and_virtual_environments_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (".hidden", "env/lib", "model"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.kiln").write_bytes(SOUND.read_bytes())
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'model' / 'a.kiln'}: OK\n"


@pytest.mark.parametrize("pattern", ["{}/*", "{}/no/*.kiln", "{}/**/*.kiln", "{}"])
def test_a_folder_that_cannot_be_read_is_said_and_the_rest_is_checked(pattern: str, tmp_path: Path) -> None:
    for folder in ("a", "no", "z"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.kiln").write_bytes(SOUND.read_bytes())
    (tmp_path / "no").chmod(0)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    program = (
        "import os, sys; from kiln_check.cli import main; import kiln_check.patterns, json\n"
        "main(['check', '-q', sys.argv[-1]])\n"
        "if os.geteuid() == 0: os.seteuid(65534)  # root may read everything\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["check", "--format", "json", pattern.format(tmp_path), str(tmp_path / "z" / "a.kiln")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    (tmp_path / "no").chmod(0o755)
    assert done.returncode == 2, done.stderr
    entries = {entry["path"]: entry["verdict"] for entry in json.loads(done.stdout)["files"]}
    assert entries[str(tmp_path / "no")] == "UNREADABLE"
    assert entries[str(tmp_path / "z" / "a.kiln")] == "OK"
    assert done.stderr == f"kiln: {tmp_path / 'no'}: Permission denied\n"


def test_trouble_with_one_path_leaves_the_json_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--format", "json", str(tmp_path), str(tmp_path / "*.x"), str(SOUND)]) == 2
    entries = json.loads(capsys.readouterr().out)["files"]
    assert [entry["verdict"] for entry in entries] == ["UNREADABLE", "UNREADABLE", "OK"]
    assert [entry.get("error") for entry in entries[1:]] == ["no file matches", None]


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2> >(exec true)"])
def test_a_complaint_that_cannot_be_written_does_not_change_the_status(redirection: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    script = f'"{sys.executable}" -m kiln_check check --format json absent.kiln {SOUND.name} {redirection}'
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=CORPUS,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert done.returncode == 2
    assert [entry["verdict"] for entry in json.loads(done.stdout)["files"]] == ["UNREADABLE", "OK"]


def test_a_pipe_that_has_no_bytes_yet_is_waited_for() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    command = [sys.executable, "-m", "kiln_check", "check", "-"]
    with subprocess.Popen(command, stdin=read_end, stdout=subprocess.PIPE) as process:
        raw = SOUND.read_bytes()
        for part in (raw[:100], raw[100:]):
            time.sleep(0.3)
            os.write(write_end, part)
        os.close(write_end)
        assert process.stdout is not None
        assert process.stdout.read() == b"-: OK\n"
    os.close(read_end)


def test_a_stream_without_the_magic_is_not_read_to_its_end() -> None:
    script = f'yes | "{sys.executable}" -m kiln_check check -'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith("-: MAGIC\n")


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    count = 3000
    file = File(*(Tensor("x", "u8", ()) for _ in range(count)))
    file.names = "\U0001f525".encode() * (1 << 16)
    for index in range(count):
        file.set(index, ofs_name=4 * index, len_name=65532, group_size=1)
    file.head(len_names=len(file.names))
    (tmp_path / "a.kiln").write_bytes(bytes(file))
    script = f'ulimit -v 100000; "{sys.executable}" -m kiln_check check --format json {tmp_path}/a.kiln'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "memory" in done.stderr


def test_a_file_that_cannot_be_read_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format", "json", "absent", str(SOUND), str(BROKEN)]) == 2
    output = capsys.readouterr()
    entries = json.loads(output.out)["files"]
    assert [entry["verdict"] for entry in entries] == ["UNREADABLE", "OK", "TYPE"]
    assert entries[0]["error"] == "No such file or directory"
    assert output.err == "kiln: absent: No such file or directory\n"


def test_no_permission_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.kiln"
    path.write_bytes(b"")
    path.chmod(0)
    program = (
        "import os, sys; from kiln_check.cli import main\n"
        "main(['check', sys.argv.pop()])\n"
        "if os.geteuid() == 0: os.seteuid(65534)  # root may read everything\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", str(path), str(SOUND)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, f"kiln: {path}: Permission denied\n")


def test_a_pipe_that_closes_is_one_line() -> None:
    script = f'"{sys.executable}" -m kiln_check check {"tests/corpus " * 40} | head -n 1'
    done = subprocess.run(
        ["bash", "-c", script + "; exit ${PIPESTATUS[0]}"],
        capture_output=True,
        text=True,
        cwd=CORPUS.parent.parent,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["kiln: the output was closed before all was written"]


def test_a_full_disk_is_one_line() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kiln_check", "check", str(SOUND)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["kiln: the output can't be written: No space left on device"]


def test_names_and_paths_are_printed_with_control_characters_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31mred\n.kiln"
    path.write_bytes(bytes(File(Tensor('a\x1b[2J\u202e"', "u8", ()))))
    done = kiln("check", path)
    assert done.returncode == 1
    assert "\\x1b[31mred\\n.kiln: NAME" in done.stdout
    assert '"a\\x1b[2J\\u202e\\""' in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_output_that_the_terminal_cannot_show_is_escaped() -> None:
    done = kiln("check", BROKEN, env=dict(os.environ, PYTHONIOENCODING="ascii"))
    assert done.returncode == 1
    assert "\\xb7" in done.stdout


def test_the_text_shows_20_findings_of_a_rule_and_counts_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = File(*(Tensor(f"t{index}", "u8", ()) for index in range(FINDINGS_SHOWN + 5)))
    for index in range(FINDINGS_SHOWN + 5):
        file.set(index, group_size=1)
    path = tmp_path / "many.kiln"
    path.write_bytes(bytes(file))
    assert main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  scheme-none: tensor") for line in lines) == FINDINGS_SHOWN
    assert lines[-1] == "  scheme-none: and 5 more; --format json has them all"
    assert main(["check", "--format", "json", str(path)]) == 1
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    assert len(entry["findings"]) == FINDINGS_SHOWN + 5


def test_the_rules_are_listed_in_verdict_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    page, own = capsys.readouterr().out.split("\n\n")
    assert [line.split()[:3] for line in page.splitlines()] == [
        [str(number), rule.name, rule.status] for number, rule in enumerate(RULES, 1)
    ]
    assert [line.split()[0] for line in own.splitlines()[1:]] == list(CHECKPOINT_RULES)


@pytest.mark.parametrize("rule", CHECKPOINT_RULES)
def test_a_rule_on_checkpoints_is_explained(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", rule]) == 0
    text = capsys.readouterr().out
    assert "Why: " in text
    assert "Fix: " in text


def test_a_rule_is_found_by_its_number_and_a_slip_is_put_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "24"]) == 0
    assert capsys.readouterr().out.startswith("scale-count\n")
    assert main(["rules", "scale-cuont"]) == 2
    assert "did you mean scale-count?" in capsys.readouterr().err


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_explained_with_a_case_that_pins_it(
    rule: object, capsys: pytest.CaptureFixture[str]
) -> None:
    name = rule.name  # type: ignore[attr-defined]
    assert main(["rules", name]) == 0
    text = capsys.readouterr().out
    assert "Why: " in text
    assert "Fix: " in text
    case = next(line.split()[1] for line in text.splitlines() if line.startswith("case "))
    assert [finding.rule for finding in check(CORPUS / f"{case}.kiln").findings] == [name]


def test_a_plain_check_imports_neither_numpy_nor_what_it_does_not_need() -> None:
    program = (
        "import sys; from kiln_check.cli import main; main(sys.argv[1:]);"
        "print(sorted(sys.modules.keys() & {'numpy', 'json', 'inspect', 'dataclasses', 'mmap', 'tempfile',"
        "'kiln_check.writer', 'kiln_check.reader', 'kiln_check.arrays', 'kiln_check.explain'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", str(SOUND)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_writes_is_loaded_without_a_rule() -> None:
    code = (
        "import sys, kiln_check; kiln_check.write; "
        "print([name for name in sys.modules if name.startswith(('kiln_check.rules', 'kiln_check.screen'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
