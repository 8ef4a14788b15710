"""The rules in verdict order (layout page, section "Rules"): that in which they are declared."""

from __future__ import annotations

from kiln_check.rules import container, quantization
from kiln_check.rules.rule import Rule

RULES: tuple[type[Rule], ...] = tuple(
    declared
    for module in (container, quantization)
    for declared in vars(module).values()
    if isinstance(declared, type) and issubclass(declared, Rule) and declared is not Rule
)

BY_NAME: dict[str, type[Rule]] = {rule.name: rule for rule in RULES}
