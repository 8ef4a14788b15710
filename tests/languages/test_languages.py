"""The generated parsers see the same thing in every file, and what the layout page says is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.languages.layout_page import Dump, expected
from tests.languages.toolchains import LANGUAGES, dumps

EXACT_IN_JAVASCRIPT = 2**53
SIGNED_IN_JAVA = 2**63
WRAPS = 2**64


@pytest.fixture(scope="session")
def python(files: dict[str, Path]) -> dict[str, Dump]:
    return dumps("python", list(files.values()))


@pytest.fixture(scope="session", params=[language for language in LANGUAGES if language != "python"])
def other(request: pytest.FixtureRequest, files: dict[str, Path]) -> tuple[str, dict[str, Dump]]:
    return request.param, dumps(request.param, list(files.values()))


def test_python_sees_what_the_page_says(python: dict[str, Dump], files: dict[str, Path]) -> None:
    assert python.keys() == files.keys()
    wrong = {name: difference(python[name], expected(path.read_bytes())) for name, path in files.items()}
    assert {name: text for name, text in wrong.items() if text} == {}


def test_sees_what_python_sees(other: tuple[str, dict[str, Dump]], python: dict[str, Dump]) -> None:
    language, seen = other
    assert seen.keys() == python.keys()
    wrong = {name: difference(seen[name], within(language, python[name])) for name in python}
    assert {name: text for name, text in wrong.items() if text} == {}


def test_the_parse_stops_in_every_part(python: dict[str, Dump]) -> None:
    stops = [dump["stopped"] for dump in python.values() if dump["stopped"]]
    assert {(stop["part"], stop["error"]) for stop in stops} == {
        ("header", "validation"),
        ("header", "end"),
        ("descriptors", "end"),
        ("names", "end"),
    }


def within(language: str, dump: Dump) -> Dump:
    """Return Python's dump with the derived integers as a language can hold them.

    Fields are exact in every language. What is worked out from them wraps at 2^64 in Go and Java,
    where a quotient of a dimension from 2^63 on is wrong in Java, and is not exact from 2^53 on in
    JavaScript; the readers give null for the last two. JavaScript's decoder drops a byte order mark.
    """
    descriptors = dump["descriptors"] and [_within(language, one) for one in dump["descriptors"]]
    return dump | {"descriptors": descriptors}


def _within(language: str, one: Dump) -> Dump:
    held = dict(one)
    axis = int(one["shape"][one["quant_axis"]]) if one["has_groups"] else 0
    for name in ("element_count", "num_groups", "num_scales"):
        if one[name] is None:
            continue
        value = int(one[name])
        is_quotient = name != "element_count"
        if language == "javascript":
            is_exact = value < EXACT_IN_JAVASCRIPT and not (is_quotient and axis >= EXACT_IN_JAVASCRIPT)
            held[name] = str(value) if is_exact else None
        elif language == "java" and is_quotient and axis >= SIGNED_IN_JAVA:
            held[name] = None
        else:
            held[name] = str(value % WRAPS)
    if language == "javascript" and one["name"] is not None:
        held["name"] = one["name"].removeprefix("\ufeff")
    return held


def difference(got: Any, wanted: Any, where: str = "") -> str:
    """Return the first place where two dumps differ, empty if they don't."""
    if isinstance(got, dict) and isinstance(wanted, dict) and got.keys() == wanted.keys():
        pairs = [(got[key], wanted[key], f"{where}.{key}") for key in wanted]
    elif isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        pairs = [(got[i], wanted[i], f"{where}[{i}]") for i in range(len(wanted))]
    else:
        same = got == wanted and type(got) is type(wanted)
        return "" if same else f"{where}: {str(got)[:200]}, not {str(wanted)[:200]}"
    return next(filter(None, (difference(*pair) for pair in pairs)), "")
