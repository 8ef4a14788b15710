"""SDNQ: integers and floats of 1 to 16 bits, in groups or by row, packed in one run over all elements.

The source is sdnq's `quantizer.py`, `utils.py`, `packed_int/pack.py` and `packed_float.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kiln_check.checkpoints.conventions.configs import object_of, quantizations, text_of, texts_of
from kiln_check.checkpoints.conventions.patterns import first_of, matches_expression
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    OWN_ORDER,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
)

NAME = "SDNQ"

PACKED_BITS: Mapping[int, tuple[str, int, int]] = {
    1: ("U8", 8, 1),
    2: ("U8", 4, 1),
    3: ("U8", 8, 3),
    4: ("U8", 2, 1),
    5: ("U8", 8, 5),
    6: ("U8", 4, 3),
    7: ("U8", 8, 7),
    9: ("I16", 16, 9),
    10: ("I16", 8, 5),
    11: ("I16", 16, 11),
    12: ("I16", 4, 3),
    13: ("I16", 16, 13),
    14: ("I16", 8, 7),
    15: ("I16", 16, 15),
}
"""By bits of an element: dtype of a word, elements that are packed together, and words that they fill."""

WHOLE = {
    "int8": ("I8", "i8"),
    "int16": ("I16", "i16"),
    "uint8": ("U8", "u8"),
    "float8_e4m3fn": ("F8_E4M3", "f8e4m3"),
    "float8_e5m2": ("F8_E5M2", "f8e5m2"),
}
"""By SDNQ's name: dtypes of elements that are not packed, on disk and in Kiln."""

PACKED_AS = {"int4": "u4", "float4_e2m1fn": "e2m1"}
"""By SDNQ's name: dtypes in Kiln of packed elements, where their order is Kiln's: the even one low.

Integers are offset by half their range, and so unsigned.
"""

LOW_RANK = (
    Slot(".svd_up", FLOATS, "[N, q] | [q, N]", "svd"),
    Slot(".svd_down", FLOATS, "[q, K] | [K, q]", "svd"),
)


def _slots(weight: Slot, scales: str) -> tuple[Slot, ...]:
    return (
        weight,
        Slot(".scale", FLOATS, scales),
        Slot(".zero_point", FLOATS, scales, "unsigned"),
        *LOW_RANK,
    )


def _hold(kiln: str | None, group: str, shape: str, axis: int = -1) -> Hold | str:
    if kiln is None:
        return OWN_ORDER
    return Hold(kiln, group, ".scale", shape=shape, axis=axis, unless=((".zero_point", ZERO_POINTS),))


def _whole(format_: str, dtype: str, kiln: str | None) -> tuple[Template, ...]:
    """Elements that are not packed, by row, in groups, and transposed for products of low precision."""
    rows = _slots(Slot(".weight", dtype, "[N, K]"), "[N, 1]")
    groups = _slots(Slot(".weight", dtype, "[N, G, C]"), "[N, G, 1]")
    columns = _slots(Slot(".weight", dtype, "[K, N]"), "[1, N]")
    return (
        Template(NAME, format_, rows, _hold(kiln, "K", "[N, K]"), only={"transposed": False}),
        Template(
            NAME,
            f"{format_}, groups",
            groups,
            _hold(kiln, "C", "[N, G, C]"),
            only={"transposed": False},
        ),
        Template(
            NAME, f"{format_}, transposed", columns, _hold(kiln, "K", "[K, N]", 0), only={"transposed": True}
        ),
    )


def _packed(format_: str, bits: int, kiln: str | None) -> tuple[Template, ...]:
    dtype, together, words = PACKED_BITS[bits]

    def weight(elements: str) -> Slot:
        runs = f"{elements} / {together}"
        return Slot(".weight", dtype, f"[{runs}]" if words == 1 else f"[{runs}, {words}]")

    return (
        Template(NAME, format_, _slots(weight("N * K"), "[N, 1]"), _hold(kiln, "K", "[N, K]")),
        Template(
            NAME,
            f"{format_}, groups",
            _slots(weight("N * G * C"), "[N, G, 1]"),
            _hold(kiln, "C", "[N, G * C]"),
        ),
    )


WHOLE_TEMPLATES = {name: _whole(name, dtype, kiln) for name, (dtype, kiln) in WHOLE.items()}
PACKED_TEMPLATES = {
    **{name: _packed(name, 4, kiln) for name, kiln in PACKED_AS.items()},
    **{f"{bits} bits": _packed(f"{bits} bits", bits, None) for bits in PACKED_BITS},
}
FLOATS_OF_8_BITS = _whole("floats of 8 bits", "U8", None)

_FORMAT = re.compile(r"(u?)(?:int|float)(\d{1,2})(_e\dm\d{1,2}fnu?)?")
_LEAST = re.compile(r"(?:minimum)?[-_]?(u?)(?:int)?(\d{1,2})[-_]?(?:bits?)?")


def _templates(format_: str) -> tuple[Template, ...]:
    """Those of a format by SDNQ's name; none where it is not known."""
    if format_ in WHOLE_TEMPLATES:
        return WHOLE_TEMPLATES[format_]
    if format_ in PACKED_TEMPLATES:
        return PACKED_TEMPLATES[format_]
    found = _FORMAT.fullmatch(format_)
    if found is None:
        return ()
    if int(found[2]) == 8:
        return FLOATS_OF_8_BITS if found[3] else ()
    return PACKED_TEMPLATES.get(f"{int(found[2])} bits", ())


class _Scheme(NamedTuple):
    """A quantization_config with quant_method "sdnq"."""

    config: dict[str, Any]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        name = module + ".weight"
        pattern, doubtful = _named(texts_of(self.config.get("modules_to_not_convert")), name)
        if pattern is not None:
            return Excluded(NAME, pattern)
        own, doubtful_own = self._settings(name)
        format_, doubtful_format = self._format(own, name)
        straight, doubtful_product = _named(texts_of(self.config.get("modules_to_not_use_matmul")), name)
        if doubtful or doubtful_own or doubtful_format or doubtful_product:
            return None
        return _declared(own, format_, own.get("use_quantized_matmul") is True and straight is None)

    def _settings(self, name: str) -> tuple[dict[str, Any], bool]:
        """The settings of a module, and whether they can't be told."""
        by_module = object_of(self.config.get("modules_quant_config"))
        key, doubtful = _named(by_module, name)
        return {**self.config, **(object_of(by_module[key]) if key is not None else {})}, doubtful

    def _format(self, own: dict[str, Any], name: str) -> tuple[str, bool]:
        """The format of a module by SDNQ's name, and whether it can't be told."""
        format_ = text_of(own.get("weights_dtype"))
        for key, names in object_of(self.config.get("modules_dtype_dict")).items():
            found, doubtful = _named(texts_of(names), name)
            if doubtful:
                return format_, True
            if found is not None:
                return _at_least(format_, key.lower()), False
        return format_, False


def _at_least(format_: str, key: str) -> str:
    """The format that a key of modules_dtype_dict gives: its own, or the least bits that it names."""
    if not (key.startswith("minimum") or key.endswith(("bit", "bits"))):
        return key
    least, found = _LEAST.fullmatch(key), _FORMAT.fullmatch(format_)
    if least is None or found is None:
        return "unknown"
    bits = int(least[2])
    if int(found[2]) >= bits:
        return format_
    return f"uint{bits}" if least[1] or bits <= 4 else f"int{bits}"


def _named(patterns: Iterable[str], name: str) -> tuple[str | None, bool]:
    """The first pattern that names a tensor, and whether one that can't be told might."""
    return first_of(patterns, name, _names)


def _names(pattern: str, name: str) -> bool | None:
    if pattern.startswith("."):
        return name.startswith(pattern[1:])
    if name == pattern or pattern in name.split("."):
        return True
    if "*" not in pattern:
        return False
    return matches_expression(pattern.replace(".*", "\\.*").replace("*", ".*"), name)


def _declared(own: dict[str, Any], format_: str, multiplied: bool) -> Declared:
    """What settings say of a module.

    Args:
        own: the module's settings.
        format_: by SDNQ's name.
        multiplied: whether the product is in low precision, for which whole weights lie transposed.

    """
    odd = any(own.get(key) is True for key in ("use_codebook", "quant_conv", "quant_embedding"))
    templates = () if odd or own.get("group_size") == -2 else _templates(format_)
    parameters = {"unsigned": format_.startswith("u"), "svd": own.get("use_svd") is True}
    if not multiplied or format_ not in WHOLE or format_ == "int16":
        parameters["transposed"] = False
    elif own.get("group_size") in (0, -1) and own.get("quantized_matmul_dtype") in (None, format_):
        parameters["transposed"] = True
    return Declared(NAME, format_ or "unknown", templates, parameters)


def _declare(companions: Companions) -> _Scheme | None:
    for config in quantizations(companions):
        if config.get("quant_method") in ("sdnq", "sdnq_training"):
            return _Scheme(config)
    return None


TOOL = Tool(
    NAME,
    tuple(
        template
        for templates in (*WHOLE_TEMPLATES.values(), *PACKED_TEMPLATES.values(), FLOATS_OF_8_BITS)
        for template in templates
    ),
    _declare,
)
