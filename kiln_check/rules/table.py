"""The rules as data, in verdict order (layout page, section "Rules")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kiln_check.rules import container, quantization
from kiln_check.rules.fault import Fault

DIRECTORY = "directory whole"
"""A need: magic and version hold, and header, directory and names are all there."""


class Rule(NamedTuple):
    """One rule.

    Attributes:
        name: what findings call it.
        status: the verdict that it gives.
        field: the field that a finding points at, by its name in the .ksy.
        judge: takes a View and the index of a tensor, or None for the file; gives a
            Fault or None.
        needs: rules that must hold for the same tensor, or DIRECTORY.
        of_scale: rules that must hold for the tensor's scale.
        of_outer: rules that must hold for the tensor's outer scale.
        for_file: whether it is judged for the file as a whole.
        for_tensor: whether it is judged for each tensor.

    """

    name: str
    status: str
    field: str
    judge: Callable[[Any, Any], Fault | None]
    needs: frozenset[str]
    of_scale: tuple[str, ...] = ()
    of_outer: tuple[str, ...] = ()
    for_file: bool = False
    for_tensor: bool = True


def _of_file(
    name: str, status: str, field: str, judge: Callable[[Any, Any], Fault | None], *needs: str
) -> Rule:
    return Rule(name, status, field, judge, frozenset(needs), for_file=True, for_tensor=False)


def _of_tensor(
    name: str,
    status: str,
    field: str,
    judge: Callable[[Any, Any], Fault | None],
    *needs: str,
    of_scale: tuple[str, ...] = (),
    of_outer: tuple[str, ...] = (),
) -> Rule:
    return Rule(name, status, field, judge, frozenset(needs), of_scale, of_outer)


_COUNTED = ("rank", "shape-tail")

RULES: tuple[Rule, ...] = (
    _of_file("magic", "MAGIC", "magic", container.magic),
    _of_file("version", "VERSION", "version", container.version, "magic"),
    _of_file("file-length", "LENGTH", "len_file", container.file_length, "magic", "version"),
    Rule("reserved", "TYPE", "reserved1", container.reserved, frozenset({DIRECTORY}), for_file=True),
    _of_tensor("name-range", "NAME", "ofs_name", container.name_range, DIRECTORY),
    _of_tensor("name-text", "NAME", "ofs_name", container.name_text, "name-range"),
    _of_tensor("name-unique", "NAME", "ofs_name", container.name_unique, "name-text"),
    _of_tensor("dtype", "TYPE", "dtype", container.dtype, DIRECTORY),
    _of_tensor("rank", "TYPE", "rank", container.rank, DIRECTORY),
    _of_tensor("shape-tail", "TYPE", "shape", container.shape_tail, "rank"),
    _of_tensor("foreign-block", "TYPE", "block_elements", container.foreign_block, "dtype", *_COUNTED),
    _of_tensor(
        "data-length", "LENGTH", "len_data", container.data_length, "dtype", *_COUNTED, "foreign-block"
    ),
    _of_tensor("data-align", "ALIGN", "ofs_data", container.data_align, DIRECTORY),
    _of_tensor("data-range", "LENGTH", "ofs_data", container.data_range, DIRECTORY),
    _of_tensor("data-overlap", "OVERLAP", "ofs_data", container.data_overlap, "data-range"),
    _of_tensor("scheme", "TYPE", "scheme", quantization.scheme, DIRECTORY),
    _of_tensor("scheme-none", "TYPE", "group_size", quantization.scheme_none, "scheme"),
    _of_tensor("quant-rank", "TYPE", "rank", quantization.quant_rank, "scheme", "rank"),
    _of_tensor("quant-axis", "TYPE", "quant_axis", quantization.quant_axis, "scheme", "rank", "quant-rank"),
    _of_tensor("group-size", "TYPE", "group_size", quantization.group_size, "scheme"),
    _of_tensor("scale-index", "TYPE", "scale_index", quantization.scale_index, "scheme"),
    _of_tensor("scale-self", "TYPE", "scale_index", quantization.scale_self, "scale-index"),
    _of_tensor("scale-chain", "TYPE", "scale_index", quantization.scale_chain, "scale-self"),
    _of_tensor(
        "scale-count",
        "TYPE",
        "scale_index",
        quantization.scale_count,
        *_COUNTED,
        "quant-axis",
        "group-size",
        "scale-chain",
        of_scale=_COUNTED,
    ),
    _of_tensor("outer-absent", "TYPE", "outer_index", quantization.outer_absent, "scheme"),
    _of_tensor("outer-index", "TYPE", "outer_index", quantization.outer_index, "scheme"),
    _of_tensor("outer-distinct", "TYPE", "outer_index", quantization.outer_distinct, "outer-index"),
    _of_tensor("outer-chain", "TYPE", "outer_index", quantization.outer_chain, "outer-distinct"),
    _of_tensor("outer-dtype", "TYPE", "outer_index", quantization.outer_dtype, "outer-distinct"),
    _of_tensor(
        "outer-count", "TYPE", "outer_index", quantization.outer_count, "outer-distinct", of_outer=_COUNTED
    ),
)

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in RULES}
