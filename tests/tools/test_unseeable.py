"""Why headers can't show a break: each reason holds of what it is about, and of nothing beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.places import ROOT, ZOO
from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Change, Setting
from tools.breaking.documents import metadata_of, says, values_of
from tools.breaking.folder import Checkpoint, Tensor, read
from tools.breaking.judging import breaks_of
from tools.breaking.unseeable import UNSEEABLE, reason_for
from tools.zoo import unpack

REASONS = {holds.__name__: reason for holds, reason in UNSEEABLE}


def tensor(dtype: str, *shape: int) -> Tensor:
    return Tensor(dtype, shape, "model.safetensors")


def holding(tensors: Mapping[str, Tensor], **config: Any) -> Checkpoint:
    """A checkpoint of these tensors, all in the module "m", and of a config."""
    named = {f"m.{suffix}": one for suffix, one in tensors.items()}
    documents = {"config.json": {"quantization_config": config}} if config else {}
    return Checkpoint("made", {"model.safetensors": None}, named, documents, {})


def changed(
    kind: str, module: Mapping[str, Tensor], suffix: str, after: Tensor | None, **config: Any
) -> Break:
    """A break that changes one tensor of a module."""
    left = {**module, suffix: after}
    broken = holding({name: one for name, one in left.items() if one is not None}, **config)
    return Break(kind, "", broken, frozenset({"m"}), (Change(module, suffix, after),))


def resaid(kind: str, setting: Setting, module: Mapping[str, Tensor], **config: Any) -> Break:
    """A break that changes what a config says."""
    return Break(kind, "", holding(module, **config), frozenset(), setting=setting)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Break]:
    """Every break of the zoo."""
    to = tmp_path_factory.mktemp("unseeable")
    return [
        broken for archive in sorted(ZOO.glob("*.zip")) for broken in breaks_of(read(unpack(archive, to)))
    ]


def of(real: list[Break], name: str, *parts: str) -> list[str | None]:
    """The reasons for the breaks of a checkpoint that have these texts in what they change."""
    found = [one for one in real if one.broken.name == name and all(part in one.what for part in parts)]
    assert found, (name, parts)
    return [reason_for(one) for one in found]


def test_every_reason_explains_a_break_of_the_zoo(real: list[Break]) -> None:
    found = {reason_for(broken) for broken in real}
    assert found == {None, *REASONS.values()}
    page = (ROOT / "docs" / "reference" / "breaking.md").read_text("utf-8")
    assert [reason for reason in REASONS.values() if f"| {reason} |" not in page] == []


def test_reasons_differ() -> None:
    assert len(set(REASONS.values())) == len(UNSEEABLE) == len(REASONS)


# --- shapes and dtypes

WHOLE = {"weight": tensor("F8_E4M3", 64, 192), "weight_scale": tensor("F32"), "input_scale": tensor("F32")}
ROWS = {"weight": tensor("F8_E4M3", 64, 192), "weight_scale": tensor("F32", 64, 1)}
BLOCKS = {"weight": tensor("F8_E4M3", 130, 200), "weight_scale_inv": tensor("F32", 2, 2)}
SPACED = {"weight": tensor("F8_E4M3", 130, 200), "weight_scale": tensor("F32", 2, 1, 2, 1)}
FUSED = {"weight": tensor("F8_E4M3", 4, 130, 200), "weight_scale_inv": tensor("F32", 4, 2, 2)}
GROUPS = {"weight": tensor("U8", 64, 96), "weight_scale": tensor("U8", 64, 6)}
COLUMNS = {"weight": tensor("I8", 128, 96), "weight_scales": tensor("F16", 96)}
EXPERTS = {"down_proj": tensor("F8_E4M3", 2, 64, 96), "down_proj_scale": tensor("F32", 2, 96, 1)}
TILES = {"_weight_qdata": tensor("F8_E4M3", 192, 64), "_weight_scale": tensor("F8_E8M0", 64, 16)}
WORDS = {"weight._data._data": tensor("U8", 64, 96), "weight._scale": tensor("BF16", 128, 1)}
SINGLE = {"up": tensor("F8_E4M3", 2, 64, 96), "up_scale": tensor("F32")}
INTEGERS = {"weight": tensor("I8", 64, 160), "weight_scale": tensor("BF16", 64, 5)}
PAIRS = {"weight": tensor("I8", 64, 96), "scale": tensor("F8_E8M0", 64, 6)}
UE8M0 = {"weight": tensor("F8_E4M3", 64, 192), "weight_scale_inv": tensor("F8_E8M0", 64, 6)}
HQQ = {"W_q": tensor("U8", 24, 64), "nbits": tensor("I32")}

EETQ, FBGEMM = {"quant_method": "eetq"}, {"quant_method": "fbgemm_fp8"}
INT_QUANTIZED = {"format": "int-quantized", "group_size": 32}
PACKED = {"format": "pack-quantized", "group_size": 32}

HIDDEN: list[tuple[str, dict[str, Tensor], str, Tensor, dict[str, Any], str | None]] = [
    (kinds.ROW_MORE, WHOLE, "weight", tensor("F8_E4M3", 65, 192), {}, "fits_its_scales"),
    (kinds.TRANSPOSED, WHOLE, "weight", tensor("F8_E4M3", 192, 64), {}, "fits_its_scales"),
    (kinds.FLATTENED, WHOLE, "weight", tensor("F8_E4M3", 12288), {}, None),
    (kinds.ROW_MORE, WHOLE, "weight_scale", tensor("F32", 2), {}, None),
    (kinds.COLUMN_LESS, ROWS, "weight", tensor("F8_E4M3", 64, 191), {}, "fits_its_scales"),
    (kinds.ROW_LESS, ROWS, "weight", tensor("F8_E4M3", 63, 192), {}, None),
    (kinds.TRANSPOSED, ROWS, "weight", tensor("F8_E4M3", 192, 64), {}, None),
    (kinds.ROW_MORE, ROWS, "weight_scale", tensor("F32", 65, 1), {}, None),
    (kinds.ROW_MORE, BLOCKS, "weight", tensor("F8_E4M3", 131, 200), {}, "has_as_many_blocks"),
    (kinds.TRANSPOSED, BLOCKS, "weight", tensor("F8_E4M3", 200, 130), {}, "has_as_many_blocks"),
    (kinds.EXCHANGED, BLOCKS, "weight", tensor("F8_E4M3", 260, 200), {}, None),
    (kinds.ROW_MORE, BLOCKS, "weight_scale_inv", tensor("F32", 3, 2), {}, None),
    (kinds.ROW_LESS, SPACED, "weight", tensor("F8_E4M3", 129, 200), {}, "has_as_many_blocks"),
    (kinds.ROW_LESS, SPACED, "weight", tensor("F8_E4M3", 128, 200), {}, None),
    (kinds.COLUMN_LESS, GROUPS, "weight", tensor("U8", 64, 95), {}, None),
    (kinds.COLUMN_LESS, FUSED, "weight", tensor("F8_E4M3", 4, 130, 199), {}, "has_as_many_blocks"),
    (kinds.ROW_MORE, FUSED, "weight", tensor("F8_E4M3", 5, 130, 200), {}, None),
    (kinds.ROW_MORE, COLUMNS, "weight", tensor("I8", 129, 96), EETQ, "fits_its_columns"),
    (kinds.ROW_MORE, COLUMNS, "weight", tensor("I8", 129, 96), {"quant_method": "fp8"}, None),
    (kinds.COLUMN_MORE, COLUMNS, "weight", tensor("I8", 128, 97), EETQ, None),
    (kinds.ROW_LESS, EXPERTS, "down_proj", tensor("F8_E4M3", 2, 63, 96), FBGEMM, "fits_its_columns"),
    (kinds.COLUMN_LESS, EXPERTS, "down_proj", tensor("F8_E4M3", 2, 64, 95), FBGEMM, None),
    (kinds.ROW_MORE, TILES, "_weight_qdata", tensor("F8_E4M3", 193, 64), {}, "fills_as_many_tiles"),
    (kinds.ROW_MORE, TILES, "_weight_qdata", tensor("F8_E4M3", 257, 64), {}, None),
    (kinds.COLUMN_LESS, INTEGERS, "weight", tensor("I8", 64, 159), INT_QUANTIZED, "rounds_groups_up"),
    (kinds.COLUMN_LESS, INTEGERS, "weight", tensor("I8", 64, 159), PACKED, None),
    (kinds.COLUMN_MORE, INTEGERS, "weight", tensor("I8", 64, 161), INT_QUANTIZED, None),
    (kinds.COLUMN_MORE, WORDS, "weight._data._data", tensor("U8", 64, 97), {}, "has_rows_of_any_length"),
    (kinds.ROW_MORE, WORDS, "weight._data._data", tensor("U8", 65, 96), {}, None),
    (kinds.MADE_TWO, SINGLE, "up_scale", tensor("F32", 2), {}, "is_one_for_each_expert"),
    (kinds.MADE_TWO, {**SINGLE, "up": tensor("U8", 3, 64, 96)}, "up_scale", tensor("F32", 2), {}, None),
    (kinds.MADE_TWO, WHOLE, "weight_scale", tensor("F32", 2), {}, None),
    (kinds.DTYPE, ROWS, "weight_scale", tensor("BF16", 64, 1), {}, "is_cast"),
    (kinds.DTYPE, ROWS, "weight_scale", tensor("I32", 64, 1), {}, None),
    (kinds.DTYPE, UE8M0, "weight_scale_inv", tensor("F32", 64, 6), {}, "holds_powers_of_two"),
    (kinds.DTYPE, UE8M0, "weight_scale_inv", tensor("F8_E4M3", 64, 6), {}, None),
    (kinds.DTYPE, BLOCKS, "weight", tensor("BF16", 130, 200), {"dequantize": False}, "is_unconverted"),
    (kinds.DTYPE, BLOCKS, "weight", tensor("BF16", 130, 200), {"quant_method": "fp8"}, None),
    (kinds.DTYPE, ROWS, "weight", tensor("BF16", 64, 192), {"dequantize": False}, None),
    (kinds.DTYPE, PAIRS, "weight", tensor("U8", 64, 96), {}, "holds_pairs"),
    (kinds.DTYPE, INTEGERS, "weight", tensor("U8", 64, 160), {}, None),
    (kinds.DTYPE, HQQ, "nbits", tensor("F32"), {}, "is_a_width"),
    (kinds.DTYPE, HQQ, "nbits", tensor("I64"), {}, None),
    (kinds.DTYPE, {"nbits": tensor("I32")}, "nbits", tensor("F32"), {}, None),
]


@pytest.mark.parametrize(("kind", "module", "suffix", "after", "config", "holds"), HIDDEN)
def test_a_reason_holds_where_the_broken_module_is_sound_by_itself(
    kind: str,
    module: dict[str, Tensor],
    suffix: str,
    after: Tensor,
    config: dict[str, Any],
    holds: str | None,
) -> None:
    assert reason_for(changed(kind, module, suffix, after, **config)) == (REASONS[holds] if holds else None)


SDNQ = {
    "quant_method": "sdnq",
    "group_size": 0,
    "weights_dtype": "uint4",
    **dict.fromkeys(("use_codebook", "use_quantized_matmul", "use_svd"), False),
}


@pytest.mark.parametrize(
    ("elements", "scales", "size", "sound"),
    [
        (64 * 192, (64, 3, 1), 0, True),
        (64 * 192, (64, 1), 0, False),
        (64 * 192, (64, 4, 1), 0, False),
        (64 * 192, (192, 1), 0, True),
        (64 * 192, (192, 1), 32, False),
        (64 * 192, (192, 2, 1), 32, True),
        (64 * 100, (64, 1), 64, True),
        (64 * 100, (64, 2, 1), 34, False),
        (64 * 100, (64, 2, 1), 32, True),
        (64 * 192, (7, 1), 0, False),
    ],
)
def test_sdnq_makes_the_groups_that_divide_a_row(
    elements: int, scales: tuple[int, ...], size: int, sound: bool
) -> None:
    """32 leave 4 of 100 over, and so there are 2 groups of 50; 34 would leave one group of 100."""
    module = {"weight": tensor("U8", elements // 2), "scale": tensor("F32", 1, 1)}
    broken = changed(kinds.EXCHANGED, module, "scale", tensor("F32", *scales), **{**SDNQ, "group_size": size})
    assert reason_for(broken) == (REASONS["is_of_another_matrix"] if sound else None)


def test_a_run_of_sdnq_tells_nothing_with_other_settings() -> None:
    module = {"weight": tensor("U8", 6144), "scale": tensor("F32", 64, 3, 1)}
    after = tensor("F32", 192, 1)
    assert reason_for(changed(kinds.EXCHANGED, module, "scale", after, **SDNQ)) is not None
    assert reason_for(changed(kinds.ROW_MORE, module, "scale", after, **SDNQ)) is None
    for key, value in (("use_svd", True), ("quant_method", "fp8"), ("weights_dtype", "uint8")):
        assert reason_for(changed(kinds.EXCHANGED, module, "scale", after, **{**SDNQ, key: value})) is None


# --- removals


def test_scales_of_inputs_may_all_be_gone_where_no_config_says_that_they_are_stored() -> None:
    broken = changed(kinds.ALL_REMOVED, WHOLE, "input_scale", None)
    assert reason_for(broken) == REASONS["is_of_activations"]
    assert reason_for(broken._replace(kind=kinds.REMOVED)) == REASONS["is_of_activations"]
    assert reason_for(broken._replace(broken=holding(WHOLE))) is None
    assert reason_for(changed(kinds.REMOVED, WHOLE, "weight_scale", None)) is None
    assert reason_for(changed(kinds.REMOVED, WHOLE, "input_scale", None, activation_scheme="static")) is None


def test_scales_of_the_cache_may_be_gone_where_no_config_says_that_it_has_some() -> None:
    cache = {"kv_scale": tensor("F32")}
    assert reason_for(changed(kinds.REMOVED, cache, "kv_scale", None)) == REASONS["is_of_the_cache"]
    static = changed(kinds.REMOVED, cache, "kv_scale", None, kv_cache_quant_algo=None)
    assert reason_for(static) == REASONS["is_of_the_cache"]
    assert reason_for(changed(kinds.REMOVED, cache, "kv_scale", None, kv_cache_quant_algo="FP8")) is None
    assert reason_for(changed(kinds.MADE_TWO, cache, "kv_scale", tensor("F32", 2))) is None


REMOVALS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("g_idx", {"desc_act": False}, {"desc_act": True}, "is_an_order_of_columns"),
    ("pre_quant_scale", {"quant_algo": "W4A16_AWQ"}, {"quant_algo": "FP8"}, "may_be_folded"),
    (
        "backward_hadamard_matrix",
        {"backward_dtype": "bf16"},
        {"backward_dtype": "mxfp4"},
        "is_of_training",
    ),
    (
        "weight_zero_point",
        {"format": "dense", "weights": {"symmetric": True}},
        {"format": "dense", "weights": {"symmetric": False}},
        "is_always_zero",
    ),
    (
        "weight_zero_point",
        {"format": "dense", "weights": {"symmetric": True}},
        {"format": "int-quantized", "weights": {"symmetric": True}},
        "is_always_zero",
    ),
]


@pytest.mark.parametrize(("suffix", "config", "other", "holds"), REMOVALS)
def test_one_tensor_may_be_gone_by_the_config(
    suffix: str, config: dict[str, Any], other: dict[str, Any], holds: str
) -> None:
    module = {"weight": tensor("I8", 4, 4), suffix: tensor("I32", 4)}
    other_module = {f"other.{name}": one for name, one in module.items()}

    def removed(kind: str, gone: str, said: dict[str, Any]) -> Break:
        broken = changed(kind, module, gone, None, **said)
        return broken._replace(
            broken=broken.broken._replace(tensors={**broken.broken.tensors, **other_module})
        )

    assert reason_for(removed(kinds.REMOVED, suffix, config)) == REASONS[holds]
    assert reason_for(removed(kinds.REMOVED, suffix, other)) is None
    assert reason_for(removed(kinds.REMOVED, suffix, {})) is None
    assert reason_for(removed(kinds.REMOVED, "weight", config)) is None


def test_a_label_may_be_gone_that_the_metadata_gives(real: list[Break]) -> None:
    labels = "comfy_quant", "removed"
    for name in ("c2q-mxfp8", "c2q-nvfp4-meta"):
        assert set(of(real, name, *labels)) == {REASONS["is_a_second_label"], REASONS["is_a_label"]}
    assert set(of(real, "c2q-int8-row", *labels)) == {None, REASONS["is_a_label"]}
    module = {"weight": tensor("I8", 4, 4), "comfy_quant": tensor("U8", 9)}
    broken = changed(kinds.REMOVED, module, "comfy_quant", None)
    left = {**broken.broken.tensors, "other.comfy_quant": tensor("U8", 9)}
    for name, reason in (("m", REASONS["is_a_second_label"]), ("other", None)):
        metadata = {"a": {"_quantization_metadata": json.dumps({"layers": {name: {"format": "nvfp4"}}})}}
        described = broken.broken._replace(tensors=left, metadata=metadata)
        assert reason_for(broken._replace(broken=described)) == reason


# --- settings


def test_a_width_is_hidden_where_every_element_has_a_byte_of_its_own() -> None:
    eight = {"weight": tensor("I8", 64, 64), "weight_scale": tensor("F32", 64, 1)}
    setting = Setting("bits", 8, 4)
    assert reason_for(resaid(kinds.WIDTH, setting, eight)) == REASONS["holds_any_width"]
    assert reason_for(resaid(kinds.WIDTH, setting, GROUPS)) is None


def groups_of_gptq(columns: int, **own: Any) -> Break:
    """Four bits in groups of 64 for one module, made 128 in the config."""
    module = {"qweight": tensor("I32", columns // 8, 64), "scales": tensor("F16", 1, 64)}
    config = {"bits": 4, "group_size": 32, "extra_config": {"m": {"group_size": 128, **own}}}
    return resaid(kinds.GROUP_SIZE, Setting("group_size", 64, 128), module, **config)


def test_a_group_size_is_hidden_where_rows_are_no_longer() -> None:
    assert reason_for(groups_of_gptq(64)) == REASONS["is_longer_than_rows"]
    assert reason_for(groups_of_gptq(128)) is None
    assert reason_for(groups_of_gptq(64, bits=2)) is None
    packed = {"weight_packed": tensor("I32", 64, 8), "weight_scale": tensor("BF16", 64, 1)}
    for target, reason in (("re:m", REASONS["is_longer_than_rows"]), ("re:other", None)):
        group = {"targets": [target], "weights": {"num_bits": 4, "group_size": 128}}
        setting = Setting("group_size", 64, 128)
        broken = resaid(kinds.GROUP_SIZE, setting, packed, config_groups={"group_0": group})
        assert reason_for(broken) == reason


def test_what_is_for_all_others_is_hidden_where_there_are_none() -> None:
    module = {"weight": tensor("U32", 64, 6), "scales": tensor("BF16", 64, 2)}

    def resized(**own: Any) -> Break:
        broken = resaid(kinds.WIDTH, Setting("bits", 4, 8), module)
        config = {"quantization": {"mode": "affine", "bits": 8, **own}}
        return broken._replace(broken=broken.broken._replace(documents={"config.json": config}))

    assert reason_for(resized(m={"bits": 3})) == REASONS["is_taken_by_none"]
    assert reason_for(resized(m={"bits": 8})) is None
    assert reason_for(resized(m={"group_size": 32})) is None
    assert reason_for(resized(other={"bits": 3})) is None


def test_a_size_is_hidden_where_the_metadata_describes_every_module() -> None:
    broken = resaid(
        kinds.GROUP_SIZE, Setting("group_size", 32, 64), INTEGERS, quant_method="torchao", group_size=64
    )

    def describing(metadata: dict[str, str]) -> Break:
        return broken._replace(broken=broken.broken._replace(metadata={"model.safetensors": metadata}))

    assert reason_for(describing({"m.weight": '{"_tensor_data_names": []}'})) == REASONS["is_in_metadata"]
    assert reason_for(describing({"m.weight": '{"_type": "Tensor"}'})) is None
    assert reason_for(describing({"other.weight": '{"_tensor_data_names": []}'})) is None
    assert reason_for(broken) is None


@pytest.mark.parametrize(
    ("key", "method", "before", "after", "hidden"),
    [
        ("quant_algo", "modelopt", "mxfp4", "W4A8_MXFP4_FP8", True),
        ("quant_algo", "modelopt", "mxfp4", "NVFP4", False),
        ("dtype", "quark", "int4", "uint4", True),
        ("dtype", "quark", "int4", "int2", False),
        ("dtype", "other", "int4", "uint4", False),
    ],
)
def test_a_format_is_hidden_where_the_tool_stores_the_same(
    key: str, method: str, before: str, after: str, hidden: bool
) -> None:
    broken = resaid(kinds.FORMAT, Setting(key, before, after), GROUPS, quant_method=method)
    assert reason_for(broken) == (REASONS["stores_the_same"] if hidden else None)


# --- the documents


def test_values_are_found_however_deep() -> None:
    document = {"a": 1, "b": [{"a": None}, {"c": {"a": {"a": 2}}}]}
    assert list(values_of(document, "a")) == [1, None, {"a": 2}, 2]
    assert says({"x": [{"a": 1}, {"a": 2}]}, "a", 1, 2)
    assert not says({"x": [{"a": 1}, {"a": 2}]}, "a", 1)
    assert not says({}, "a", 1)


def test_metadata_is_parsed_where_it_is_json() -> None:
    def found(metadata: Mapping[str, str] | None) -> Iterator[Any]:
        return metadata_of(holding(ROWS)._replace(metadata={"a": metadata}), "key")

    assert list(found({"key": '{"a": 1}'})) == [{"a": 1}]
    assert list(found({"key": "pt"})) == ["pt"]
    assert list(found({"other": "pt"})) == list(found(None)) == []
