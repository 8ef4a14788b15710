"""Experts whose weights lie one by one while one scale covers them all.

`experts.0.down_proj.weight`, `experts.1.down_proj.weight` … with one `experts.down_proj_scale_inv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.engine import Parameters
from kiln_check.checkpoints.conventions.registry import weight_suffixes
from kiln_check.checkpoints.conventions.template import Tool
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.modules import Module

WEIGHT = ".weight"
PACKED = ("F8_E4M3", "F8_E5M2", "I8", "U8", "F4")
"""Dtypes of experts that share a scale."""

_NUMBER = re.compile(r"\d+")


class Spread(NamedTuple):
    """Experts of a checkpoint that share a scale.

    Attributes:
        covered: names of the modules of single experts.
        modules: by the name that the shared scale has: the scale, and the first expert's weight under "".
        parameters: by that name: `E` experts, `m` parts that lie one above the other, and `spread`.

    """

    covered: frozenset[str]
    modules: Mapping[str, Module]
    parameters: Mapping[str, Parameters]


def spread_modules(modules: Mapping[str, Module], tools: Iterable[Tool]) -> Spread:
    """Find the scales without a weight of their own name, and the experts' weights that they cover."""
    parts_of = {name: parts for tool in tools for name, parts in tool.spread.items()}
    shared = [
        module
        for name, module in modules.items()
        if name.rpartition(".")[2] in parts_of and module.tensors.keys().isdisjoint(weight_suffixes())
    ]
    folders = {module.name.rpartition(".")[0] for module in shared}
    experts = _experts(modules) if shared else {}
    shared += _lost(experts, folders, parts_of, modules)
    covered: set[str] = set()
    found: dict[str, Module] = {}
    parameters: dict[str, Parameters] = {}
    for module in shared:
        folder, _, leaf = module.name.rpartition(".")
        parts = [part for part in parts_of[leaf] if (folder, part) in experts]
        weights = [one for part in parts for one in experts[folder, part]]
        if not weights:
            continue
        first = weights[0].tensors[WEIGHT]
        alike = [one for one in weights if _is_like(one.tensors[WEIGHT], first)]
        covered.update(one.name for one in alike)
        found[module.name] = Module(module.name, {"": first, **module.tensors})
        count = len({one.name.removeprefix(folder).split(".")[1] for one in alike})
        parameters[module.name] = {"spread": True, "E": count, "m": len(parts)}
    return Spread(frozenset(covered), found, parameters)


def _lost(
    experts: Mapping[tuple[str, str], list[Module]],
    folders: set[str],
    parts_of: Mapping[str, tuple[str, ...]],
    modules: Mapping[str, Module],
) -> list[Module]:
    """Modules without a tensor, for scales that packed experts lack and others of the checkpoint have."""
    alike = {_NUMBER.sub("#", folder) for folder in folders}
    found = {}
    for (folder, part), weights in experts.items():
        leaf = next((leaf for leaf, parts in parts_of.items() if part in parts), None)
        is_packed = weights[0].tensors[WEIGHT].source_dtype in PACKED
        if leaf is not None and is_packed and _NUMBER.sub("#", folder) in alike:
            name = f"{folder}.{leaf}"
            if name not in modules:
                found[name] = Module(name, {})
    return list(found.values())


def _experts(modules: Mapping[str, Module]) -> dict[tuple[str, str], list[Module]]:
    """Modules of nothing but a weight, `<folder>.<number>.<part>`, by folder and part."""
    found: dict[tuple[str, str], list[Module]] = {}
    for module in modules.values():
        rest, _, part = module.name.rpartition(".")
        folder, _, number = rest.rpartition(".")
        if number.isdecimal() and set(module.tensors) == {WEIGHT}:
            found.setdefault((folder, part), []).append(module)
    return found


def _is_like(one: SourceTensor, other: SourceTensor) -> bool:
    return (one.source_dtype, one.shape) == (other.source_dtype, other.shape)
