"""Which tensors belong together, and which of them are of a quantized weight; by names and dtypes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tools.breaking.folder import Checkpoint, Tensor

LOW = frozenset(
    {"F4", "F6_E2M3", "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "I16", "U16", "I32", "U32"}
)
"""Dtypes that no tensor of an unquantized layer has."""

PARTNER = re.compile(r"scale|zero|absmax|blocks|g_idx|qweight|shift")
"""What the name of a tensor has in it that stands beside a quantized weight."""

NORM = "scale"
"""By itself the name of a norm's weight."""

EXPERT = re.compile(r"\.experts\.\d+\.")


class Module(NamedTuple):
    """The tensors of one parent, by what follows its name."""

    name: str
    tensors: Mapping[str, Tensor]

    def full(self, suffix: str) -> str:
        """The name of a tensor of the module."""
        return f"{self.name}.{suffix}" if self.name else suffix


def parent_of(name: str) -> str:
    """The module that a tensor belongs to; what lies below a weight belongs to the weight's."""
    before, below, _ = name.partition(".weight.")
    return before if below else name.rpartition(".")[0]


def quantized_modules(checkpoint: Checkpoint) -> list[Module]:
    """The quantized modules, without their biases, in the order of the files.

    A module is one where it has a dtype of LOW, or where each of its tensors is a
    partner by its name, as those of a key-value cache or of fused experts are.
    """
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in checkpoint.tensors.items():
        parent = parent_of(name)
        suffix = name[len(parent) + 1 :] if parent else name
        if suffix != "bias" and not suffix.endswith("_bias"):
            found.setdefault(parent, {})[suffix] = tensor
    return [Module(name, tensors) for name, tensors in found.items() if _is_quantized(tensors)]


def _is_quantized(tensors: Mapping[str, Tensor]) -> bool:
    if any(tensor.dtype in LOW for tensor in tensors.values()):
        return True
    return all(suffix != NORM and PARTNER.search(suffix) for suffix in tensors)


def representatives(modules: Iterable[Module]) -> list[Module]:
    """One module for each set of suffixes, dtypes and ranks; of those, one with oblong tensors."""
    alike: dict[object, list[Module]] = {}
    for module in modules:
        tensors = sorted((suffix, one.dtype, len(one.shape)) for suffix, one in module.tensors.items())
        alike.setdefault((tuple(tensors), EXPERT.search(module.name) is not None), []).append(module)
    return [max(group, key=_oblong) for group in alike.values()]


def _oblong(module: Module) -> int:
    """How many of its tensors are not the same when transposed."""
    shapes = [tensor.shape for tensor in module.tensors.values()]
    return sum(len(shape) > 1 and shape[-1] != shape[-2] for shape in shapes)


def names_of(checkpoint: Checkpoint, module: Module) -> frozenset[str]:
    """The names by which a finding can tell of a module: its own, its tensors', its experts'.

    Experts that are stored one by one may have their scales fused:
    `experts.0.down_proj.weight` stands beside `experts.down_proj_scale_inv`.
    """
    fused = EXPERT.sub(".experts.", module.name + ".")[:-1]
    related = (name for name in checkpoint.tensors if fused != module.name and name.startswith(f"{fused}_"))
    own = map(module.full, module.tensors)
    return frozenset({*own, *related, *([module.name] if module.name else [])})
