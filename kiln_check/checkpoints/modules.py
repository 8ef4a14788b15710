"""The tensors of a checkpoint by the modules that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kiln_check.checkpoints.formats.header import SourceTensor


class Module(NamedTuple):
    """A module of a model, such as a linear layer.

    Attributes:
        name: what the names of its tensors have in common.
        tensors: by what their names have besides: ".weight", ".weight_scale", or "" where a tensor's name is
            the module's.

    """

    name: str
    tensors: dict[str, SourceTensor]


class Suffixes:
    """Parts a tensor's name into the module's and the longest of some suffixes."""

    def __init__(self, suffixes: Iterable[str]) -> None:
        """Take all suffixes that are known, such as ".weight_scale" and "_scale"."""
        by_leaf: dict[str, list[str]] = {}
        self._within = []
        for suffix in sorted(suffixes, key=len, reverse=True):
            if suffix.startswith("."):
                by_leaf.setdefault(suffix.rpartition(".")[2], []).append(suffix)
            elif suffix:
                self._within.append(suffix)
        self._by_leaf = by_leaf
        self._leaves: dict[str, str] = {}

    def length_after(self, leaf: str) -> int | None:
        """Length of the suffix of names whose part after the last dot is `leaf`; None where it takes more."""
        dotted = self._by_leaf.get(leaf)
        if dotted is None:
            return len(self.parted(f".{leaf}")[1])
        return len(dotted[0]) if len(dotted) == 1 and dotted[0] == f".{leaf}" else None

    def parted(self, name: str) -> tuple[str, str]:
        """The module's name, and the suffix; "" where the name ends with none."""
        leaf = name[name.rfind(".") + 1 :]
        dotted = self._by_leaf.get(leaf)
        if dotted is not None and len(leaf) < len(name):
            for suffix in dotted:
                if name.endswith(suffix):
                    return name[: -len(suffix)], suffix
        within = self._leaves.get(leaf)
        if within is None:
            within = next((one for one in self._within if leaf.endswith(one) and leaf != one), "")
            self._leaves[leaf] = within
        return name[: len(name) - len(within)], within


def modules_of(tensors: Mapping[str, SourceTensor], suffixes: Suffixes) -> dict[str, Module]:
    """The modules of a checkpoint by name, in the order in which they appear."""
    found: dict[str, Module] = {}
    for name, tensor in tensors.items():
        stem, suffix = suffixes.parted(name)
        module = found.get(stem)
        if module is None:
            found[stem] = Module(stem, {suffix: tensor})
        else:
            module.tensors[suffix] = tensor
    return found
