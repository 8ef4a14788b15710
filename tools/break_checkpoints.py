#!/usr/bin/env python3
"""Break sound checkpoints in every way that applies, and count what `kiln check` notices.

    tools/break_checkpoints.py [FOLDER …]              tables by tool and by kind of break
    tools/break_checkpoints.py --list-missed           each break that is missed, too
    tools/break_checkpoints.py --at-least PERCENT      exit 1 when fewer of those that headers can
                                                       show are noticed
    tools/break_checkpoints.py --markdown FILE         write the page of the documentation
    tools/break_checkpoints.py --check FILE            exit 1 when that page is out of date
    tools/break_checkpoints.py --only NAME             the checkpoints whose names begin so

A FOLDER has a checkpoint in each zip, or in each folder, below it; by default it is
tests/data/zoo. Only headers are of interest: payloads of more than 2 KiB are zeros. What headers
can't show is no miss, so --at-least leaves it out; the last line gives the rate of all breaks too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.breaking.judging import Judged, judge  # noqa: E402
from tools.breaking.tables import markdown, missed_lines, outcomes_of, seeable_rate, text  # noqa: E402
from tools.zoo import ZOO, unpack  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status: 0, 1 for too low a rate or an old page, 2 for bad usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    paths = _checkpoints(options.folders, options.only)
    if not paths:
        parser.error("there is no checkpoint in these folders")
    with Pool(options.jobs) as pool:
        judged = pool.map(judge_at, paths, chunksize=1)
    outcomes = outcomes_of(judged)
    if options.list_missed:
        print(*missed_lines(outcomes), sep="\n")
    print(text(judged))
    if options.markdown is not None:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        options.markdown.write_text(markdown(judged), encoding="utf-8")
    if options.check is not None and not _is_current(options.check, markdown(judged)):
        print(f"{options.check}: out of date; write it with --markdown", file=sys.stderr)
        return 1
    if seeable_rate(outcomes) < options.at_least:
        print(f"fewer than {options.at_least:g} % of what headers can show is noticed", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Break checkpoints, and count what kiln check notices.")
    parser.add_argument(
        "folders",
        nargs="*",
        type=Path,
        default=[ZOO],
        metavar="FOLDER",
        help="of checkpoints (tests/data/zoo)",
    )
    parser.add_argument("--list-missed", action="store_true", help="print each break that is missed")
    parser.add_argument(
        "--at-least",
        type=float,
        default=0,
        metavar="PERCENT",
        help="exit 1 when fewer of the breaks that headers can show are noticed",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page of the documentation")
    parser.add_argument("--check", type=Path, metavar="FILE", help="exit 1 when that page is out of date")
    parser.add_argument("--only", default="", metavar="NAME", help="checkpoints whose names begin so")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (one a core)"
    )
    return parser


def _checkpoints(folders: Sequence[Path], only: str) -> list[Path]:
    """The zips and folders in folders whose names begin with `only`."""
    found = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    return [path for path in found if path.name.startswith(only) and (path.is_dir() or path.suffix == ".zip")]


def judge_at(path: Path) -> Judged:
    """Break the checkpoint of a folder or of a zip in every way, and check each."""
    if path.is_dir():
        return judge(path)
    with TemporaryDirectory() as folder:
        return judge(unpack(path, Path(folder)))


def _is_current(page: Path, wanted: str) -> bool:
    return page.is_file() and page.read_text(encoding="utf-8") == wanted


if __name__ == "__main__":
    sys.exit(main())
