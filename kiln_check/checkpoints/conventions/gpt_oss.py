"""gpt-oss: experts in MXFP4, as OpenAI published them and transformers reads and writes them.

Facts are from gpt-oss's source, `torch/weights.py`, and transformers', `integrations/mxfp4.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kiln_check.checkpoints.conventions.configs import quantizations, texts_of
from kiln_check.checkpoints.conventions.patterns import first_of, matches_expression
from kiln_check.checkpoints.conventions.template import (
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "gpt-oss"
METHOD = "mxfp4"


def _mxfp4(format_: str, mark: str) -> Template:
    """Blocks of 16 bytes, two elements each, the even one low; a block's bytes follow the one before."""
    return Template(
        NAME,
        format_,
        (
            Slot(f"{mark}blocks", "U8", "[*E, N, K / 32, 16]"),
            Slot(f"{mark}scales", "U8 F8_E8M0", "[*E, N, K / 32]"),
        ),
        Hold("e2m1", "32", f"{mark}scales", "e8m0"),
    )


TEMPLATES = (_mxfp4("MXFP4", "_"), _mxfp4("MXFP4, OpenAI's names", "."))


@dataclass(frozen=True)
class GptOss:
    """A quantization_config with quant_method "mxfp4".

    Attributes:
        skipped: `modules_to_not_convert`, expressions.

    """

    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        pattern, doubtful = first_of(self.skipped, module, _skips)
        if pattern is not None:
            return Excluded(NAME, pattern)
        return None if doubtful else Declared(NAME, METHOD, TEMPLATES)


def _skips(pattern: str, module: str) -> bool | None:
    """As transformers' `should_convert_module`: at the name's start, or the name's very end."""
    return module.endswith(pattern) or matches_expression(pattern, module)


def _declare(companions: Companions) -> GptOss | None:
    for config in quantizations(companions):
        if config.get("quant_method") == METHOD:
            return GptOss(texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(NAME, TEMPLATES, _declare)
