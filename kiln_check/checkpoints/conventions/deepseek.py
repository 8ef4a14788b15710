"""DeepSeek V4's own names: `X.scale` beside `X.weight`, FP8 in blocks and experts of two e2m1 a byte.

Its config is that of fine-grained FP8, which declares these templates besides its own. Sources: the
checkpoints of DeepSeek V4, and transformers' quantizer for FP8, which renames `.scale` to
`.weight_scale_inv`.
"""

from __future__ import annotations

from kiln_check.checkpoints.conventions.template import BLOCKS, Companions, Hold, Slot, Template, Tool

NAME = "DeepSeek"

_FOUR_BITS = Hold("e2m1", "32", ".scale", "e8m0")
_SCALE_OF_32 = Slot(".scale", "F8_E8M0", "[*E, N, K / 32]")

FP8_BLOCKS = Template(
    NAME,
    "fp8 blocks",
    (
        Slot(".weight", "F8_E4M3", "[*E, N, K]"),
        Slot(".scale", "F8_E8M0 F32", "[*E, ceil(N / r), ceil(K / c)]"),
    ),
    BLOCKS,
    options={"r": (128, 64, 32), "c": ("r",)},
    fixed={"fmt": "e4m3"},
)

FP4 = Template(
    NAME,
    "fp4",
    (Slot(".weight", "I8 U8", "[*E, N, K / 2]"), _SCALE_OF_32),
    _FOUR_BITS,
)

FP4_UNPACKED = Template(
    NAME,
    "fp4, dtype F4",
    (Slot(".weight", "F4", "[*E, N, K]"), _SCALE_OF_32),
    _FOUR_BITS,
)

TEMPLATES = (FP8_BLOCKS, FP4, FP4_UNPACKED)


def _declare(_companions: Companions) -> None:
    """No config is DeepSeek's alone."""


TOOL = Tool(NAME, TEMPLATES, _declare)
