"""What the layout page says in numbers, by name: what rules and screen compare fields with."""

from __future__ import annotations

from kiln_check.generated.kiln_v2_records import DTYPES, SCHEMES

ALIGNMENT = 64
"""Bytes; where payloads may start (layout page, "Rules", data-align)."""

NONE, SCALES, SCALES_AND_OUTER = (
    next(code for code, scheme in SCHEMES.items() if scheme == name)
    for name in ("none", "scales", "scales_and_outer")
)

FOREIGN, F32 = (next(code for code, dtype in DTYPES.items() if dtype == name) for name in ("foreign", "f32"))

ELEMENT_BITS = {code: code & 0xFF for code in DTYPES}
"""Width of one element in bits, by dtype; 0 for foreign (layout page, "dtype")."""
