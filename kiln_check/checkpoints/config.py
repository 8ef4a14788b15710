"""The configs beside a checkpoint, which say how its weights are quantized."""

from __future__ import annotations

import json
from typing import Any

COMPANIONS = (
    "config.json",
    "hf_quant_config.json",
    "params.json",
    "quant_config.json",
    "quanto_qmap.json",
    "quantize_config.json",
)
"""Names of files beside a checkpoint that say how it is quantized."""

DESCRIPTION = "quant_model_description"
"""How the name of Ascend's begins; the rest tells the format."""


def is_config_name(name: str) -> bool:
    """Whether a file of this name says how a checkpoint is quantized."""
    return name in COMPANIONS or (name.startswith(DESCRIPTION) and name.endswith(".json"))


def read_config(raw: bytes) -> dict[str, Any]:
    """A companion's JSON object.

    Raises ValueError where it is none.
    """
    try:
        found = json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found
