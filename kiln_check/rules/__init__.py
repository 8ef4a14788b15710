"""The rules of the layout page, and the judge that applies them.

Those about the container stand in `container`, those about scales in `quantization`.
`rule` says what a declaration holds, and `table` lists them in verdict order.
"""

from kiln_check.report import Finding
from kiln_check.rules.judge import judge
from kiln_check.rules.rule import Rule
from kiln_check.rules.table import RULES

__all__ = ["RULES", "Finding", "Rule", "judge"]
