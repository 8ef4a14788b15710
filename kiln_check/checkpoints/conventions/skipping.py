"""Modules that transformers' `modules_to_not_convert`, and lists like it, leave as they are.

Loaders, and versions of one loader, read an entry in different ways. Where they disagree on a module,
nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kiln_check.checkpoints.conventions.patterns import first_of, matches_expression
from kiln_check.checkpoints.conventions.template import Declared, Excluded


def by_skips(
    tool: str, declared: Declared, skipped: Iterable[str], module: str
) -> Declared | Excluded | None:
    """What a config with a list of modules that stay as they are says of a module, as transformers reads it.

    Its version 4 looks for an entry with a dot after it in the name; version 5 takes an entry as a regular
    expression from the start, or as the end of the name. Where they disagree nothing is said.
    """
    pattern, doubtful = first_of(skipped, module, _skips)
    if pattern is not None:
        return Excluded(tool, pattern)
    return None if doubtful else declared


def _skips(pattern: str, module: str) -> bool | None:
    if not pattern:
        return False
    if module == pattern or module.startswith(pattern + "."):
        return True
    if any(sign in pattern for sign in "*+?[](){}|^$\\"):
        return None
    ends = module.endswith(pattern)
    return None if ends or module.startswith(pattern) or pattern + "." in module else False


def excluded(tool: str, patterns: tuple[str, ...], module: str) -> tuple[Excluded | None, bool]:
    """The pattern that leaves a module out, and whether one may that loaders do not agree on.

    All loaders take a pattern as a module's name, its parent's, or the last parts of it. transformers'
    `should_convert_module` takes it besides as a regular expression from the name's start and as the name's
    last letters, and others as any part.
    """
    for pattern in patterns:
        if pattern and (
            module == pattern or module.startswith(f"{pattern}.") or module.endswith(f".{pattern}")
        ):
            return Excluded(tool, pattern), False
    loose, doubtful = first_of(patterns, module, _may_match)
    return None, doubtful or loose is not None


def _may_match(pattern: str, module: str) -> bool | None:
    return pattern in module or matches_expression(pattern.removeprefix("re:"), module)
