"""FP-Quant: e2m1 in groups, after a Hadamard rotation, with one more scale over a matrix.

The source is fp_quant's `module/linear.py` and transformers' integration of it. In MXFP4 a group has 32
elements and an e8m0 scale; in NVFP4 it has 16 and an f8e4m3 scale. The scales are stored as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, quantizations, text_of, texts_of
from kiln_check.checkpoints.conventions.skipping import by_skips
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    OPTIONAL,
    Companions,
    Declared,
    Excluded,
    Slot,
    Template,
    Tool,
)

NAME = "FP-Quant"
NOT_F32 = "an outer scale that is not F32"


def _template(format_: str, group: int) -> Template:
    return Template(
        NAME,
        format_,
        (
            Slot(".qweight", "U8", "[N, K / 2]"),
            Slot(".scales", "U8", f"[N, K / {group}]"),
            Slot(".weight_global_scale", FLOATS, "[1]"),
            Slot(".act_global_scale", FLOATS, "[1]"),
            Slot(".forward_hadamard_matrix", FLOATS, "[h, h]"),
            Slot(".backward_hadamard_matrix", FLOATS, "[h, h]", OPTIONAL),
        ),
        NOT_F32,
    )


FORMATS: Mapping[str, Template] = {"mxfp4": _template("mxfp4", 32), "nvfp4": _template("nvfp4", 16)}


class _Scheme(NamedTuple):
    """A quantization_config with quant_method "fp_quant"."""

    declared: Declared
    skipped: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        return by_skips(self.tool, self.declared, self.skipped, module)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        if config.get("quant_method") != "fp_quant":
            continue
        format_ = text_of(config.get("forward_dtype"))
        template = FORMATS.get(format_)
        in_full = config.get("store_master_weights") is True or config.get("pseudoquantization") is True
        side = number_of(config.get("hadamard_group_size"))
        declared = Declared(
            NAME,
            format_ or "unknown",
            () if template is None or in_full else (template,),
            {} if side is None else {"h": side},
        )
        return _Scheme(declared, texts_of(config.get("modules_to_not_convert")))
    return None


TOOL = Tool(
    NAME,
    tuple(FORMATS.values()),
    _declare,
    marks=(".forward_hadamard_matrix", ".backward_hadamard_matrix"),
)
