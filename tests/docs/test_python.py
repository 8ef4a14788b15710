"""The page on Python has every public name, with its arguments, fields and members."""

from __future__ import annotations

import inspect
import re

import pytest

import kiln_check
from tests.docs.pages import DOCS, blocks, rows, section

PAGE = (DOCS / "reference" / "python.md").read_text("utf-8")

FUNCTIONS = [name for name in kiln_check.__all__ if inspect.isfunction(getattr(kiln_check, name))]
CLASSES = [name for name in kiln_check.__all__ if inspect.isclass(getattr(kiln_check, name))]


def signature_without_types(name: str) -> str:
    """The signature of a function as the page has it: only what it returns has a type."""
    signature = inspect.signature(getattr(kiln_check, name))
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    parameters = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return f"{name}{parameters} -> {signature.return_annotation}"


def members_of(class_: type) -> list[str]:
    """Fields of a named tuple; else the attributes that the docstring has, and what the class defines."""
    if issubclass(class_, tuple):
        return [*class_._fields]  # type: ignore[attr-defined]
    attributes = re.findall(r"^ {4}(\w+): ", inspect.cleandoc(class_.__doc__ or ""), re.MULTILINE)
    return [*attributes, *(name for name in vars(class_) if not name.startswith("_"))]


def test_every_name_has_a_section_and_a_row() -> None:
    assert sorted(FUNCTIONS + CLASSES) == kiln_check.__all__
    assert sorted(re.findall(r"^## (.*)$", PAGE, re.MULTILINE)) == kiln_check.__all__
    told = [row[0] for row in rows(PAGE.partition("\n## ")[0])]
    assert sorted(re.findall(r"`(\w+)`", " ".join(told))) == kiln_check.__all__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_signature_that_is_told(name: str) -> None:
    first, *_ = blocks(section(PAGE, name))
    assert first.text.strip() == signature_without_types(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_a_function_is_told(name: str) -> None:
    text = section(PAGE, name)
    for parameter in inspect.signature(getattr(kiln_check, name)).parameters:
        assert f"`{parameter}`" in text or f"`{parameter}=" in text or parameter == "path"


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_of_a_class_is_told(name: str) -> None:
    class_ = getattr(kiln_check, name)
    text = section(PAGE, name)
    assert [re.findall(r"`(\w+)", row[0])[0] for row in rows(text)] == members_of(class_)
    properties = [key for key, value in vars(class_).items() if isinstance(value, property)]
    assert [one for one in properties if f"`{one}`" not in text] == []
