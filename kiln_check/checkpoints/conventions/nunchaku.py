"""Nunchaku: 4-bit integers that AWQ scaled, beside SVDQuant's, which no template tells of.

Facts are from AutoRound's `export/svdquant_w4a16.py` and nunchaku's `AWQW4A16Linear`.
"""

from __future__ import annotations

from kiln_check.checkpoints.conventions.template import FLOATS, OWN_ORDER, Companions, Slot, Template, Tool

NAME = "Nunchaku"

AWQ = Template(
    NAME,
    "awq",
    (
        Slot(".qweight", "I32", "[N / 4, K / 2]"),
        Slot(".wscales", FLOATS, "[K / g, N]"),
        Slot(".wzeros", FLOATS, "[K / g, N]"),
    ),
    OWN_ORDER,
    {"g": (64,)},
)


def _declare(_companions: Companions) -> None:
    """Its config lies in the metadata of the file, and says nothing of single modules."""


TOOL = Tool(NAME, (AWQ,), _declare)
