"""How the reader of each language is built and run: one process a language for any number of files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GENERATED = ROOT / "generated"

LANGUAGES = ("go", "java", "javascript", "python")

REQUIRED = bool(os.environ.get("CI") or os.environ.get("KILN_REQUIRE_LANGUAGES"))
"""Whether a missing toolchain fails instead of skipping."""


class ToolchainMissingError(Exception):
    """A program or a runtime is not on this machine and can't be brought here; says which."""


def command(language: str) -> tuple[list[str], dict[str, str]]:
    """Build a reader; return the command that takes files, and what it adds to the environment."""
    return {"go": _go, "java": _java, "javascript": _javascript, "python": _python}[language]()


def dumps(language: str, files: list[Path]) -> dict[str, dict[str, Any]]:
    """Return what the parser of a language sees, by file name."""
    program, environment = or_skip(lambda: command(language))
    return {line.pop("file"): line for line in run_lines([*program, *map(str, files)], environment)}


def or_skip(build: Any) -> Any:
    """Return what `build` gives; without its toolchain skip on a user's machine, fail where required."""
    try:
        return build()
    except ToolchainMissingError as missing:
        if REQUIRED:
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def run_lines(arguments: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """Run a program that prints lines of JSON."""
    done = subprocess.run(
        arguments, env=os.environ | environment, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def npm_folder(folder: Path) -> Path:
    """Return the node_modules of a folder, installed from its lock file unless it is up to date."""
    require("node", "npm")
    installed = folder / "node_modules" / ".package-lock.json"
    wanted = json.loads((folder / "package-lock.json").read_text())["packages"]
    versions = {path: entry["version"] for path, entry in wanted.items() if path}
    if not installed.exists() or versions != {
        path: entry["version"] for path, entry in json.loads(installed.read_text())["packages"].items()
    }:
        fetch(["npm", "ci", "--no-audit", "--no-fund"], folder)
    return folder / "node_modules"


def require(*programs: str) -> None:
    """Raise ToolchainMissingError unless all of the programs are on PATH."""
    for program in programs:
        if shutil.which(program) is None:
            raise ToolchainMissingError(f"{program} was not found on PATH")


def fetch(arguments: list[str], folder: Path) -> None:
    """Run a package manager's client; raise ToolchainMissingError if it can't bring what is asked for."""
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-400:]
        raise ToolchainMissingError(f"{' '.join(arguments)} failed: {said}")


def _build(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments[0]} does not compile the parser:\n{done.stderr[-4000:]}"


def _python() -> tuple[list[str], dict[str, str]]:
    return [sys.executable, str(HERE / "python" / "dump.py")], {"PYTHONPATH": str(GENERATED / "python")}


def _javascript() -> tuple[list[str], dict[str, str]]:
    runtime = npm_folder(HERE / "javascript")
    search = os.pathsep.join([str(runtime), str(GENERATED / "javascript")])
    return ["node", str(HERE / "javascript" / "dump.cjs")], {"NODE_PATH": search}


def _java() -> tuple[list[str], dict[str, str]]:
    require("java", "javac")
    folder = HERE / "java"
    classes, libraries = folder / "build" / "classes", folder / "build" / "lib"
    if not list(libraries.glob("kaitai-struct-runtime-*.jar")):
        require("mvn")
        fetch(["mvn", "-q", "-B", "dependency:copy-dependencies"], folder)
    sources = [str(GENERATED / "java" / "kiln" / "KilnV2.java"), "Dump.java"]
    _build(["javac", "-encoding", "UTF-8", "-d", str(classes), "-cp", f"{libraries}/*", *sources], folder)
    return ["java", "-cp", os.pathsep.join([str(classes), f"{libraries}/*"]), "Dump"], {}


def _go() -> tuple[list[str], dict[str, str]]:
    require("go")
    folder = HERE / "go"
    fetch(["go", "mod", "download"], folder)
    program = folder / "build" / ("dump.exe" if os.name == "nt" else "dump")
    overlay = folder / "build" / "overlay.json"
    overlay.parent.mkdir(exist_ok=True)
    parser = {str(folder / "kiln" / "kiln_v2.go"): str(GENERATED / "go" / "kiln_v2.go")}
    overlay.write_text(json.dumps({"Replace": parser}))
    _build(["go", "build", "-overlay", str(overlay), "-o", str(program), "."], folder)
    return [str(program)], {}
