"""The command `kiln`, and its short form `kiln-check`.

Exit status: 0 all files are OK, 1 a verdict other than OK, 2 bad usage or a file
that can't be read (layout page, "What a finding says, in JSON").
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kiln_check.checking import check
from kiln_check.render import json_parts, printable, summary, text
from kiln_check.report import OK, UNREADABLE, Report

SUFFIX = ".kiln"

STATUS_OK = 0
STATUS_NOT_OK = 1
STATUS_UNREADABLE = 2
STATUS_INTERRUPTED = 130


class UsageError(Exception):
    """The command can't be carried out as it was given; the text says why on one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kiln`; return its exit status."""
    parser = _Parser(prog="kiln", description="Read, write and check Kiln v2 files.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_check(commands.add_parser("check", help="say of each file whether it is sound"))
    rules = commands.add_parser("rules", help="list the rules, or explain one")
    rules.add_argument("name", nargs="?", metavar="NAME", help="the rule to explain")
    rules.set_defaults(run=_run_rules)
    return _guarded(parser, sys.argv[1:] if arguments is None else arguments)


def check_main(arguments: Sequence[str] | None = None) -> int:
    """Run `kiln-check`, the short form of `kiln check`; return its exit status."""
    parser = _Parser(prog="kiln-check", description="Say of each file whether it is sound.")
    _add_check(parser)
    return _guarded(parser, sys.argv[1:] if arguments is None else arguments)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong on one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; see {self.prog} --help")


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a file, a folder (all *.kiln below it), a pattern, or - for standard input",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="what to print (text)")
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out files that are OK")
    parser.set_defaults(run=_run_check)


def _guarded(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    """Run the command; what goes wrong is one line on standard error."""
    try:
        options = parser.parse_args(arguments)
        if sys.stdout is None:
            raise UsageError("standard output is closed")
        run: Callable[[argparse.Namespace], int] = options.run
        _escape_unencodable()
        status = run(options)
        sys.stdout.flush()
    except UsageError as error:
        _complain(parser.prog, str(error))
        return STATUS_UNREADABLE
    except BrokenPipeError:
        _discard_output()
        _complain(parser.prog, "the output was closed before all was written")
        return STATUS_UNREADABLE
    except OSError as error:
        _complain(parser.prog, f"the output can't be written: {error.strerror or error}")
        return STATUS_UNREADABLE
    except KeyboardInterrupt:
        _complain(parser.prog, "interrupted")
        return STATUS_INTERRUPTED
    return status


def _complain(program: str, message: str) -> None:
    print(f"{program}: {printable(message)}", file=sys.stderr)


def _escape_unencodable() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Keep the interpreter from flushing into the closed pipe when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_check(options: argparse.Namespace) -> int:
    verdicts: Counter[str] = Counter()
    reports = _counted(_reports(options.paths), verdicts)
    if options.quiet:
        reports = (report for report in reports if not report.ok)
    if options.format == "json":
        for part in json_parts(reports):
            sys.stdout.write(part)
    else:
        for report in reports:
            if report.verdict != UNREADABLE:
                print(text(report))
        if verdicts.total() > 1 and not options.quiet:
            print(summary(verdicts))
    if verdicts[UNREADABLE]:
        return STATUS_UNREADABLE
    return STATUS_OK if verdicts[OK] == verdicts.total() else STATUS_NOT_OK


def _counted(reports: Iterator[Report], verdicts: Counter[str]) -> Iterator[Report]:
    """The same reports; counts them, and says on standard error which can't be read."""
    for report in reports:
        verdicts[report.verdict] += 1
        if report.verdict == UNREADABLE:
            sys.stdout.flush()
            _complain("kiln", f"{report.path}: {report.error}")
        yield report


def _reports(paths: Sequence[str]) -> Iterator[Report]:
    for path in paths:
        if path == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed")
            yield check(sys.stdin.buffer, path="-")
        else:
            yield from map(check, _files(path))


def _files(path: str) -> Iterator[str]:
    """The files that a path on the command line means.

    Raises UsageError for a folder or a pattern without any.
    """
    if os.path.isdir(path):
        found = False
        for file in _below(path):
            found = True
            yield file
        if not found:
            raise UsageError(f"{path}: no *{SUFFIX} file in this folder")
    elif any(sign in path for sign in "*?[") and not os.path.lexists(path):
        from glob import glob

        matches = sorted(glob(path, recursive=True))
        if not matches:
            raise UsageError(f"{path}: no file matches")
        for match in matches:
            yield from _files(match) if os.path.isdir(match) else (match,)
    else:
        yield path


def _below(folder: str) -> Iterator[str]:
    """Every *.kiln below a folder, in the order of the names.

    Raises UsageError where a folder can't be read.
    """

    def refuse(error: OSError) -> None:
        raise UsageError(f"{error.filename}: {error.strerror}")

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        for file in sorted(files):
            if file.endswith(SUFFIX):
                yield os.path.join(parent, file)


def _run_rules(options: argparse.Namespace) -> int:
    from kiln_check.explain import explanation, listing

    if options.name is None:
        print(listing())
        return STATUS_OK
    found = explanation(options.name)
    if found is None:
        raise UsageError(f"there is no rule {options.name}; kiln rules lists them all")
    print(found)
    return STATUS_OK
