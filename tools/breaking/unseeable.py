"""Why the headers of a checkpoint can't show a break."""

from __future__ import annotations

from tools.breaking.breaks import Break


def reason_for(broken: Break) -> str | None:
    """The reason why headers can't show a break; None where they can."""
    return None
