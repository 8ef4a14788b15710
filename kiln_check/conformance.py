"""Runs anybody's reader over the conformance corpus: `kiln conformance -- COMMAND {file}`.

The command is run once a case, with the case's path for `{file}`. It prints the verdict
word, or with `--json` the JSON of the layout page, and exits with 0 or 1. The corpus is
the folder `kiln_check.corpus`; its README says what the manifest means.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

from kiln_check import resources
from kiln_check.constants import MOST_OUTPUT
from kiln_check.errors import UsageError

CORPUS = resources.corpus()
"""The corpus that travels with the package."""

PLACEHOLDER = "{file}"
OUTCOMES = ("pass", "fail", "crash", "timeout")
ANSWERED = (0, 1)
"""Exit statuses of a reader that gave an answer."""

GRACE = 1.0
"""Seconds for the last output of a command that has ended, should a child of it hold the pipe."""

COMPARED = ("rule", "status", "tensor", "name", "field", "offset", "length")
"""The members of a finding that a reader must give; any other, like `message`, is its own."""

SOUND = "no rule"
"""What the summary calls the sound cases."""

ALL = "all cases"

Case = dict[str, Any]


class ConformanceError(UsageError):
    """The corpus can't be run as asked; the text says why on one line."""


class Result(NamedTuple):
    """What a command made of one case.

    Attributes:
        case: the case, as the manifest has it.
        outcome: one of OUTCOMES.
        wanted: the verdict, or with JSON the first thing in which the answer differs.
        got: what the command gave instead; empty when it passed.

    """

    case: Case
    outcome: str
    wanted: str
    got: str = ""

    def __str__(self) -> str:
        line = f"{self.outcome:<8}{self.case['case']}"
        return line if self.outcome == "pass" else f"{line}: wanted {self.wanted}, got {self.got}"


def load(corpus: Path = CORPUS) -> list[Case]:
    """Read the manifest of a corpus and see that its files are whole.

    Raises ConformanceError when one is missing or changed.
    """
    try:
        cases: list[Case] = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["cases"]
        for case in cases:
            _require_members(case)
            if hashlib.sha256((corpus / case["file"]).read_bytes()).hexdigest() != case["sha256"]:
                raise ConformanceError(f"{corpus / case['file']} is not the file that the manifest means")
    except OSError as error:
        raise ConformanceError(f"{error.filename} can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConformanceError(f"{corpus / 'manifest.json'} is no manifest of a corpus") from error
    return cases


def _require_members(case: Case) -> None:
    """Raise KeyError or TypeError unless a case has all that a run looks at."""
    for member in ("case", "file", "verdict", "num_tensors", "differs_from"):
        case[member]
    rules = _rules()
    for finding in case["findings"]:
        rules.index(finding["rule"])
        _named(finding)


def choose(cases: Sequence[Case], rules: Sequence[str] = (), patterns: Sequence[str] = ()) -> list[Case]:
    """Choose the cases whose id fits one of the patterns and that have to do with one of the rules.

    Those are the cases that break the rule, and the sound ones that these were made from.
    Raises ConformanceError when nothing is left.
    """
    chosen = list(cases)
    if rules:
        broken = [case for case in cases if any(finding["rule"] in rules for finding in case["findings"])]
        names = {case["case"] for case in broken} | {case["differs_from"] for case in broken}
        chosen = [case for case in cases if case["case"] in names]
    if patterns:
        chosen = [case for case in chosen if any(fnmatch.fnmatch(case["case"], text) for text in patterns)]
    if not chosen:
        raise ConformanceError("no case fits what --rule and --case ask for")
    return chosen


def run(
    command: Sequence[str],
    *,
    json: bool = False,
    timeout: float = 10.0,
    rules: Sequence[str] = (),
    cases: Sequence[str] = (),
    corpus: Path = CORPUS,
    jobs: int | None = None,
) -> Iterator[Result]:
    """Run a command over the corpus and judge its answers, in the manifest's order.

    Args:
        command: the program and its arguments; `{file}` in any of them becomes the case's path.
        json: compare findings too, from the JSON of the layout page.
        timeout: seconds that the command may take for one case.
        rules: only cases that have to do with these rules.
        cases: only cases whose id fits one of these patterns (`*`, `?`, `[…]`).
        corpus: another folder than the one of the package.
        jobs: how many cases at a time; None for as many as there are processors.

    Raises ConformanceError when the command can't be run or there is nothing to run it on.

    """
    if not any(PLACEHOLDER in part for part in command):
        raise ConformanceError(f"the command needs {PLACEHOLDER} where the path of a case shall stand")
    if shutil.which(command[0]) is None and PLACEHOLDER not in command[0]:
        raise ConformanceError(f"{command[0]} is no program that can be run")
    chosen = choose(load(corpus), rules, cases)
    judge = _judge_json if json else _judge_word

    def one(case: Case) -> Result:
        path = str(corpus / case["file"])
        return _run_one([part.replace(PLACEHOLDER, path) for part in command], case, timeout, judge)

    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        yield from pool.map(one, chosen)
    finally:
        pool.shutdown(cancel_futures=True)


def _run_one(command: list[str], case: Case, timeout: float, judge: Callable[[Case, str], Result]) -> Result:
    verdict = case["verdict"]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ConformanceError(f"{command[0]} can't be run: {error.strerror}") from error
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Reader(process.stdout), _Reader(process.stderr)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        return Result(case, "timeout", verdict, f"no answer in {timeout:g} s")
    finally:
        _end(process)
        out.join(GRACE)
        err.join(GRACE)
    if status not in ANSWERED:
        return Result(case, "crash", verdict, _cause(status, err.text))
    if not out.text.strip():
        return Result(case, "fail", verdict, _with_last_line("no output", err.text))
    return judge(case, out.text)


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that the writer never waits, and keeps what fits."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._kept = bytearray()
        self.start()

    def run(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                self._kept += chunk[: MOST_OUTPUT - len(self._kept)]

    @property
    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "backslashreplace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that runs on, and whatever it started."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _cause(status: int, stderr: str) -> str:
    """Say how a command ended that gave no answer."""
    if status < 0:
        try:
            how = f"signal {signal.Signals(-status).name}"
        except ValueError:
            how = f"signal {-status}"
    else:
        how = f"exit status {status}"
    return _with_last_line(how, stderr)


def _with_last_line(text: str, stderr: str) -> str:
    """Add the last thing that a command said on standard error."""
    lines = stderr.strip().splitlines()
    return f"{text} ({_shown(lines[-1])})" if lines else text


def _shown(text: str) -> str:
    """A command's words on one line, short and harmless."""
    text = text.strip()
    short = text if len(text) <= 80 else text[:79] + "…"
    return short if short.isprintable() else ascii(short)


def _judge_word(case: Case, output: str) -> Result:
    word = output.strip()
    if word == case["verdict"]:
        return Result(case, "pass", case["verdict"])
    return Result(case, "fail", case["verdict"], _shown(word.splitlines()[0]))


def _judge_json(case: Case, output: str) -> Result:
    try:
        files = json.loads(output)["files"]
        (answer,) = files
        got = {name: answer[name] for name in ("verdict", "num_tensors")}
        if not isinstance(answer["findings"], list):
            return Result(case, "fail", case["verdict"], "findings that are no list")
        findings = [{name: finding[name] for name in COMPARED} for finding in answer["findings"]]
    except KeyError as error:
        return Result(case, "fail", case["verdict"], f"JSON without {error}")
    except (ValueError, TypeError, RecursionError):
        return Result(case, "fail", case["verdict"], "no JSON of one file")
    for name, value in got.items():
        if not _same(value, case[name]):
            return Result(case, "fail", f"{name} {_shown(str(case[name]))}", _shown(str(value)))
    for place in range(max(len(findings), len(case["findings"]))):
        pair = [_named(some[place] if place < len(some) else None) for some in (case["findings"], findings)]
        if pair[0] != pair[1]:
            return Result(case, "fail", *pair)
    return Result(case, "pass", case["verdict"])


def _same(one: object, other: object) -> bool:
    """Whether two JSON values are equal, true and 1.0 not being 1."""
    return json.dumps(one) == json.dumps(other)


def _named(finding: dict[str, Any] | None) -> str:
    if finding is None:
        return "no further finding"
    return " ".join(f"{name}={json.dumps(finding[name])}" for name in COMPARED)


def summary(results: Sequence[Result]) -> str:
    """Give a table of outcomes by rule, in the rules' order.

    A case with several findings counts for each of their rules, and once for all.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*_rules(), SOUND, ALL)}
    for result in results:
        rules = {finding["rule"] for finding in result.case["findings"]} or {SOUND}
        for name in (*rules, ALL):
            counts[name][result.outcome] += 1
    lines = [f"{'rule':<16}" + "".join(f"{name:>9}" for name in ("cases", *OUTCOMES))]
    for name, outcomes in counts.items():
        numbers = (outcomes.total(), *(outcomes[outcome] for outcome in OUTCOMES))
        if numbers[0]:
            lines.append(f"{name:<16}" + "".join(f"{number:>9}" for number in numbers))
    return "\n".join(lines)


def copy(target: Path, corpus: Path = CORPUS) -> int:
    """Copy the corpus into a new folder; return the number of cases.

    Raises ConformanceError when the folder is there already or can't be made.
    """
    cases = load(corpus)
    try:
        target.mkdir(parents=True)
        for name in ["manifest.json", "manifest.schema.json", "README.md", *(case["file"] for case in cases)]:
            shutil.copyfile(corpus / name, target / name)
    except FileExistsError as error:
        raise ConformanceError(f"{target} is there already; name a new folder") from error
    except OSError as error:
        raise ConformanceError(f"{target} can't be written: {error.strerror}") from error
    return len(cases)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the runner's own arguments from the command, which follows the first `--`."""
    own = list(arguments)
    place = own.index("--") if "--" in own else len(own)
    return own[:place], own[place + 1 :]


def add_arguments(parser: argparse.ArgumentParser, command: Sequence[str]) -> argparse.ArgumentParser:
    """Tell a parser what `kiln conformance` takes before the command.

    Its options get `command`, and `run`, which carries them out.
    """
    parser.usage = f"{parser.prog} [options] -- COMMAND {PLACEHOLDER}"
    parser.add_argument(
        "--json", action="store_true", help="it prints the layout page's JSON: compare findings too"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=10.0, metavar="SECONDS", help="the most that a case may take (10)"
    )
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        choices=_rules(),
        metavar="RULE",
        help="only cases of this rule",
    )
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only cases whose id fits (with *)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out cases that pass")
    parser.add_argument("--jobs", type=_number, metavar="N", help="cases at a time (as many as processors)")
    parser.add_argument("--copy", type=Path, metavar="DIR", help="put the corpus into a new folder")
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="another corpus")
    parser.set_defaults(command=command, run=run_options)
    return parser


def run_options(options: argparse.Namespace) -> int:
    """Carry out `kiln conformance`.

    Returns 0 when every case passed, 1 when one did not.
    Raises ConformanceError when nothing could be run.
    """
    if options.copy is not None:
        print(f"{options.copy}: {copy(options.copy, options.corpus)} cases")
    if options.command:
        return _show(options)
    if options.copy is None:
        raise ConformanceError(f"name the reader to run: kiln conformance -- COMMAND {PLACEHOLDER}")
    return 0


def _show(options: argparse.Namespace) -> int:
    seen = []
    for result in run(
        options.command,
        json=options.json,
        timeout=options.timeout,
        rules=options.rule,
        cases=options.case,
        corpus=options.corpus,
        jobs=options.jobs,
    ):
        seen.append(result)
        if not (options.quiet and result.outcome == "pass"):
            print(result, flush=True)
    print(summary(seen))
    return 0 if all(result.outcome == "pass" for result in seen) else 1


def _rules() -> list[str]:
    from kiln_check.rules import RULES

    return [rule.name for rule in RULES]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait")
    return seconds


def _number(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 0 < number < 1000:
        raise argparse.ArgumentTypeError(f"{text} is no number of cases")
    return number
