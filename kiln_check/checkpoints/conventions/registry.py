"""All tools: each module of this folder that has a TOOL."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import kiln_check.checkpoints.conventions as folder
from kiln_check.checkpoints.conventions.configs import quantizations, text_of
from kiln_check.checkpoints.conventions.engine import COMPANION_SLOTS
from kiln_check.checkpoints.conventions.template import Companions, Declared, Scheme, Slot, Template, Tool


@cache
def tools() -> tuple[Tool, ...]:
    """Every tool, by the name of its module."""
    names = sorted(info.name for info in pkgutil.iter_modules(folder.__path__))
    modules = [importlib.import_module(f"{folder.__name__}.{name}") for name in names]
    return tuple(module.TOOL for module in modules if hasattr(module, "TOOL"))


def schemes_of(companions: Companions) -> list[Scheme]:
    """What the tools whose configs are there say of a checkpoint."""
    found = (tool.declare(companions) for tool in tools())
    return [scheme for scheme in found if scheme is not None] or list(_unknown(companions))


class _Unknown(NamedTuple):
    """A config of a tool that no module here tells of: nothing is guessed about its modules."""

    tool: str

    def of(self, _module: str) -> Declared:
        return Declared(self.tool, "", ())


def _unknown(companions: Companions) -> Iterator[Scheme]:
    for config in quantizations(companions):
        if method := text_of(config.get("quant_method")):
            yield _Unknown(method)
            return


@cache
def suffixes() -> frozenset[str]:
    """Every suffix that a template knows."""
    slots = (slot for tool in tools() for template in tool.templates for slot in template.slots)
    return frozenset(slot.suffix for slot in (*slots, *COMPANION_SLOTS))


@cache
def marks() -> Mapping[str, Tool]:
    """The tool that a suffix tells of, by suffix."""
    return {mark: tool for tool in tools() for mark in tool.marks}


@cache
def readers() -> Mapping[str, tuple[Slot, ...]]:
    """The slots whose payloads give values, by suffix."""
    found: dict[str, dict[Slot, None]] = {}
    for tool in tools():
        for slot in (
            slot for template in tool.templates for slot in template.slots if slot.gives is not None
        ):
            found.setdefault(slot.suffix, {})[slot] = None
    return {suffix: tuple(slots) for suffix, slots in found.items()}


@cache
def bare_templates(weight: str) -> tuple[Template, ...]:
    """The templates that are tried where no config says which: those of a weight's suffix."""
    return tuple(
        template for tool in tools() for template in tool.templates if template.slots[0].suffix == weight
    )


@cache
def weight_suffixes() -> tuple[str, ...]:
    """The suffixes of weights, the longest first."""
    found = {template.slots[0].suffix for tool in tools() for template in tool.templates}
    return tuple(sorted(found, key=len, reverse=True))
