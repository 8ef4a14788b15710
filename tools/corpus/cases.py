"""What a case is, and the registry that the decorators `sound` and `broken` fill."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.corpus.layout import LEN_HEADER, RECORDS, ROOT, File, descriptor_span, header_span

PAGE = ROOT / "docs" / "kiln-v2-layout.md"

RULES: dict[str, tuple[str, str | None]] = {
    name: (status, {"the first nonzero entry": "shape"}.get(field, None if " " in field else field))
    for name, status, field in re.findall(
        r"^\| \d+ \| ([a-z-]+) \| ([A-Z]+) \| ([^|]+?) \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
}
"""Each rule's status and field, as the layout page's table has them; None where the case says which field."""

RULE_ORDER = tuple(RULES)

RETIRED: tuple[str, ...] = ()
"""Ids of cases that were withdrawn. They never come back with another meaning."""

FROM_FILE = "\0"
"""Stands for the name that the case gave to the tensor; no sound name is this."""


class CaseError(Exception):
    """A case contradicts itself or another; the text says which and how, in one line."""


@dataclass(frozen=True)
class Fault:
    """A finding as the author of a case declares it."""

    rule: str
    tensor: int | None = None
    field: str | None = None
    entry: int | None = None
    span: tuple[int, int] | None = None
    name: str | None = FROM_FILE

    @property
    def status(self) -> str:
        """The status word of the rule."""
        return RULES[self.rule][0]

    def finding(self, file: File) -> dict[str, Any]:
        """Give the finding as the manifest has it, with the field's place from the record table."""
        field = self.field or RULES[self.rule][1]
        if field is None:
            raise CaseError(f"a fault of the rule {self.rule} must say its field")
        if self.span is not None:
            span = self.span
        elif self.tensor is None:
            span = header_span(field)
        else:
            span = descriptor_span(self.tensor, field, self.entry)
        name = self.name
        if name == FROM_FILE:
            name = None if self.tensor is None else file.labels[self.tensor]
        return {
            "rule": self.rule,
            "status": self.status,
            "tensor": self.tensor,
            "name": name,
            "field": RECORDS["PAGE_NAMES"].get(field, field),
            "offset": span[0],
            "length": span[1],
        }


@dataclass(frozen=True)
class Case:
    """One file of the corpus, and what a reader must say of it."""

    id: str
    verdict: str
    faults: tuple[Fault, ...]
    twin: Case | None
    why: str
    build: Callable[[], File]

    def entry(self) -> tuple[bytes, dict[str, Any]]:
        """Give the file's bytes and its entry of the manifest."""
        file = self.build()
        raw = bytes(file)
        header_unread = len(raw) < LEN_HEADER or any(fault.rule in RULE_ORDER[:2] for fault in self.faults)
        return raw, {
            "case": self.id,
            "file": f"{self.id}.kiln",
            "sha256": hashlib.sha256(raw).hexdigest(),
            "verdict": self.verdict,
            "num_tensors": None if header_unread else file.header["num_tensors"],
            "findings": [fault.finding(file) for fault in self.faults],
            "why": self.why,
            "differs_from": self.twin.id if self.twin else None,
        }


CASES: dict[str, Case] = {}
"""Every case by its id, in the order in which they are written down."""


def sound(case_id: str, **params: Any) -> Callable[[Callable[..., File]], Case]:
    """Register the function as the case of a sound file.

    It is called with `params`, and its docstring, formatted with them, is the case's `why`.
    """

    def register(function: Callable[..., File]) -> Case:
        return add(Case(case_id, "OK", (), None, explain(function, params), lambda: function(**params)))

    return register


def broken(
    case_id: str, verdict: str, twin: Case, *faults: Fault, **params: Any
) -> Callable[[Callable[..., object]], Case]:
    """Register the function as the case that breaks `twin`, a sound one.

    The function gets the twin's File and changes it. `faults` are all findings that a reader must
    report, in the order of the layout page's table, then by tensor; `verdict` is the first one's status.
    """

    def register(function: Callable[..., object]) -> Case:
        def build() -> File:
            file = twin.build()
            function(file, **params)
            return file

        return add(Case(case_id, verdict, faults, twin, explain(function, params), build))

    return register


def explain(function: Callable[..., object], params: dict[str, Any]) -> str:
    text = " ".join((function.__doc__ or "").split())
    return text.format(**params) if params else text


def add(case: Case) -> Case:
    """Put a case into the registry.

    Raises CaseError when its id is taken or retired, or its declaration contradicts itself.
    """
    unknown = [fault.rule for fault in case.faults if fault.rule not in RULES]
    if unknown:
        raise CaseError(f"{case.id}: the layout page has no rule {unknown[0]}")
    order = [
        (RULE_ORDER.index(fault.rule), -1 if fault.tensor is None else fault.tensor) for fault in case.faults
    ]
    if case.id in CASES or case.id in RETIRED:
        raise CaseError(f"{case.id}: the id is taken")
    if not case.why:
        raise CaseError(f"{case.id}: a case needs a docstring")
    if order != sorted(set(order)):
        raise CaseError(f"{case.id}: findings are not in the table's order, or one stands twice")
    if case.verdict != (case.faults[0].status if case.faults else "OK"):
        raise CaseError(f"{case.id}: the verdict is not the first finding's status")
    if case.twin is not None and case.twin.faults:
        raise CaseError(f"{case.id}: its twin is not sound")
    CASES[case.id] = case
    return case
