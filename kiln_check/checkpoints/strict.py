"""A report in which warnings count, and weights that could not be held to any template."""

from __future__ import annotations

from kiln_check.checkpoints.checkpoint_rules import ORDER, finding
from kiln_check.report import OK, Finding, Report, Weight
from kiln_check.text import quote


def strict(report: Report) -> Report:
    """The report on a checkpoint for those who want all of it verified.

    Warnings become errors, and each unverified weight is a finding of the rule not-verified. A report on
    what can't be read stays as it is.
    """
    if report.error is not None:
        return report
    findings = [one._replace(level="error") for one in report.findings]
    findings += (_not_verified(report, weight)._replace(level="error") for weight in report.unverified)
    findings.sort(key=_order)
    verdict = findings[0].status if findings else OK
    return report._replace(verdict=verdict, findings=tuple(findings))


def _not_verified(report: Report, weight: Weight) -> Finding:
    message = f"the weight {quote(weight.name)} could not be held to any template: {weight.reason}"
    return finding("not-verified", message, report.path, name=weight.name)


def _order(found: Finding) -> tuple[bool, int]:
    """Rules on checkpoints come first, in their order, and then those of the layout page as they are."""
    return found.rule not in ORDER, ORDER.get(found.rule, 0)
