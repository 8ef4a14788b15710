"""The rules for people, from their declarations."""

from __future__ import annotations

from inspect import cleandoc

from kiln_check.generated.kiln_v2_records import PAGE_NAMES
from kiln_check.rules import RULES, Rule


def listing() -> str:
    """All rules in verdict order, a line each: those on checkpoints, then the layout page's."""
    from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES

    width = max(len(name) for name in (*(rule.name for rule in RULES), *CHECKPOINT_RULES))
    own = [
        f"    {rule.name:{width}}  {rule.status:8}  {_first_line(rule.about)}"
        for rule in CHECKPOINT_RULES.values()
    ]
    page = [
        f"{number:2}  {rule.name:{width}}  {rule.status:8}  {_first_line(_docstring(rule))}"
        for number, rule in enumerate(RULES, 1)
    ]
    return "\n".join([*page, "", "On checkpoints of other formats, before these:", *own])


def explanation(name: str) -> str | None:
    """What one rule wants, why, how to mend a file, and the case that pins it; None if there is none.

    Args:
        name: a rule's name, or its number on the layout page.

    """
    for number, rule in enumerate(RULES, 1):
        if name in (rule.name, str(number)):
            facts = [
                f"rule    {number}, in verdict order",
                f"status  {rule.status}",
                f"field   {PAGE_NAMES.get(rule.field, rule.field)}",
                f"needs   {', '.join(_needs(rule)) or 'nothing'}",
                f"case    kiln-v2-{rule.name}",
            ]
            return "\n".join([rule.name, "", _docstring(rule), "", *facts])
    from kiln_check.checkpoints.checkpoint_rules import explanation as explanation_of_own

    return explanation_of_own(name)


def nearest(name: str) -> str | None:
    """The rule whose name is most like one that there is not; None where none is like it."""
    from difflib import get_close_matches

    from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES

    found = get_close_matches(name, [*(rule.name for rule in RULES), *CHECKPOINT_RULES], 1)
    return found[0] if found else None


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _docstring(rule: type[Rule]) -> str:
    return cleandoc(rule.__doc__ or "(Python was started with -OO, which leaves the explanations out.)")


def _needs(rule: type[Rule]) -> list[str]:
    own = [other.name for other in RULES if other.name in rule.needs]
    whole = sorted(need for need in rule.needs if need not in own)
    linked = [f"{name} of the scale" for name in rule.of_scale] + [
        f"{name} of the outer" for name in rule.of_outer
    ]
    return whole + own + linked
