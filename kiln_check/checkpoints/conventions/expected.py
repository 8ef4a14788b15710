"""Which tensors must have a scale, and which scales must have a weight, whatever else there is."""

from __future__ import annotations

from collections.abc import Container

from kiln_check.checkpoints.config import COMPRESSED_TENSORS, MLX, MODELOPT, Config, Hint
from kiln_check.checkpoints.conventions.forms import E8M0_SOURCE_DTYPES, FORMS, MX_GROUP, Form
from kiln_check.checkpoints.formats.header import SourceTensor

OUTERS = (
    (".weight_global_scale", (".weight_packed", ".weight")),
    (".weight_scale_2", (".weight",)),
    ("_weight_scale_2", ("",)),
)
"""Suffixes of outer scales, and of the weights that they may belong to."""

SURE_SCALES = (".weight_scale", ".weight_scale_inv")
"""Suffixes that only a scale has; others are also used for tensors of other meaning."""

F8 = ("F8_E4M3", "F8_E5M2")

OTHER_WEIGHTS = (".compressed", ".indices", "._weight_qdata")
"""Suffixes of weights that tools without a form here give a sure scale."""

SCALE_SOURCE_DTYPES: dict[str, tuple[str, ...]] = {
    "_weight_scale": (*E8M0_SOURCE_DTYPES, "F8_E4M3"),
    "_scales": E8M0_SOURCE_DTYPES,
    ".scales": (*E8M0_SOURCE_DTYPES, "F8_E4M3", "F16", "BF16"),
    ".scale": ("F8_E8M0",),
}
"""Dtypes that a convention gives scales whose suffix is not a sure one."""

METHODS = {
    ("_blocks", "_scales"): ("mxfp4",),
    (".blocks", ".scales"): ("mxfp4",),
    (".weight", ".scales"): (MLX,),
    (".qweight", ".scales"): ("gptq", "awq"),
    (".weight", ".scale"): ("fp8",),
    ("", "_weight_scale"): (MODELOPT,),
}
"""Tools whose convention a form with a suffix of many meanings is."""


def expected_scales(tensor: SourceTensor, config: Config, tensors: Container[str]) -> list[str]:
    """The names of which one must be there for a weight; none where no scale is due.

    Args:
        tensor: the weight.
        config: what the files beside the checkpoint say.
        tensors: names of all tensors of the checkpoint.

    """
    for form in FORMS:
        if form.weight and tensor.name.endswith(form.weight):
            module = tensor.name[: -len(form.weight)]
            suffixes = _expected_suffixes(tensor, module, form.weight, config, tensors)
            if suffixes:
                return [module + suffix for suffix in suffixes]
    return _expected_fused(tensor, config, tensors)


def _expected_suffixes(
    tensor: SourceTensor, module: str, weight: str, config: Config, tensors: Container[str]
) -> tuple[str, ...]:
    """Suffixes of the scales of which one must be there, by the weight's suffix."""
    hints = config.hints_for(module)
    if weight == ".weight_packed":
        return () if module + ".scale_packed" in tensors else (".weight_scale",)
    if weight in ("_blocks", ".blocks"):
        least_rank = 2 if _methods(hints) & {"mxfp4"} else 3
        is_packed = tensor.source_dtype == "U8" and tensor.shape[-1:] == (MX_GROUP // 2,)
        return (weight.replace("block", "scale"),) if is_packed and len(tensor.shape) >= least_rank else ()
    if weight == ".qweight":
        return (".scales",) if _methods(hints) & {"gptq", "awq"} else ()
    if weight != ".weight":
        return ()
    if tensor.source_dtype in ("U8", "F4") and module + ".weight_scale_2" in tensors:
        return (".weight_scale",)
    if tensor.source_dtype == "I8" and _of_integers(hints) and not config.may_ignore(module):
        return (".weight_scale",)
    return _by_config(tensor.source_dtype, hints)


def _by_config(source_dtype: str, hints: tuple[Hint, ...]) -> tuple[str, ...]:
    """Suffixes of the scale of X.weight, of which one must be there, by what the config says."""
    methods = _methods(hints)
    if source_dtype == "U32" and MLX in methods:
        return (".scales",)
    if source_dtype in ("U8", "F4") and MODELOPT in methods:
        return (".weight_scale",)
    if source_dtype in ("I8", "F4") and "fp8" in methods:
        return (".scale",)
    if source_dtype in F8 and methods & {COMPRESSED_TENSORS, MODELOPT}:
        return (".weight_scale",)
    if source_dtype in F8 and "fp8" in methods:
        return (".weight_scale_inv", ".weight_scale", ".scale")
    return ()


def _expected_fused(tensor: SourceTensor, config: Config, tensors: Container[str]) -> list[str]:
    """The scale of experts that are stacked in one tensor, whose name has no suffix of a weight's."""
    name = tensor.name
    if any(form.weight and name.endswith(form.weight) for form in FORMS):
        return []
    methods = _methods(config.hints_for(name))
    is_stack = len(tensor.shape) > 2 and "scale" not in name.rpartition(".")[2]
    by_outer = tensor.source_dtype in ("U8", "F4") and name + "_weight_scale_2" in tensors
    by_config = is_stack and (
        (tensor.source_dtype in F8 and bool(methods & {COMPRESSED_TENSORS, MODELOPT}))
        or (tensor.source_dtype in ("U8", "F4") and MODELOPT in methods)
    )
    return [name + "_weight_scale"] if by_outer or by_config else []


def weights_of(tensor: SourceTensor, config: Config, used: Container[Form]) -> list[str]:
    """The names of weights that a scale or outer scale may belong to; none for any other tensor.

    Args:
        tensor: the scale.
        config: what the files beside the checkpoint say.
        used: forms that a pair of the checkpoint has. Tensors of other meaning have
            some suffixes too: they count only where their convention is in use.

    """
    name = tensor.name
    for suffix, weights in OUTERS:
        if name.endswith(suffix):
            return [name[: -len(suffix)] + weight for weight in weights]
    return [
        name[: -len(form.scale)] + form.weight
        for form in FORMS
        if name.endswith(form.scale) and _is_scale(tensor, form, config, used)
    ]


def _is_scale(tensor: SourceTensor, form: Form, config: Config, used: Container[Form]) -> bool:
    if form.scale in SURE_SCALES:
        return True
    if tensor.source_dtype not in SCALE_SOURCE_DTYPES[form.scale]:
        return False
    methods = METHODS.get((form.weight, form.scale))
    hints = config.hints_for(tensor.name[: -len(form.scale)])
    return methods is None or form in used or not _methods(hints).isdisjoint(methods)


def _of_integers(hints: tuple[Hint, ...]) -> bool:
    return any(hint.method == COMPRESSED_TENSORS and hint.kind == "int" for hint in hints)


def _methods(hints: tuple[Hint, ...]) -> set[str]:
    return {hint.method for hint in hints}
