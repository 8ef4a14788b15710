"""bitsandbytes: 4-bit codes of all elements in one column of bytes, with the state that decodes them."""

from __future__ import annotations

import json
from math import prod
from typing import NamedTuple

from kiln_check.checkpoints.conventions.configs import number_of, quantizations, text_of, texts_of
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    CODEBOOK,
    OPTIONAL,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "bitsandbytes"
STATE = ".weight.quant_state.bitsandbytes__"


def _state(payload: bytes) -> dict[str, Value | bool]:
    """N elements and g, the block size, from the JSON of a quant_state."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ValueError("a quant_state that is not JSON") from error
    if not isinstance(found, dict) or not isinstance(found.get("shape"), list):
        raise ValueError("a quant_state without a shape")
    lengths = [number_of(length) for length in found["shape"]]
    block = number_of(found.get("blocksize"))
    if block is None or not lengths or None in lengths:
        raise ValueError("a quant_state without numbers")
    nested = number_of(found.get("nested_blocksize"))
    values: dict[str, Value | bool] = {"n": prod(one for one in lengths if one is not None), "g": block}
    return values if nested is None else {**values, "h": nested, "nested": True}


STORAGES = (
    ("U8 I8", 2, ""),
    ("F16 BF16 I16 U16", 4, " in two bytes"),
    ("F32 I32 U32", 8, " in four bytes"),
    ("F64 I64 U64", 16, " in eight bytes"),
)
"""Dtypes that bytes are stored as, and the elements that one holds."""


def _four_bits(kind: str, dtypes: str, elements: int, name: str) -> tuple[Template, ...]:
    weight = Slot(".weight", dtypes, f"[ceil(n / {elements}), 1]")
    common = (
        Slot(".weight.quant_map", "F32", "[16]"),
        Slot(f"{STATE}{kind}", "U8", "[*J]", gives=_state),
    )
    flat = (weight, Slot(".weight.absmax", "F32", "[ceil(n / g)]"), *common)
    nested = (
        weight,
        Slot(".weight.absmax", "U8", "[ceil(n / g)]"),
        Slot(".weight.nested_absmax", "F32", "[ceil(ceil(n / g) / h)]"),
        Slot(".weight.nested_quant_map", "F32", "[256]"),
        *common,
    )
    blocks = {"g": (64, 128, 256, 512, 1024, 2048, 4096)}
    return (
        Template(NAME, kind + name, flat, CODEBOOK, blocks, closed=True),
        Template(NAME, f"{kind}{name}, nested", nested, CODEBOOK, {**blocks, "h": (256,)}, closed=True),
    )


FOUR_BITS = tuple(
    template for kind in ("nf4", "fp4") for storage in STORAGES for template in _four_bits(kind, *storage)
)
INT8 = Template(
    NAME,
    "int8",
    (
        Slot(".weight", "I8", "[N, K]"),
        Slot(".SCB", "F32", "[N]"),
        Slot(".weight_format", "U8", "[]", OPTIONAL),
    ),
    Hold("i8", "K", ".SCB", shape="[N, K]"),
)


class BitsAndBytesScheme(NamedTuple):
    """What a config of bitsandbytes says.

    Attributes:
        format: "4 bits" or "int8".
        templates: of it.
        plain: names, or their last or first parts, of modules that are not quantized.
        tool: NAME.

    """

    format: str
    templates: tuple[Template, ...]
    plain: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded:
        """The format, or that the module is left out."""
        for part in self.plain:
            if f".{part}." in f".{module}.":
                return Excluded(NAME, part)
        return Declared(NAME, self.format, self.templates)


def declare(companions: Companions) -> BitsAndBytesScheme | None:
    """The scheme of quantization_config."""
    for config in quantizations(companions):
        if text_of(config.get("quant_method")) != "bitsandbytes":
            continue
        plain = texts_of(config.get("llm_int8_skip_modules"))
        if config.get("load_in_4bit") or config.get("_load_in_4bit"):
            kind = text_of(config.get("bnb_4bit_quant_type"))
            templates = tuple(one for one in FOUR_BITS if one.format.startswith(kind))
            return BitsAndBytesScheme(kind or "4 bits", templates or FOUR_BITS, plain)
        if config.get("load_in_8bit") or config.get("_load_in_8bit"):
            return BitsAndBytesScheme("int8", (INT8,), plain)
        return BitsAndBytesScheme("of no width", (*FOUR_BITS, INT8), plain)
    return None


TOOL = Tool(NAME, (*FOUR_BITS, INT8), declare, marks=(f"{STATE}nf4", f"{STATE}fp4", ".SCB"))
