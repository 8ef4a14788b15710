"""Quark: AMD's quantizer, and what its config says of each layer.

Integers of less than a byte lie in words of 32 bits; those in groups lie transposed, so that the rows are the
inputs. Facts are from Quark's source, `export/nn/modules/realquantizer.py` and `utils/pack.py`, and from
checkpoints that Quark 0.13 wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kiln_check.checkpoints.conventions.configs import (
    number_of,
    numbers,
    object_of,
    quantizations,
    text_of,
    texts_of,
)
from kiln_check.checkpoints.conventions.patterns import first_of, matches_expression, matches_glob
from kiln_check.checkpoints.conventions.shapes import Value
from kiln_check.checkpoints.conventions.template import (
    FLOATS,
    ONE_SCALE,
    OPTIONAL,
    OWN_ORDER,
    ZERO_POINTS,
    Companions,
    Declared,
    Excluded,
    Hold,
    Slot,
    Template,
    Tool,
    by_format,
)

NAME = "Quark"

SCALE, ZERO_POINT = ".weight_scale", ".weight_zero_point"
ONE = "[] | [1]"
SCHEMES = {"per_tensor": ONE, "per_channel": "[*E, N]", "per_group": "[*E, N, K / g]"}
"""The scale's shape where elements lie as they are, by qscheme."""

SHARING: Mapping[str, str | None] = {"per_tensor": None, "per_channel": "K", "per_group": "g"}
"""Elements along a row that share a scale; None where the whole matrix does."""

GROUPS: Mapping[str, Sequence[Value]] = {"g": (32, 128, 64, 16)}
"""Sizes that are tried where no config says which."""

E8M0, FLOAT_SCALES = "U8 F8_E8M0", FLOATS
SIX_BITS_ORDER = "elements of 6 bits in an order that is not said"

INPUTS = (
    Slot(".input_scale", FLOATS, ONE, "static"),
    Slot(".input_zero_point", "I8 I32 F8_E4M3", ONE, OPTIONAL),
)


def _template(format_: str, scheme: str, weight: Slot, scales: str, holds: str) -> Template:
    """Elements in rows; `holds` is the dtype in Kiln, or the reason why there is none."""
    shape, group = SCHEMES[scheme], SHARING[scheme]
    unless = ((ZERO_POINT, ZERO_POINTS),)
    stored: Hold | str = Hold(holds, group or "K", SCALE, "e8m0" if scales == E8M0 else None, unless=unless)
    if group is None:
        stored = ONE_SCALE
    elif " " in holds:
        stored = holds
    zero = Slot(ZERO_POINT, "I8", shape, "" if format_ == "int8" else "asymmetric")
    slots = (weight, Slot(SCALE, scales, shape), zero, *INPUTS)
    options = GROUPS if group == "g" else {}
    return Template(NAME, f"{format_}, {scheme}, {_kind(scales)}", slots, stored, options)


def _kind(scales: str) -> str:
    return "e8m0" if scales == E8M0 else "float"


def _words(bits: int, scheme: str, unpacked: bool) -> Template:
    """Integers in words along the outputs, which the weight's columns are; of 2 bits, a word for each."""

    def words(length: str) -> str:
        return length if bits == 2 else f"{length} * {bits} / 32"

    outputs, inputs = words("N"), words("K")
    weight, scale, zero = {
        "per_tensor": (f"[N, {inputs}]", ONE, ONE),
        "per_channel": (f"[N, {inputs}]", "[N]", "[N]" if unpacked else f"[{outputs}]"),
        "per_group": (f"[K, {outputs}]", "[K / g, N]", "[K / g, N]" if unpacked else f"[K / g, {outputs}]"),
    }[scheme]
    slots = (
        Slot(".weight", "I32", weight),
        Slot(SCALE, FLOATS, scale),
        Slot(ZERO_POINT, f"I32 {FLOATS}" if unpacked else "I32", zero),
        *INPUTS,
    )
    holds = ZERO_POINTS if bits == 4 else OWN_ORDER
    options = GROUPS if scheme == "per_group" else {}
    return Template(NAME, f"int{bits}, {scheme}, float", slots, holds, options, {"unpacked": unpacked})


BYTES = {"fp8_e4m3": ("F8_E4M3", "f8e4m3"), "fp8_e5m2": ("F8_E5M2", "f8e5m2"), "int8": ("I8", "i8")}
"""By Quark's name: dtypes of elements of one byte, on disk and in Kiln."""

TEMPLATES = (
    *(
        _template(name, scheme, Slot(".weight", dtype, "[*E, N, K]"), scales, kiln)
        for name, (dtype, kiln) in BYTES.items()
        for scheme in SCHEMES
        for scales in (FLOAT_SCALES, *((E8M0,) if scheme == "per_group" else ()))
    ),
    *(
        _template("fp4", scheme, Slot(".weight", "U8", "[*E, N, K / 2]"), scales, "e2m1")
        for scheme in SCHEMES
        for scales in (FLOAT_SCALES, *((E8M0,) if scheme == "per_group" else ()))
    ),
    *(
        _template(name, "per_group", Slot(".weight", "U8", "[*E, N, K * 6 / 8]"), scales, SIX_BITS_ORDER)
        for name in ("fp6_e2m3", "fp6_e3m2")
        for scales in (FLOAT_SCALES, E8M0)
    ),
    *(_words(bits, scheme, unpacked) for bits in (2, 4) for scheme in SCHEMES for unpacked in (False, True)),
    Template(
        NAME,
        "int8, per_group, float",
        (
            Slot(".weight", "I8", "[K, N]"),
            Slot(SCALE, FLOATS, "[K / g, N]"),
            Slot(ZERO_POINT, f"I8 I32 {FLOATS}", "[K / g, N]"),
            *INPUTS,
        ),
        ZERO_POINTS,
        GROUPS,
    ),
    *(
        Template(
            NAME,
            "uint2, per_group, float",
            (
                Slot(".weight", "U8", "[K, N / 4]"),
                Slot(SCALE, FLOATS, "[K / g, N]"),
                Slot(ZERO_POINT, dtypes, shape),
                *INPUTS,
            ),
            ZERO_POINTS,
            GROUPS,
            {"unpacked": unpacked},
        )
        for unpacked, dtypes, shape in (
            (False, "U8", "[K / g, N / 4]"),
            (True, f"I32 {FLOATS}", "[K / g, N]"),
        )
    ),
)

BY_FORMAT = by_format(TEMPLATES)


@dataclass(frozen=True)
class Quark:
    """A quantization_config with quant_method "quark".

    Attributes:
        usual: the settings of all modules.
        layers: those of some modules, by names or globs.
        has_types: whether classes of modules have settings of their own, which names do not tell.
        excluded: the modules that are left as they are, by names, globs or expressions after "re:".

    """

    usual: dict[str, Any]
    layers: dict[str, Any]
    has_types: bool
    excluded: tuple[str, ...]
    tool: str = NAME

    def of(self, module: str) -> Declared | Excluded | None:
        """What the config says of a module."""
        pattern, doubtful = first_of(self.excluded, module, _matches)
        if pattern is not None:
            return Excluded(NAME, pattern)
        own, doubtful_own = first_of(self.layers, module, _matches)
        if doubtful or doubtful_own or self.has_types:
            return None
        return _declared(self.usual if own is None else object_of(self.layers[own]), own == module)


def _matches(pattern: str, module: str) -> bool | None:
    if pattern.startswith("re:"):
        return matches_expression(pattern.removeprefix("re:"), module)
    return None if set("?[") & set(pattern) else matches_glob(pattern, module)


def _declared(settings: dict[str, Any], named: bool) -> Declared | None:
    """What settings say; None where they leave the weight as it is."""
    weight = settings.get("weight")
    if isinstance(weight, list):
        return Declared(NAME, "several steps", (), named=named)
    if not object_of(weight):
        return None
    weight = object_of(weight)
    dtype, scheme = text_of(weight.get("dtype")), text_of(weight.get("qscheme"))
    scales = "e8m0" if text_of(weight.get("scale_format")) == "e8m0" else "float"
    format_ = f"{'int4' if dtype == 'uint4' else dtype}, {scheme}, {scales}"
    parameters: dict[str, Value | bool] = {**numbers(g=number_of(weight.get("group_size")))}
    if weight.get("symmetric") is True or dtype.startswith("fp"):  # floats have no zero points
        parameters["asymmetric"] = False
    elif weight.get("symmetric") is False:
        parameters["asymmetric"] = True
    parameters["unpacked"] = weight.get("zero_point_type") == "float32"
    inputs = object_of(settings.get("input_tensors"))
    if inputs and inputs.get("is_dynamic") is False and inputs.get("qscheme") == "per_tensor":
        parameters["static"] = True
    return Declared(NAME, f"{dtype}, {scheme}", BY_FORMAT.get(format_, ()), parameters, named)


def _declare(companions: Companions) -> Quark | None:
    for config in quantizations(companions):
        if config.get("quant_method") != "quark":
            continue
        export = object_of(config.get("export"))
        is_real = text_of(export.get("weight_format")) in ("", "real_quantized")
        is_usual = text_of(export.get("pack_method")) in ("", "reorder")
        if not is_real or not is_usual:
            return None
        return Quark(
            object_of(config.get("global_quant_config")),
            object_of(config.get("layer_quant_config")),
            bool(object_of(config.get("layer_type_quant_config"))),
            texts_of(config.get("exclude")),
        )
    return None


TOOL = Tool(NAME, TEMPLATES, _declare)
