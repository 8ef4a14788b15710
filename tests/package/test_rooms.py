"""Modules import in one direction: down the table of rooms in CONTRIBUTING.md, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from pathlib import Path

import kiln_check
from tests.places import ROOT

PACKAGE = "kiln_check"

ROWS = [
    re.findall(r"`([^`]+)`", row)
    for row in re.findall(
        r"^\| ((?:`[\w.*]+`(?:, )?)+) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE
    )
]
"""The names and patterns of each room, in the order of the table."""

FOLDERS = {PACKAGE: ROOT / PACKAGE} | {
    name: ROOT / folder
    for name, folder in re.findall(
        r'^"(kiln_check\.\w+)" = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
}
"""The folder of each package that has one of its own, by package-dir."""


def modules() -> dict[str, Path]:
    """The file of each module, by its whole name."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


MODULES = modules()


def short(module: str) -> str:
    """A module's name as the table has it."""
    return module.removeprefix(f"{PACKAGE}.") if module != PACKAGE else "__init__"


def row_of(name: str) -> int:
    """The row that names a module, else the one with the longest pattern that fits; -1 for none."""
    fits = [
        (pattern == name, len(pattern), number)
        for number, row in enumerate(ROWS)
        for pattern in row
        if fnmatchcase(name, pattern)
    ]
    return max(fits)[-1] if fits else -1


def imports(module: str, tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports anywhere in its text, for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative name"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in [inner if inner in MODULES else node.module] if name in MODULES)


def imports_by_name(module: str) -> set[str]:
    """The modules that a module imports by a name that it puts together."""
    if module == PACKAGE:
        return {f"{PACKAGE}.{home}" for home in kiln_check._HOMES.values()}
    conventions = f"{PACKAGE}.checkpoints.conventions"
    if module == f"{conventions}.registry":
        return {name for name in MODULES if name.startswith(f"{conventions}.")} - {module}
    return set()


def graph() -> dict[str, set[str]]:
    """What each module imports."""
    found = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        puts_together = any(
            isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "import_module"
            for node in ast.walk(tree)
        )
        assert puts_together == bool(imports_by_name(module)), f"{module}: imports_by_name must know it"
        found[module] = {*imports(module, tree), *imports_by_name(module)} - {module}
    return found


GRAPH = graph()


def test_every_module_has_a_room() -> None:
    assert [short(module) for module in MODULES if row_of(short(module)) < 0] == []


def test_every_name_of_the_table_is_a_module() -> None:
    names = [short(module) for module in MODULES]
    patterns = [pattern for row in ROWS for pattern in row]
    assert len(patterns) == len(set(patterns)) > 40
    unknown = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
    assert unknown == []


def test_a_module_imports_its_own_row_and_rows_above() -> None:
    wrong = [
        f"{short(module)} imports {short(other)}"
        for module, others in GRAPH.items()
        for other in others
        if row_of(short(module)) < row_of(short(other))
    ]
    assert wrong == []


def test_no_circle() -> None:
    assert len(list(TopologicalSorter(GRAPH).static_order())) == len(MODULES)


def test_the_graph_has_lazy_imports_and_those_for_type_checkers() -> None:
    assert f"{PACKAGE}.checkpoints.importer" in GRAPH[f"{PACKAGE}.cli"]
    assert f"{PACKAGE}.report" in GRAPH[f"{PACKAGE}.errors"]
    assert f"{PACKAGE}.rules.container" in GRAPH[f"{PACKAGE}.rules.table"]
