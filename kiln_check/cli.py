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
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TextIO

from kiln_check import __version__
from kiln_check.errors import KilnError, UsageError
from kiln_check.fleet import check_paths
from kiln_check.render import json_parts, summary, text
from kiln_check.report import OK, UNREADABLE, Report
from kiln_check.text import printable

HELP_WIDTH = 100

STATUS_OK = 0
STATUS_NOT_OK = 1
STATUS_UNREADABLE = 2
STATUS_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kiln`; return its exit status."""
    parser = _Parser(
        prog="kiln",
        description="Check checkpoints (safetensors, GGUF), and read, write and check Kiln v2 files.",
    )
    parser.add_argument("--version", action="version", version=f"kiln {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_check(commands.add_parser("check", help="say of each checkpoint or Kiln file whether it is sound"))
    _add_import(commands.add_parser("import", help="make one Kiln file of a safetensors or GGUF checkpoint"))
    _add_export(commands.add_parser("export", help="give the files of an imported checkpoint back"))
    rules = commands.add_parser("rules", help="list the rules, or explain one by its name or number")
    rules.add_argument("name", nargs="?", metavar="NAME", help="the rule to explain")
    where = rules.add_mutually_exclusive_group()
    where.add_argument("--page", action="store_true", help="print the path of the layout page, in Markdown")
    where.add_argument("--ksy", action="store_true", help="print the path of the layout for Kaitai")
    rules.set_defaults(run=_run_rules)
    commands.add_parser("conformance", help="run any reader of Kiln files over the conformance corpus")
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["conformance"]:
        return _conformance(arguments[1:])
    return _guarded(parser, arguments)


def check_main(arguments: Sequence[str] | None = None) -> int:
    """Run `kiln-check`, the short form of `kiln check`; return its exit status."""
    parser = _Parser(
        prog="kiln-check", description="Say of each checkpoint or Kiln file whether it is sound."
    )
    _add_check(parser)
    return _guarded(parser, sys.argv[1:] if arguments is None else arguments)


def _conformance(arguments: Sequence[str]) -> int:
    """Run `kiln conformance`, whose module no other command imports."""
    from kiln_check.conformance import add_arguments, split

    own, command = split(arguments)
    description = (
        "Run a reader over the corpus: for each case it prints exactly the verdict word, or with --json one "
        "document as the layout page has it ('path' and 'message' are not compared), and exits with 0 or 1, "
        "either of them. Usage: kiln conformance [options] -- COMMAND {file}"
    )
    return _guarded(add_arguments(_Parser(prog="kiln conformance", description=description), command), own)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong on one line.

    Its help has a width of its own: argparse would load a module for the terminal's.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=partial(argparse.HelpFormatter, width=HELP_WIDTH))

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a Kiln file, a checkpoint (its index, or any of its safetensors or GGUF files), a folder (all "
        "Kiln files and checkpoints below it), a pattern, or - for a Kiln file from standard input",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="what to print (text)")
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out files that are OK")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="of checkpoints, count warnings, and quantized weights that could not be verified",
    )
    parser.set_defaults(run=_run_check, program=parser.prog.split()[0])


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SOURCE", help="a .safetensors, .index.json or .gguf file, or the folder of a model"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="the Kiln file to write; one that is there is replaced",
    )
    parser.add_argument(
        "--allow-unlinked",
        action="store_true",
        help="go on where a scale is missing or its count is wrong: such tensors are stored without a link",
    )
    parser.set_defaults(run=_run_import)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a Kiln file that kiln import wrote")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        required=True,
        help="the folder to put the files in; none is replaced",
    )
    parser.set_defaults(run=_run_export)


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
    except MemoryError:
        _complain(parser.prog, "there is not enough memory for this")
        return STATUS_UNREADABLE
    except BrokenPipeError:
        _discard(sys.stdout)
        _complain(parser.prog, "the output was closed before all was written")
        return STATUS_UNREADABLE
    except OSError as error:
        _discard(sys.stdout)
        _complain(parser.prog, f"the output can't be written: {error.strerror or error}")
        return STATUS_UNREADABLE
    except KeyboardInterrupt:
        _complain(parser.prog, "interrupted")
        return STATUS_INTERRUPTED
    return status


def _complain(program: str, message: str) -> None:
    """One line on standard error; where that can't be written, the exit status must do."""
    if sys.stderr is not None:
        try:
            print(f"{program}: {printable(message)}", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            _discard(sys.stderr)


def _escape_unencodable() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _discard(stream: TextIO) -> None:
    """Keep the interpreter from failing when it flushes, at its end, what can't be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run_check(options: argparse.Namespace) -> int:
    verdicts: Counter[str] = Counter()
    reports = _counted(check_paths(options.paths, strict=options.strict), verdicts, options.program)
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


def _counted(reports: Iterator[Report], verdicts: Counter[str], program: str) -> Iterator[Report]:
    """The same reports; counts them, and says on standard error which can't be read."""
    for report in reports:
        verdicts[report.verdict] += 1
        if report.verdict == UNREADABLE:
            sys.stdout.flush()
            _complain(program, f"{report.path}: {report.error}")
        yield report


def _run_import(options: argparse.Namespace) -> int:
    from kiln_check.checkpoints.importer import closing_report, import_checkpoint

    try:
        done = import_checkpoint(
            options.source, options.output, allow_unlinked=options.allow_unlinked, progress=True
        )
    except KilnError as error:
        return _refused(error)
    except OSError as error:
        raise UsageError(_of_file(error)) from error
    print(closing_report(done))
    return STATUS_OK


def _run_export(options: argparse.Namespace) -> int:
    from kiln_check.checkpoints.exporter import export_checkpoint

    try:
        paths = export_checkpoint(options.file, options.output)
    except KilnError as error:
        return _refused(error)
    except OSError as error:
        raise UsageError(_of_file(error)) from error
    for path in paths:
        print(printable(path))
    return STATUS_OK


def _refused(error: KilnError) -> int:
    """Say why a file is not what the command needs: the report, where there is one, then one line."""
    if error.report is not None:
        print(text(error.report), file=sys.stderr)
    _complain("kiln", str(error))
    return STATUS_NOT_OK


def _of_file(error: OSError) -> str:
    place = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}"


def _run_rules(options: argparse.Namespace) -> int:
    if options.page or options.ksy:
        return _show_path(options)
    from kiln_check.explain import explanation, listing, nearest

    if options.name is None:
        print(listing())
        return STATUS_OK
    found = explanation(options.name)
    if found is None:
        like = nearest(options.name)
        hint = "kiln rules lists them all" if like is None else f"did you mean {like}?"
        raise UsageError(f"there is no rule {options.name}; {hint}")
    print(found)
    return STATUS_OK


def _show_path(options: argparse.Namespace) -> int:
    """Print where the layout page or the .ksy lies in the installed package."""
    from kiln_check import resources

    if options.name is not None:
        raise UsageError("--page and --ksy take no rule; leave out the name or the option")
    print(resources.layout_page() if options.page else resources.ksy())
    return STATUS_OK
