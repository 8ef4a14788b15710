"""Small checkpoints made by hand: one for each convention of which no real one is at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np

from kiln_check.checkpoints import links
from kiln_check.checkpoints.conventions import template
from tests.checkpoints.building import Made, safetensors_bytes


class Linked(NamedTuple):
    """How a weight comes out: scheme, axis, group size, dtype, shape, dtype of the scale."""

    scheme: int
    axis: int
    group_size: int
    dtype: str
    shape: tuple[int, ...]
    scale_dtype: str


class Model(NamedTuple):
    """A checkpoint, and what becomes of its weights.

    Attributes:
        tensors: by name.
        linked: by the weight's name.
        reasons: why others are not linked, by the weight's name.
        config: files beside it.

    """

    tensors: Mapping[str, Made]
    linked: Mapping[str, Linked] = {}
    reasons: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.safetensors").write_bytes(safetensors_bytes(dict(self.tensors), {"format": "pt"}))
        for name, value in self.config.items():
            (folder / name).write_text(json.dumps(value))
        return folder


def config(**quantization: object) -> dict[str, Any]:
    return {"config.json": {"quantization_config": quantization}}


def compressed(format_: str, **weights: object) -> dict[str, Any]:
    group = {"format": format_, "targets": ["Linear"], "weights": weights}
    return config(quant_method="compressed-tensors", format=format_, config_groups={"group_0": group})


def modelopt(algorithm: str) -> dict[str, Any]:
    group_size = 32 if "MX" in algorithm else 16
    return {"hf_quant_config.json": {"quantization": {"quant_algo": algorithm, "group_size": group_size}}}


def sizes(*sizes: int) -> Made:
    return Made("I64", (len(sizes),), b"".join(size.to_bytes(8, "little") for size in sizes))


def comfy_quant(format_: str) -> Made:
    payload = json.dumps({"format": format_}).encode()
    return Made("U8", (len(payload),), payload)


def _packed_words(**changes: Made) -> dict[str, Made]:
    tensors = {
        "a.weight_packed": Made("I32", (4, 16)),
        "a.weight_scale": Made("BF16", (4, 4)),
        "a.weight_shape": sizes(4, 128),
    }
    return {**tensors, **{name.replace("__", "."): made for name, made in changes.items()}}


GLOBAL = Made("F32", (1,), b"\0\0\0\x45")

MODELS: dict[str, Model] = {
    "gpt-oss": Model(
        {
            "model.layers.0.mlp.experts.gate_up_proj_blocks": Made("U8", (2, 6, 3, 16)),
            "model.layers.0.mlp.experts.gate_up_proj_scales": Made("U8", (2, 6, 3)),
            "model.layers.0.mlp.experts.gate_up_proj_bias": Made("BF16", (2, 6)),
        },
        {"model.layers.0.mlp.experts.gate_up_proj_blocks": Linked(1, 2, 32, "e2m1", (2, 6, 96), "e8m0")},
        config=config(quant_method="mxfp4"),
    ),
    "gpt-oss-original": Model(
        {
            "block.0.mlp.mlp1_weight.blocks": Made("U8", (2, 6, 3, 16)),
            "block.0.mlp.mlp1_weight.scales": Made("U8", (2, 6, 3)),
        },
        {"block.0.mlp.mlp1_weight.blocks": Linked(1, 2, 32, "e2m1", (2, 6, 96), "e8m0")},
    ),
    "modelopt-nvfp4": Model(
        {
            "model.layers.0.mlp.up_proj.weight": Made("U8", (6, 32)),
            "model.layers.0.mlp.up_proj.weight_scale": Made("F8_E4M3", (6, 4)),
            "model.layers.0.mlp.up_proj.weight_scale_2": Made("F32", ()),
            "model.layers.0.mlp.up_proj.input_scale": Made("F32", ()),
        },
        {"model.layers.0.mlp.up_proj.weight": Linked(2, 1, 16, "e2m1", (6, 64), "f8e4m3")},
        config={"hf_quant_config.json": {"quantization": {"quant_algo": "NVFP4", "group_size": 16}}},
    ),
    "modelopt-nvfp4-experts": Model(
        {
            "experts.gate_up_proj": Made("U8", (3, 6, 32)),
            "experts.gate_up_proj_weight_scale": Made("F8_E4M3", (3, 6, 4)),
            "experts.gate_up_proj_weight_scale_2": Made("F32", (3,)),
            "experts.down_proj": Made("U8", (3, 6, 32)),
            "experts.down_proj_weight_scale": Made("F8_E4M3", (3, 6, 4)),
            "experts.down_proj_weight_scale_2": Made("F32", (1,)),
        },
        {"experts.down_proj": Linked(2, 2, 16, "e2m1", (3, 6, 64), "f8e4m3")},
        {"experts.gate_up_proj": template.PER_EXPERT},
    ),
    "modelopt-fp8": Model(
        {"a.weight": Made("F8_E4M3", (6, 32)), "a.weight_scale": Made("F32", ())},
        reasons={"a.weight": template.ONE_SCALE},
        config=modelopt("FP8"),
    ),
    "modelopt-fp8-channels": Model(
        {"a.weight": Made("F8_E4M3", (6, 32)), "a.weight_scale": Made("F32", (6,))},
        {"a.weight": Linked(1, 1, 32, "f8e4m3", (6, 32), "f32")},
        config=modelopt("FP8_PER_CHANNEL_PER_TOKEN"),
    ),
    "modelopt-fp8-experts": Model(
        {"a.weight": Made("F8_E4M3", (3, 6, 64)), "a.weight_scale": Made("F32", (3,))},
        reasons={"a.weight": template.ONE_SCALE},
        config=modelopt("FP8"),
    ),
    "mlx-by-shape": Model(
        {
            "four.weight": Made("U32", (6, 8)),
            "four.scales": Made("U8", (6, 2)),
            "nv.weight": Made("U32", (6, 8)),
            "nv.scales": Made("U8", (6, 4)),
            "eight.weight": Made("U32", (6, 16)),
            "eight.scales": Made("U8", (6, 2)),
            "affine.weight": Made("U32", (6, 8)),
            "affine.scales": Made("BF16", (6, 1)),
            "affine.biases": Made("BF16", (6, 1)),
        },
        {
            "four.weight": Linked(1, 1, 32, "e2m1", (6, 64), "e8m0"),
            "nv.weight": Linked(1, 1, 16, "e2m1", (6, 64), "f8e4m3"),
            "eight.weight": Linked(1, 1, 32, "f8e4m3", (6, 64), "e8m0"),
        },
        {"affine.weight": template.ZERO_POINTS},
    ),
    "mlx-by-config": Model(
        {
            "four.weight": Made("U32", (6, 8)),
            "four.scales": Made("U8", (6, 2)),
            "eight.weight": Made("U32", (6, 16)),
            "eight.scales": Made("U8", (6, 2)),
        },
        {
            "four.weight": Linked(1, 1, 32, "e2m1", (6, 64), "e8m0"),
            "eight.weight": Linked(1, 1, 32, "f8e4m3", (6, 64), "e8m0"),
        },
        config={
            "config.json": {
                "quantization": {
                    "group_size": 32,
                    "bits": 4,
                    "mode": "mxfp4",
                    "eight": {"group_size": 32, "bits": 8, "mode": "mxfp8"},
                }
            }
        },
    ),
    "deepseek": Model(
        {
            "layers.0.ffn.experts.0.w1.weight": Made("I8", (6, 32)),
            "layers.0.ffn.experts.0.w1.scale": Made("F8_E8M0", (6, 2)),
            "layers.0.ffn.experts.0.w2.weight": Made("F4", (6, 64)),
            "layers.0.ffn.experts.0.w2.scale": Made("F8_E8M0", (6, 2)),
            "layers.0.ffn.experts.0.w3.weight": Made("U8", (6, 32)),
            "layers.0.ffn.experts.0.w3.scale": Made("F8_E8M0", (6, 2)),
            "layers.0.attn.wq.weight": Made("F8_E4M3", (130, 256)),
            "layers.0.attn.wq.scale": Made("F8_E8M0", (2, 2)),
            "layers.0.attn.wk.weight": Made("F8_E4M3", (130, 256)),
            "layers.0.attn.wk.weight_scale_inv": Made("F32", (2, 2)),
            "layers.0.norm.scale": Made("F32", (6,)),
        },
        {
            f"layers.0.ffn.experts.0.w{number}.weight": Linked(1, 1, 32, "e2m1", (6, 64), "e8m0")
            for number in (1, 2, 3)
        },
        {
            "layers.0.attn.wq.weight": template.BLOCKS,
            "layers.0.attn.wk.weight": template.BLOCKS,
        },
        config(quant_method="fp8", weight_block_size=[128, 128]),
    ),
    "compressed-by-shape": Model(
        {
            "nv.weight_packed": Made("U8", (6, 32)),
            "nv.weight_scale": Made("F8_E4M3", (6, 4)),
            "nv.weight_global_scale": GLOBAL,
            "mx.weight_packed": Made("U8", (6, 32)),
            "mx.weight_scale": Made("U8", (6, 2)),
            "eight.weight": Made("F8_E4M3", (6, 64)),
            "eight.weight_scale": Made("U8", (6, 2)),
            "row.weight": Made("F8_E4M3", (6, 64)),
            "row.weight_scale": Made("BF16", (6, 1)),
            "group.weight": Made("F8_E4M3", (6, 64)),
            "group.weight_scale": Made("BF16", (6, 2)),
            "integer.weight": Made("I8", (6, 64)),
            "integer.weight_scale": Made("F32", (6, 1)),
            "block.weight": Made("F8_E4M3", (200, 300)),
            "block.weight_scale": Made("F32", (2, 3)),
            "tensor.weight": Made("F8_E4M3", (6, 64)),
            "tensor.weight_scale": Made("F32", (1,)),
        },
        {
            "nv.weight_packed": Linked(2, 1, 16, "e2m1", (6, 64), "f8e4m3"),
            "mx.weight_packed": Linked(1, 1, 32, "e2m1", (6, 64), "e8m0"),
            "eight.weight": Linked(1, 1, 32, "f8e4m3", (6, 64), "e8m0"),
            "row.weight": Linked(1, 1, 64, "f8e4m3", (6, 64), "bf16"),
            "group.weight": Linked(1, 1, 32, "f8e4m3", (6, 64), "bf16"),
            "integer.weight": Linked(1, 1, 64, "i8", (6, 64), "f32"),
        },
        {
            "block.weight": template.BLOCKS,
            "tensor.weight": template.ONE_SCALE,
        },
    ),
    "blocks-by-config": Model(
        {
            "a.weight": Made("F8_E4M3", (128, 128)),
            "a.weight_scale": Made("F32", (2, 2)),
            "b.weight": Made("F8_E4M3", (1, 128)),
            "b.weight_scale": Made("BF16", (1, 2)),
        },
        reasons=dict.fromkeys(("a.weight", "b.weight"), template.BLOCKS),
        config=compressed(
            "float-quantized", num_bits=8, type="float", strategy="block", block_structure=[64, 64]
        ),
    ),
    "no-convention": Model(
        {
            "signed.weight_packed": Made("I8", (6, 32)),
            "signed.weight_scale": Made("F8_E4M3", (6, 4)),
            "wide.weight_packed": Made("U8", (6, 32)),
            "wide.weight_scale": Made("F32", (6, 4)),
            "outer.weight_packed": Made("U8", (6, 32)),
            "outer.weight_scale": Made("F8_E4M3", (6, 4)),
            "outer.weight_global_scale": Made("BF16", (1,)),
        },
        reasons=dict.fromkeys(
            ("signed.weight_packed", "wide.weight_packed", "outer.weight_packed"), links.NOT_KNOWN
        ),
    ),
    "no-columns": Model(
        {"a.weight": Made("F8_E4M3", (6, 0)), "a.weight_scale": Made("F32", (6, 1))},
        reasons={"a.weight": links.TOO_LARGE},
    ),
    "no-pairs": Model(
        {
            "a_blocks": Made("F32", (6, 4, 16)),
            "a_scales": Made("F32", (6, 4)),
            "c.weight": Made("F32", (6, 8)),
            "c.scales": Made("F32", (6, 8)),
            "d.weight": Made("BF16", (6, 8)),
            "d.scale": Made("F8_E8M0", (6, 8)),
        }
    ),
    "two-bits-in-words": Model(
        _packed_words(a__weight_packed=Made("I32", (4, 8))),
        reasons={"a.weight_packed": "elements of 2 bits"},
        config=compressed("pack-quantized", num_bits=2, type="int", strategy="group", group_size=32),
    ),
    "int8-zero-points": Model(
        {
            "a.weight": Made("I8", (6, 64)),
            "a.weight_scale": Made("F32", (6, 1)),
            "a.weight_zero_point": Made("I8", (6, 1)),
        },
        reasons={"a.weight": template.ZERO_POINTS},
        config=compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=False),
    ),
    "int4-zero-points": Model(
        {
            "a.weight_packed": Made("I32", (4, 16)),
            "a.weight_scale": Made("BF16", (4, 4)),
            "a.weight_shape": sizes(4, 128),
            "a.weight_zero_point": Made("I32", (1, 4)),
        },
        reasons={"a.weight_packed": template.ZERO_POINTS},
    ),
    "modelopt-mxfp4": Model(
        {"a.weight": Made("U8", (6, 32)), "a.weight_scale": Made("U8", (6, 2))},
        {"a.weight": Linked(1, 1, 32, "e2m1", (6, 64), "e8m0")},
        config={"config.json": {"text_config": {"quantization_config": {"quant_method": "modelopt"}}}},
    ),
    "two-scales-for-one": Model(
        {
            "a.weight": Made("U8", (6, 32)),
            "a.scale": Made("F8_E8M0", (6, 2)),
            "a.weight_scale": Made("U8", (6, 2)),
        },
        reasons={"a.weight": links.NOT_KNOWN},
    ),
    "int4-by-shape": Model(_packed_words(), {"a.weight_packed": Linked(1, 1, 32, "u4", (4, 128), "bf16")}),
    "int8-words": Model(
        _packed_words(
            a__weight_shape=sizes(4, 64),
            a__weight_scale=Made("BF16", (4, 1)),
        ),
        {"a.weight_packed": Linked(1, 1, 64, "u8", (4, 64), "bf16")},
        config=compressed("pack-quantized", num_bits=8, type="int", strategy="channel"),
    ),
    "int4-part-words": Model(
        _packed_words(a__weight_shape=sizes(4, 124)),
        reasons={"a.weight_packed": template.PART_WORDS},
    ),
    "int4-activation-order": Model(
        _packed_words(a__weight_g_idx=Made("I32", (128,))),
        reasons={"a.weight_packed": template.ACTIVATION_ORDER},
    ),
    "swizzled-modelopt": Model(
        {
            "a.weight": Made("U8", (130, 40)),
            "a.weight_scale": Made("U8", (2048,)),
            "a.weight_scale_2": Made("F32", ()),
            "a.input_scale": Made("F32", ()),
        },
        reasons={"a.weight": template.SWIZZLED},
        config=modelopt("NVFP4"),
    ),
    "swizzled-comfyui": Model(
        {
            "four.weight": Made("U8", (144, 40)),
            "four.weight_scale": Made("F8_E4M3", (256, 8)),
            "four.weight_scale_2": Made("F32", ()),
            "four.comfy_quant": comfy_quant("nvfp4"),
            "eight.weight": Made("F8_E4M3", (160, 96)),
            "eight.weight_scale": Made("U8", (256, 4)),
            "eight.comfy_quant": comfy_quant("mxfp8"),
        },
        reasons=dict.fromkeys(("four.weight", "eight.weight"), template.SWIZZLED),
    ),
    "gptq": Model(
        {
            "a.qweight": Made("I32", (16, 8)),
            "a.qzeros": Made("I32", (1, 1)),
            "a.scales": Made("F16", (1, 8)),
            "a.g_idx": Made("I32", (128,)),
        },
        reasons={"a.qweight": template.OWN_ORDER},
        config=config(quant_method="gptq", bits=4, group_size=128),
    ),
    "plain": Model(
        {
            "a.weight": Made("F32", (3, 5)),
            "a.scale": Made("F32", (3,)),
            "b.weight": Made("BF16", ()),
            "empty": Made("F16", (0, 4)),
            "k.F6_E2M3": Made("F6_E2M3", (4,)),
            "k.F6_E3M2": Made("F6_E3M2", (2, 2)),
            "日本語": Made("C64", (2,)),
            "true": Made("BOOL", (3,), b"\1\0\1"),
        }
    ),
}


def write_gguf(path: Path) -> None:
    """A file by the gguf package: blocks of three types, rows that need padding, a vocabulary."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("general.quantization_version", 2)
    writer.add_array("tokenizer.ggml.tokens", [f"word {number}" for number in range(50)])
    numbers = np.random.default_rng(7)
    for name, rows, size, kind in (
        ("blk.0.ffn_gate_exps.weight", 5, 2 * 17, gguf.GGMLQuantizationType.MXFP4),
        ("blk.0.attn_q.weight", 3, 2 * 144, gguf.GGMLQuantizationType.Q4_K),
        ("blk.0.attn_k.weight", 3, 2 * 34, gguf.GGMLQuantizationType.Q8_0),
    ):
        blocks = numbers.integers(0, 256, (rows, size), dtype=np.uint8)
        writer.add_tensor(name, blocks, raw_dtype=kind)
    writer.add_tensor("output_norm.weight", numbers.standard_normal((3, 5)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
