"""Metal of transformers: affine integers in words of 32 bits, with `X.scales` and `X.qbiases`.

`quant_method` is "metal". The source is transformers' `MetalLinear` and `MetalConfig`.
"""

from __future__ import annotations

from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, numbers, quantizations, texts_of
from kiln_check.checkpoints.conventions.skipping import excluded
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)

NAME = "Metal"
DEFAULT_BITS, DEFAULT_GROUP = 4, 64
"""What `MetalConfig` takes where a config leaves them out."""

AFFINE = Template(
    NAME,
    "affine",
    (
        Slot(".weight", "U32", "[N, K * b / 32]"),
        Slot(".scales", FLOATS, "[N, K / g]"),
        Slot(".qbiases", FLOATS, "[N, K / g]"),
    ),
    ZERO_POINTS,
    options={"b": (4, 8, 2), "g": (64, 32, 128)},
)


class _Scheme(NamedTuple):
    """A quantization_config of Metal.

    Attributes:
        declared: what it says of all modules.
        kept: patterns of modules that are not quantized.
        tool: NAME.

    """

    declared: Declared
    kept: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        found, doubtful = excluded(self.tool, self.kept, module)
        return found if found is not None or doubtful else self.declared


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        if config.get("quant_method") == "metal":
            parameters = numbers(
                b=number_of(config.get("bits", DEFAULT_BITS)),
                g=number_of(config.get("group_size", DEFAULT_GROUP)),
            )
            kept = texts_of(config.get("modules_to_not_convert"))
            return _Scheme(Declared(NAME, "affine", (AFFINE,), parameters), kept)
    return None


TOOL = Tool(NAME, (AFFINE,), _declare, marks=(".qbiases",))
