"""Names of modules as configs write them: exact, as parts, with `*`, or as regular expressions.

A config's expression is never given to a backtracking engine. It is followed here with the set of places
that a match may have reached, so that the time is at most its length times the name's, for each step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from kiln_check.constants import LONGEST_PATTERN, MOST_PATTERNS

Step: TypeAlias = "Callable[[str, frozenset[int]], frozenset[int]]"
"""Takes a name and the places that are reached; gives those that are reached next."""


class UnknownPatternError(ValueError):
    """An expression with a part that is not followed here."""


def matches_expression(pattern: str, name: str, whole: bool = False) -> bool | None:
    """Whether a regular expression matches a name from its start; None where it can't be told.

    Args:
        pattern: as Python's `re` takes it.
        name: of a module.
        whole: whether the match must reach the name's end.

    """
    step = _compiled(pattern)
    if step is None:
        return None
    ends = step(name, frozenset((0,)))
    return len(name) in ends if whole else bool(ends)


def finds_expression(pattern: str, name: str) -> bool | None:
    """Whether a regular expression matches anywhere in a name; None where it can't be told."""
    step = _compiled(pattern)
    return None if step is None else bool(step(name, frozenset(range(len(name) + 1))))


def matches_glob(pattern: str, name: str) -> bool:
    """Whether a pattern, in which `*` stands for any text, is the whole name."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == name
    last = others.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in others:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def first_of(
    patterns: Iterable[str], name: str, matches: Callable[[str, str], bool | None]
) -> tuple[str | None, bool]:
    """The first pattern that matches a name, and whether one that can't be told might.

    Args:
        patterns: of a config; more than MOST_PATTERNS are not tried, and might match.
        name: of a module.
        matches: tells whether a pattern matches.

    """
    doubtful = False
    for number, pattern in enumerate(patterns):
        if number == MOST_PATTERNS:
            return None, True
        found = matches(pattern, name)
        if found:
            return pattern, False
        doubtful = doubtful or found is None
    return None, doubtful


@lru_cache(256)
def _compiled(pattern: str) -> Step | None:
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        step, rest = _alternatives(tuple(_tokens(pattern)))
    except (UnknownPatternError, RecursionError):
        return None
    return None if rest else step


_TOKEN = re.compile(
    r"(?P<group>\((?:\?:)?)|(?P<end>\))|(?P<or>\|)|(?P<times>[*+?])\??|(?P<any>\.)|(?P<place>[\^$])"
    r"|(?P<set>\[\^?\]?[^\[\]\\]*\])|\\(?P<kind>[dw])|\\(?P<escaped>[^a-zA-Z0-9])|(?P<plain>[^\\{}\[\]()])"
)


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None or found.lastgroup is None:
            raise UnknownPatternError(pattern)
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


Tokens: TypeAlias = "tuple[tuple[str, str], ...]"


def _alternatives(tokens: Tokens) -> tuple[Step, Tokens]:
    branches = []
    while True:
        branch, tokens = _sequence(tokens)
        branches.append(branch)
        if not tokens or tokens[0][0] != "or":
            return _any_of(branches), tokens
        tokens = tokens[1:]


def _sequence(tokens: Tokens) -> tuple[Step, Tokens]:
    steps: list[Step] = []
    while tokens and tokens[0][0] not in ("or", "end"):
        kind, text = tokens[0]
        if kind == "group":
            step, tokens = _alternatives(tokens[1:])
            if not tokens or tokens[0][0] != "end":
                raise UnknownPatternError("a group without its end")
        elif kind == "times":
            if not steps:
                raise UnknownPatternError("a repetition of nothing")
            step = _repeated(steps.pop(), text)
        else:
            step = _single(kind, text)
        steps.append(step)
        tokens = tokens[1:]
    return _all_of(steps), tokens


def _single(kind: str, text: str) -> Step:
    if kind == "place":
        return _at_start if text == "^" else _at_end
    if kind == "any":
        return _one(lambda _: True)
    if kind == "kind":
        return _one(str.isdigit if text == "d" else lambda sign: sign.isalnum() or sign == "_")
    if kind == "set":
        return _one(_member_of(text[1:-1]))
    return _one(lambda sign: sign == text)


def _member_of(text: str) -> Callable[[str], bool]:
    negated = text.startswith("^")
    text = text.removeprefix("^")
    ranges = []
    while text:
        if len(text) > 2 and text[1] == "-":
            ranges.append((text[0], text[2]))
            text = text[3:]
        else:
            ranges.append((text[0], text[0]))
            text = text[1:]
    return lambda sign: any(low <= sign <= high for low, high in ranges) != negated


def _one(accepts: Callable[[str], bool]) -> Step:
    return lambda name, places: frozenset(
        place + 1 for place in places if place < len(name) and accepts(name[place])
    )


def _at_start(_name: str, places: frozenset[int]) -> frozenset[int]:
    return places & {0}


def _at_end(name: str, places: frozenset[int]) -> frozenset[int]:
    return places & {len(name)}


def _all_of(steps: Sequence[Step]) -> Step:
    def follow(name: str, places: frozenset[int]) -> frozenset[int]:
        for step in steps:
            if not places:
                break
            places = step(name, places)
        return places

    return follow


def _any_of(branches: Sequence[Step]) -> Step:
    if len(branches) == 1:
        return branches[0]
    return lambda name, places: frozenset().union(*(branch(name, places) for branch in branches))


def _repeated(step: Step, times: str) -> Step:
    def follow(name: str, places: frozenset[int]) -> frozenset[int]:
        reached = frozenset[int]() if times == "+" else places
        new = step(name, places)
        while not new <= reached:
            reached |= new
            if times == "?":
                break
            new = step(name, new)
        return reached

    return follow
