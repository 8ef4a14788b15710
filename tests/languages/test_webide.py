"""The Kaitai Web IDE shows every file: what it does with the .ksy is done in Node over the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.languages.corpus_cases import SOUND
from tests.languages.layout_page import expected
from tests.languages.toolchains import HERE, ROOT, npm_folder, or_skip, run_lines

LAZY = ("encodedName", "outer", "payload", "scale")

BYTE_ORDER_MARK = "\ufeff"
"""What the decoder of browsers and of Node drops at the beginning of a text."""

MEMORY = "--max-old-space-size=512"
"""MiB; a walk that never ends fails soon."""


@pytest.fixture(scope="session")
def walks(files: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """What tests/languages/webide/walk.mjs says of each file."""
    compiler = or_skip(lambda: npm_folder(ROOT / "tools")).parent
    runtime = or_skip(lambda: npm_folder(HERE / "javascript")).parent
    walk = ["node", MEMORY, str(HERE / "webide" / "walk.mjs"), str(compiler), str(runtime)]
    lines = run_lines([*walk, str(ROOT / "ksy" / "kiln_v2.ksy"), *map(str, files.values())], {})
    return {line["file"]: line for line in lines}


def test_every_file_is_walked(walks: dict[str, dict[str, Any]], files: dict[str, Path]) -> None:
    assert walks.keys() == files.keys()
    assert SOUND


def test_the_parse_fails_only_where_the_file_stops_it(
    walks: dict[str, dict[str, Any]], files: dict[str, Path]
) -> None:
    for name, walk in walks.items():
        stopped = expected(files[name].read_bytes())["stopped"]
        wanted = stopped and {"validation": "ValidationNotEqualError", "end": "EOFError"}[stopped["error"]]
        assert walk["error"] == wanted, name


def test_no_instance_fails_beyond_a_descriptor_cut_short(
    walks: dict[str, dict[str, Any]], files: dict[str, Path]
) -> None:
    for name, walk in walks.items():
        stopped = expected(files[name].read_bytes())["stopped"] or {}
        cut = f"descriptors/{stopped['index']}/" if stopped.get("part") == "descriptors" else None
        failures = [path for path in walk["failures"] if cut is None or not path.startswith(cut)]
        assert failures == [], name


def test_no_walk_runs_out_of_stack(walks: dict[str, dict[str, Any]]) -> None:
    for name, walk in walks.items():
        assert walk["overflow"] == {"lazy": False, "clicked": False, "eager": False}, name


@pytest.mark.parametrize("name", SOUND)
def test_every_byte_of_the_head_is_in_one_field_and_coloured(
    name: str, walks: dict[str, dict[str, Any]], files: dict[str, Path]
) -> None:
    header = expected(files[name].read_bytes())["header"]
    head = 64 + 128 * header["num_tensors"] + int(header["len_names"])
    assert walks[name]["head"] == {"covered": head, "coloured": head, "bytes": head}


def test_what_was_read_is_coloured_in_a_broken_file(walks: dict[str, dict[str, Any]]) -> None:
    for name, walk in walks.items():
        if walk["error"] is None:
            assert walk["head"]["covered"] == walk["head"]["coloured"] == walk["head"]["bytes"], name


def test_rows_read_like_a_sentence(walks: dict[str, dict[str, Any]], files: dict[str, Path]) -> None:
    for name in SOUND:
        dump = expected(files[name].read_bytes())
        assert walks[name]["label"] == f"version 2, {dump['header']['num_tensors']} tensors"
        if any(int(one["element_count"]) >= 2**53 for one in dump["descriptors"]):
            continue  # a JavaScript number is not exact there
        assert walks[name]["rows"] == [
            f"{one['name'].removeprefix(BYTE_ORDER_MARK)}: {one['dtype_name']}, rank {one['rank']}, "
            f"{one['element_count']} elements, scheme {one['scheme']}"
            for one in dump["descriptors"]
        ]


def test_links_and_names_and_payloads_wait_for_a_click(walks: dict[str, dict[str, Any]]) -> None:
    for name in SOUND:
        rows = range(len(walks[name]["rows"]))
        lazy = [f"descriptors/{row}/{key}" for row in rows for key in LAZY]
        assert sorted(walks[name]["clicks"]) == sorted(lazy), name
