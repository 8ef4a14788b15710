#!/usr/bin/env python3
"""Make docs/reference/templates.md: what each tool stores for a module, and what Kiln holds of it.

    tools/write_templates.py            write the page
    tools/write_templates.py --check    write nothing; exit 1 if the page is out of date

The page comes from the templates in kiln_check/checkpoints/conventions.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import kiln_check.checkpoints.conventions as conventions  # noqa: E402
from kiln_check.checkpoints.conventions.shapes import Value, parse  # noqa: E402
from kiln_check.checkpoints.conventions.template import FLOATS, OPTIONAL, Hold, Slot, Template, Tool  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "templates.md"

HEAD = """\
<!-- tools/write_templates.py makes this page: change kiln_check/checkpoints/conventions instead. -->

# What each tool stores

For a module `X` a format has these tensors. The weight comes first, and formats that have the same tensors
beside it share the rows after it. N and K are the rows and columns of the weight in elements, `*E` is any
number of leading dimensions, b the bits of an element, g the elements that share a scale. `ceil(x)` rounds
up; `up(x, m)` is the least multiple of m that is not less than x. A dtype called float is F16, BF16 or F32.
Any module may have a bias and a scale of its input besides.

A tensor is there always, unless the table says when. A name after *if* or *unless* is a parameter: a config
gives it, or the payload of a small tensor. In parentheses are the parameters that tell a format from others
of its name, and the usual sizes, which are tried where nothing says the size. Groups run along the last axis,
unless the table names another.

[How a checkpoint is judged](../explanation/checkpoints.md) tells how a template is chosen, and what follows
where a module does not fit.
"""

COLUMNS = ("format", "tensor", "dtype", "shape", "when", "in Kiln")


def everything() -> str:
    """The text of the page."""
    return HEAD + "".join(_section(tool, about) for tool, about in _described())


def _described() -> Iterator[tuple[Tool, str]]:
    """Each tool with the docstring of its module."""
    for name in sorted(info.name for info in pkgutil.iter_modules(conventions.__path__)):
        module = importlib.import_module(f"{conventions.__name__}.{name}")
        if hasattr(module, "TOOL"):
            yield module.TOOL, module.__doc__ or ""


def _section(tool: Tool, about: str) -> str:
    lines = [f"\n## {tool.name}\n", f"{about.strip()}\n", _row(COLUMNS), _row(["---"] * len(COLUMNS))]
    families: dict[tuple[Slot, ...], list[Template]] = {}
    for template in tool.templates:
        families.setdefault(template.slots[1:], []).append(template)
    for others, templates in families.items():
        lines += _weight_rows(templates)
        lines += [_row(("", *_tensor(slot), "")) for slot in others]
    return "\n".join(lines) + "\n"


def _weight_rows(templates: Iterable[Template]) -> list[str]:
    """A row for each weight; formats that differ in nothing else share one."""
    formats: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for template in templates:
        key = _tensor(template.slots[0]), _in_kiln(template.holds)
        formats.setdefault(key, []).append(template.format + _qualified(template))
    return [_row(("; ".join(names), *weight, held)) for (weight, held), names in formats.items()]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _tensor(slot: Slot) -> tuple[str, ...]:
    """Name, dtypes, shape and condition of a tensor."""
    shapes = " or ".join(f"`{shape.text}`" for shape in parse(slot.shape))
    return f"`X{slot.suffix}`", _dtypes(slot.dtypes), shapes, _condition(slot.when)


def _dtypes(dtypes: str) -> str:
    return " or ".join(dtypes.replace(FLOATS, "float").split())


def _condition(when: str) -> str:
    if not when:
        return ""
    if when == OPTIONAL:
        return "optional"
    return f"unless `{when.removeprefix('not ')}`" if when.startswith("not ") else f"if `{when}`"


def _qualified(template: Template) -> str:
    """What tells the template from others of its format, and its usual sizes."""
    told = {name: value for name, value in template.only.items() if name != template.format.split(",")[0]}
    parts = [*map(_told, told.items()), *_sizes(template.options)]
    return f" ({', '.join(parts)})" if parts else ""


def _told(parameter: tuple[str, Value | bool]) -> str:
    name, value = parameter
    if isinstance(value, bool):
        return f"`{name}`" if value else f"not `{name}`"
    return f"`{name}` = {value}"


def _sizes(options: Mapping[str, Sequence[Value]]) -> Iterator[str]:
    for name, values in options.items():
        yield f"{name} = {' or '.join(map(str, values))}"


def _in_kiln(holds: Hold | str) -> str:
    if isinstance(holds, str):
        return f"not linked: {holds}"
    axis = "" if holds.axis == -1 else f" along axis {holds.axis}"
    text = f"{holds.dtype} `{holds.shape}`, groups of {holds.group}{axis}, scale `X{holds.scale}`"
    if holds.scale_dtype is not None:
        text += f" as {holds.scale_dtype}"
    if holds.outer is not None:
        text += f", outer scale `X{holds.outer}`"
    return text + "".join(f"; with `X{suffix}` not linked: {reason}" for suffix, reason in holds.unless)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make docs/reference/templates.md from the templates.")
    parser.add_argument(
        "--check", action="store_true", help="say whether the page is out of date, and write nothing"
    )
    options = parser.parse_args(arguments)
    name = PAGE.relative_to(ROOT).as_posix()
    wanted = everything()
    try:
        if options.check:
            found = PAGE.read_text("utf-8") if PAGE.exists() else None
            print(f"{name} is up to date" if found == wanted else f"{name}: out of date")
            return int(found != wanted)
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(wanted, "utf-8", newline="\n")
    except OSError as error:
        print(f"write_templates.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
