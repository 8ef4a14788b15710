"""The page on the command has every command and every option, and no other."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from kiln_check import cli
from tests.docs.pages import DOCS, rows, section

PAGE = (DOCS / "reference" / "command.md").read_text("utf-8")


def help_of(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kiln_check", *command, "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


COMMANDS: list[str] = re.findall(r"^    ([a-z]+)\b", help_of().partition("commands:")[2], re.MULTILINE)


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)) - {"-h", "--help"}


def test_every_command_has_a_section_and_a_row() -> None:
    assert len(COMMANDS) >= 5
    assert re.findall(r"^## kiln (.*)$", PAGE, re.MULTILINE) == COMMANDS
    told = [row[0] for row in rows(PAGE.partition("\n## ")[0])]
    assert [re.findall(r"`(\w+)`", one) for one in told] == [[name] for name in COMMANDS]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_is_told(name: str) -> None:
    told = [row[0] for row in rows(section(PAGE, f"kiln {name}"))]
    positional, _, options = help_of(name).partition("options:")
    options = "\n".join(line for line in options.splitlines() if line.startswith("  -"))
    assert options_in(" ".join(told)) == options_in(options)
    arguments = [one.strip("`") for one in told if not one.startswith("`-")]
    assert arguments == (re.findall(r"^  ([A-Z]+)\b", positional, re.MULTILINE) or ["COMMAND"])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_has_every_argument(name: str) -> None:
    usage = section(PAGE, f"kiln {name}").partition("```\n")[2].partition("\n```")[0]
    assert usage.startswith(f"kiln {name} ")
    for row in rows(section(PAGE, f"kiln {name}")):
        first = row[0].partition(",")[0].strip("`")
        assert first in usage or "[options]" in usage


def test_every_exit_status_is_told() -> None:
    told = [int(row[0]) for row in rows(section(PAGE, "Exit status"))]
    assert told == sorted({value for name, value in vars(cli).items() if name.startswith("STATUS_")})
