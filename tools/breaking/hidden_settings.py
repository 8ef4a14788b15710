"""Changed settings of configs that headers can't show: they give the same tensors as before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Setting
from tools.breaking.documents import metadata_of, says, values_of
from tools.breaking.folder import Tensor
from tools.breaking.hidden_dtypes import FLOATS
from tools.breaking.modules import Module, quantized_modules

ALIKE = (
    ("quant_algo", "modelopt", frozenset({"mxfp4", "w4a8_mxfp4_fp8"})),
    ("dtype", "quark", frozenset({"int4", "uint4"})),
)
"""A key, the quant_method of its config, and values for which a tool stores the same tensors."""


def is_longer_than_rows(broken: Break) -> bool:
    """Whether the new size and the old are no less than a row of any module that takes it."""
    setting = broken.setting
    if setting is None or broken.kind != kinds.GROUP_SIZE or not isinstance(setting.before, int):
        return False
    lengths = list(_lengths_of_rows(broken, setting))
    return bool(lengths) and max(lengths) <= min(setting.before, setting.after)


def holds_any_width(broken: Break) -> bool:
    """Whether each weight has its elements in I8 or in floats, one each."""
    holding = FLOATS | {"I8"}
    return broken.kind == kinds.WIDTH and all(weight.dtype in holding for weight in _weights(broken))


def is_taken_by_none(broken: Break) -> bool:
    """Whether MLX's config has an entry for every module, none of which has the new value."""
    setting = broken.setting
    if setting is None or not says(broken.broken.documents, "mode", "affine"):
        return False
    names = [module.name for module in quantized_modules(broken.broken)]
    return all(
        setting.key in entry and entry[setting.key] != setting.after
        for config in values_of(broken.broken.documents, "quantization")
        for entry in (config.get(name, {}) for name in names)
    )


def is_in_metadata(broken: Break) -> bool:
    """Whether the file's metadata says how torchao packed each quantized module."""
    if broken.setting is None or not says(broken.broken.documents, "quant_method", "torchao"):
        return False
    names = [f"{module.name}.weight" for module in quantized_modules(broken.broken)]
    described = (list(metadata_of(broken.broken, name)) for name in names)
    return all(found and all("_tensor_data_names" in one for one in found) for found in described)


def stores_the_same(broken: Break) -> bool:
    """Whether a tool stores the same tensors for the new value as for the old."""
    setting = broken.setting
    return setting is not None and any(
        setting.key == key
        and says(broken.broken.documents, "quant_method", method)
        and {setting.before.lower(), setting.after.lower()} == values
        for key, method, values in ALIKE
    )


def _weights(broken: Break) -> Iterator[Tensor]:
    """The largest tensor of each quantized module."""
    for module in quantized_modules(broken.broken):
        yield max(module.tensors.values(), key=lambda tensor: tensor.length)


def _lengths_of_rows(broken: Break, setting: Setting) -> Iterator[int]:
    """The elements in a row of each module that takes a group size of AutoRound or compressed-tensors.

    Of words of 32 bits: AutoRound has them down the columns, compressed-tensors along the rows.
    """
    for config in values_of(broken.broken.documents, "quantization_config"):
        for module in quantized_modules(broken.broken):
            entry = _entry(config, module)
            if entry.get("group_size") != setting.after:
                continue
            if "qweight" in module.tensors and entry.get("bits"):
                yield 32 * module.tensors["qweight"].shape[0] // entry["bits"]
            if "weight_packed" in module.tensors and entry.get("num_bits"):
                yield 32 * module.tensors["weight_packed"].shape[1] // entry["num_bits"]


def _entry(config: dict[str, Any], module: Module) -> dict[str, Any]:
    """What a config says of a module: by its name in AutoRound, by expressions in compressed-tensors."""
    for group in config.get("config_groups", {}).values():
        targets = (target.removeprefix("re:") for target in group["targets"])
        if any(re.match(target, module.name) for target in targets):
            return dict(group["weights"])
    return {**config, **config.get("extra_config", {}).get(module.name, {})}
