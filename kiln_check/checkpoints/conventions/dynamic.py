"""`dynamic` of GPTQModel's configs: settings of some modules, by regular expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.conventions.configs import object_of
from kiln_check.checkpoints.conventions.patterns import matches_expression
from kiln_check.constants import MOST_PATTERNS


class Dynamic(NamedTuple):
    """What `dynamic` says of a module.

    Attributes:
        settings: of its own; none where no expression names it.
        excluded: the expression that leaves the module as it is.
        is_doubtful: whether an expression that can't be told might name it.

    """

    settings: Mapping[str, Any] = {}
    excluded: str | None = None
    is_doubtful: bool = False


def dynamic_of(dynamic: Mapping[str, Any], module: str) -> Dynamic:
    """The settings of the first expression that matches a module; "-:" before one leaves it as it is."""
    for number, (pattern, own) in enumerate(dynamic.items()):
        sign, expression = (pattern[:2], pattern[2:]) if pattern[:2] in ("+:", "-:") else ("", pattern)
        found = matches_expression(expression, module)
        if found is None or number == MOST_PATTERNS:
            return Dynamic(is_doubtful=True)
        if found:
            return Dynamic(excluded=pattern) if sign == "-:" else Dynamic(object_of(own))
    return Dynamic()
