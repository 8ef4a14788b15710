"""Removed tensors that headers don't miss: a checkpoint of the same config is sound without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break
from tools.breaking.documents import metadata_of, says, values_of
from tools.breaking.modules import quantized_modules

ACTIVATION = re.compile(r"(^|_)(input|output|activation|act)_|_act$")
"""What the name of a scale has in it that is of a layer's input or output."""

CACHE = frozenset({"kv_scale", "k_scale", "v_scale"})

SAYS_OF_CACHE = ("kv_cache_quant_algo", "kv_cache_scheme", "kv_cache_quant_config", "kv_cache_group")
"""Keys of configs below which something stands where keys and values are quantized."""


def is_of_activations(broken: Break) -> bool:
    """Whether the layers' inputs, or outputs, have no scales left, and no config says that they have."""
    if not _none_is_left(broken) or _says_static(broken.broken.documents):
        return False
    return all(ACTIVATION.search(change.suffix) for change in broken.changes)


def is_of_the_cache(broken: Break) -> bool:
    """Whether the key-value cache has no scales left, and no config says that it is quantized."""
    if not _none_is_left(broken) or not all(change.suffix in CACHE for change in broken.changes):
        return False
    return not any(any(values_of(broken.broken.documents, key)) for key in SAYS_OF_CACHE)


def is_an_order_of_columns(broken: Break) -> bool:
    """Whether g_idx is gone from all modules, or from one where the config says that columns are in order."""
    in_order = _is_removed(broken) and says(broken.broken.documents, "desc_act", False)
    return (in_order or _none_is_left(broken)) and _all_are(broken, "g_idx")


def is_a_label(broken: Break) -> bool:
    """Whether all labels of ComfyUI are gone."""
    return _none_is_left(broken) and _all_are(broken, "comfy_quant")


def is_a_second_label(broken: Break) -> bool:
    """Whether the file's metadata gives the format of a module whose label is gone."""
    if not _is_removed(broken) or not _all_are(broken, "comfy_quant"):
        return False
    found = values_of(list(metadata_of(broken.broken, "_quantization_metadata")), "layers")
    return any(broken.names & layers.keys() for layers in found)


def may_be_folded(broken: Break) -> bool:
    """Whether the factors of inputs are gone that ModelOpt may multiply into the layer before."""
    algorithms = ("W4A16_AWQ", "W4A8_AWQ", "NVFP4_AWQ", "W8A8_SQ_PER_CHANNEL")
    smoothed = says(broken.broken.documents, "quant_algo", *algorithms)
    return smoothed and _is_removed(broken) and _all_are(broken, "pre_quant_scale")


def is_of_training(broken: Break) -> bool:
    """Whether FP-Quant's rotation of gradients is gone where those are not quantized."""
    in_full = says(broken.broken.documents, "backward_dtype", "bf16")
    return in_full and _is_removed(broken) and _all_are(broken, "backward_hadamard_matrix")


def is_always_zero(broken: Break) -> bool:
    """Whether zero points of symmetric weights, dense in compressed-tensors, are gone or of another dtype."""
    symmetric = says({"weights": list(values_of(broken.broken.documents, "weights"))}, "symmetric", True)
    dense = symmetric and says(broken.broken.documents, "format", "dense")
    changed = _is_removed(broken) or broken.kind == kinds.DTYPE
    return dense and changed and _all_are(broken, "weight_zero_point")


def _is_removed(broken: Break) -> bool:
    return broken.kind in (kinds.REMOVED, kinds.ALL_REMOVED)


def _all_are(broken: Break, suffix: str) -> bool:
    return all(change.suffix == suffix for change in broken.changes)


def _none_is_left(broken: Break) -> bool:
    """Whether no module has a tensor with the suffix of those that are removed."""
    if not _is_removed(broken):
        return False
    gone = {change.suffix for change in broken.changes}
    return not any(gone & module.tensors.keys() for module in quantized_modules(broken.broken))


def _says_static(value: Any) -> bool:
    """Whether a config says anywhere that the scales of inputs are stored."""
    if isinstance(value, list):
        return any(map(_says_static, value))
    if not isinstance(value, Mapping):
        return False
    inputs = value.get("input_activations")
    static = isinstance(inputs, dict) and inputs.get("dynamic") is False
    said = value.get("activation_scheme") == "static" or value.get("act_dynamic") is False
    return static or said or any(map(_says_static, value.values()))
