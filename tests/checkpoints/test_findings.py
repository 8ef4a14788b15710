"""Every fault of a checkpoint is a finding that says which tensor, which file and where."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kiln_check.checkpoints.check import check_checkpoint
from kiln_check.checkpoints.checkpoint_rules import CHECKPOINT_RULES
from kiln_check.cli import main
from kiln_check.constants import LONGEST_CONFIG, LONGEST_HEADER
from kiln_check.constants import LONGEST_HEADER as LONGEST_JSON
from kiln_check.report import Report
from tests.checkpoints.building import (
    FOLDERS,
    Made,
    copy_of,
    edit,
    safetensors_bytes,
    tensors_of,
    with_header,
    without_last_row,
)
from tests.checkpoints.models import MODELS, write_gguf
from tests.places import CHECKPOINTS

INDEX = "model.safetensors.index.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
DOWN = "model.layers.0.mlp.down_proj"
Q = "model.layers.0.self_attn.q_proj"


def safetensors(raw: bytes) -> Callable[[Path], Path]:
    """A case: a folder with one file of these bytes."""

    def build(folder: Path) -> Path:
        (folder / "model.safetensors").write_bytes(raw)
        return folder / "model.safetensors"

    return build


def header(text: str, body: bytes = b"") -> Callable[[Path], Path]:
    return safetensors(with_header(text.encode(), body))


def entry(dtype: str = '"U8"', shape: str = "[3]", offsets: str = "[0,3]") -> str:
    return f'{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}'


def changed(folder: str, file: str, change: Callable[[dict[str, Made]], object]) -> Callable[[Path], Path]:
    """A case: a real checkpoint with the tensors of one file changed."""

    def build(target: Path) -> Path:
        copy = copy_of(folder, target)
        edit(copy / file, change)
        return copy

    return build


def sharded(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    """A case: the real sharded checkpoint with something changed."""

    def build(target: Path) -> Path:
        copy = copy_of("ct-nvfp4-sharded", target)
        (target / "model.safetensors").write_bytes(safetensors_bytes({"x": Made("U8", (1,))}))
        change(copy)
        return copy

    return build


def index(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], Path]:
    """A case: the real sharded checkpoint with its index changed."""

    def rewrite(folder: Path) -> None:
        content = json.loads((folder / INDEX).read_text())
        change(content)
        (folder / INDEX).write_text(json.dumps(content))

    return sharded(rewrite)


def moved(folder: Path, name: str, *, keep: bool) -> None:
    """Put a tensor of the second file into the first too, or instead."""
    tensor = tensors_of(folder / SECOND)[name]
    edit(folder / FIRST, lambda tensors: tensors.update({name: tensor}))
    if not keep:
        edit(folder / SECOND, lambda tensors: tensors.pop(name))


def copied_into_the_second(folder: Path, name: str) -> None:
    """Put a tensor of the first file, where the index has it, into the second too."""
    tensor = tensors_of(folder / FIRST)[name]
    edit(folder / SECOND, lambda tensors: tensors.update({name: tensor}))


def without_the_second(folder: Path) -> None:
    (folder / INDEX).unlink()
    (folder / SECOND).unlink()


def gguf_bytes(
    tensors: bytes = b"", num_tensors: int = 0, keys: bytes = b"", num_keys: int = 0, version: int = 3
) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys) + keys + tensors


def gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_entry(name: str, shape: tuple[int, ...], kind: int = 24, offset: int = 0) -> bytes:
    return (
        gguf_string(name)
        + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        + struct.pack("<IQ", kind, offset)
    )


def gguf(raw: bytes) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        (folder / "model.gguf").write_bytes(raw)
        return folder / "model.gguf"

    return build


def gguf_of(
    *entries: bytes, body: bytes = bytes(64), keys: bytes = b"", num_keys: int = 0
) -> Callable[[Path], Path]:
    head = gguf_bytes(b"".join(entries), len(entries), keys, num_keys)
    return gguf(head + bytes(-len(head) % 32) + body)


def gguf_key(name: str, kind: int, value: bytes) -> bytes:
    return gguf_string(name) + struct.pack("<I", kind) + value


def gguf_split(number: int) -> Callable[[Path], Path]:
    """A case: a file that was split into one, with a number of its own."""
    keys = gguf_key("split.no", 2, struct.pack("<H", number)) + gguf_key("split.count", 2, b"\1\0")
    build = gguf_of(gguf_entry("a", (64,)), keys=keys, num_keys=2)
    return lambda folder: build(folder).rename(folder / "model-00001-of-00001.gguf")


def one_numbered_gguf(folder: Path) -> Path:
    write_gguf(folder / "model-00002-of-00003.gguf")
    return folder


GPTQ = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}


def declared_gptq(change: Callable[[dict[str, Made]], object]) -> Callable[[Path], Path]:
    """Three layers of GPTQ, changed."""

    def build(folder: Path) -> Path:
        made: dict[str, Made] = {}
        for layer in range(3):
            made[f"l.{layer}.q.qweight"] = Made("I32", (8, 32))
            made[f"l.{layer}.q.qzeros"] = Made("I32", (2, 4))
            made[f"l.{layer}.q.scales"] = Made("F16", (2, 32))
            made[f"l.{layer}.q.g_idx"] = Made("I32", (64,))
        change(made)
        (folder / "config.json").write_text(json.dumps(GPTQ))
        return safetensors(safetensors_bytes(made))(folder)

    return build


CASES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "safetensors of seven bytes": ("header-length", safetensors(b"\2\0\0\0\0\0\0")),
    "an empty safetensors": ("not-weights", safetensors(b"")),
    "a safetensors of four bytes": ("header-length", safetensors(b"\2\0\0\0")),
    "a header longer than the format allows": ("header-length", safetensors(b"\xff" * 8 + b"{}")),
    "a header longer than the file": ("header-length", safetensors(b"\x40" + bytes(7) + b"{}")),
    "a header that is no JSON": ("header-text", header("{")),
    "a header that is no object": ("header-text", header("[]")),
    "a header that is not UTF-8": ("header-text", safetensors(with_header(b'{"\xff":1}'))),
    "a header with something after the object": ("header-text", header("{} {}")),
    "half of a surrogate pair": ("header-text", header(f'{{"\\ud800":{entry()}}}', b"abc")),
    "metadata that is no string": ("header-text", header('{"__metadata__":{"a":1}}')),
    "an entry that does not end": ("header-text", header('{"a":{"dtype":"U8"')),
    "an entry nested deeply": ("header-text", header('{"a":' + "[" * 3000 + "]" * 3000 + "}")),
    "a dtype that the format has not": (
        "header-entry",
        header(f'{{"a":{entry(dtype=chr(34) + "U9" + chr(34))}}}'),
    ),
    "a dtype that is no string": ("header-entry", header(f'{{"a":{entry(dtype="8")}}}')),
    "a shape of negative size": ("header-entry", header(f'{{"a":{entry(shape="[-3]")}}}')),
    "a shape of a size with a point": ("header-entry", header(f'{{"a":{entry(shape="[3.0]")}}}')),
    "a shape of truth": ("header-entry", header(f'{{"a":{entry(shape="[true]")}}}')),
    "a number of more than 64 bits": (
        "header-entry",
        header(f'{{"a":{entry(shape="[18446744073709551616]")}}}'),
    ),
    "offsets that are three": ("header-entry", header(f'{{"a":{entry(offsets="[0,1,2]")}}}')),
    "an end before its begin": ("header-entry", header(f'{{"a":{entry(offsets="[3,0]")}}}', b"abc")),
    "an entry without a shape": ("header-entry", header('{"a":{"dtype":"U8","data_offsets":[0,3]}}', b"abc")),
    "an entry that is no object": ("header-entry", header('{"a":7}')),
    "a key twice in an entry": (
        "header-entry",
        header('{"a":{"dtype":"U8","dtype":"U8","shape":[3],"data_offsets":[0,3]}}', b"abc"),
    ),
    "an element that ends within a byte": (
        "header-entry",
        header(f'{{"a":{entry(dtype=chr(34) + "F4" + chr(34), offsets="[0,2]")}}}', b"ab"),
    ),
    "a tensor twice": ("duplicate-key", header(f'{{"a":{entry()},"a":{entry()}}}', b"abc")),
    "metadata twice": ("duplicate-key", header('{"__metadata__":{},"__metadata__":{}}')),
    "a key of metadata twice": ("duplicate-key", header('{"__metadata__":{"a":"1","a":"1"}}')),
    "a name that import keeps for itself": (
        "source-name",
        safetensors(safetensors_bytes({"kiln.source/head/x": Made("U8", (3,))})),
    ),
    "a name that is too long": (
        "source-name",
        safetensors(safetensors_bytes({"n" * 65536: Made("U8", (3,))})),
    ),
    "nine dimensions": ("source-rank", safetensors(safetensors_bytes({"a": Made("U8", (1,) * 9)}))),
    "payloads that end after the file": ("file-short", header(f'{{"a":{entry()}}}', b"ab")),
    "an offset far after the file": (
        "file-short",
        header(f'{{"a":{entry(offsets="[0,18446744073709551615]")}}}', b"ab"),
    ),
    "payloads that share a byte": (
        "payload-overlap",
        header(f'{{"a":{entry()},"b":{entry(offsets="[2,5]")}}}', b"abcde"),
    ),
    "payloads that are one": ("payload-overlap", header(f'{{"a":{entry()},"b":{entry()}}}', b"abc")),
    "nothing stored within a payload": (
        "payload-overlap",
        header(f'{{"a":{entry()},"b":{entry(shape="[0]", offsets="[1,1]")}}}', b"abc"),
    ),
    "a gap": ("payload-gap", header(f'{{"a":{entry(offsets="[1,4]")}}}', b".abc")),
    "bytes after the last payload": ("payload-gap", header(f'{{"a":{entry()}}}', b"abc.")),
    "a shard that is gone": ("shard-missing", sharded(lambda folder: (folder / FIRST).unlink())),
    "an index that names a file elsewhere": (
        "shard-missing",
        index(lambda content: content["weight_map"].update(x="../x.safetensors")),
    ),
    "an index that names a file in another folder": (
        "shard-missing",
        index(lambda content: content["weight_map"].update(x=os.path.join("..", "model.safetensors"))),
    ),
    "an index that names a file of no checkpoint": (
        "shard-missing",
        index(lambda content: content["weight_map"].update(x="config.json")),
    ),
    "a numbered shard that is gone": (
        "shard-missing",
        sharded(without_the_second),
    ),
    "an index that names an absent tensor": (
        "index-absent",
        index(lambda content: content["weight_map"].update(x=FIRST)),
    ),
    "an index that names the wrong file": (
        "index-absent",
        sharded(lambda folder: moved(folder, f"{DOWN}.weight_scale", keep=False)),
    ),
    "an index that names nothing": ("index-absent", index(lambda content: content["weight_map"].clear())),
    "an index that leaves a tensor out": (
        "index-unlisted",
        index(lambda content: content["weight_map"].pop("lm_head.weight")),
    ),
    "a tensor in two shards": (
        "two-shards",
        sharded(lambda folder: copied_into_the_second(folder, "lm_head.weight")),
    ),
    "an index without a weight_map": ("header-text", index(lambda content: content.pop("weight_map"))),
    "an index that is no JSON": ("header-text", sharded(lambda folder: (folder / INDEX).write_text("{,}"))),
    "an index that is not UTF-8": (
        "header-text",
        sharded(lambda folder: (folder / INDEX).write_bytes(b"\xff")),
    ),
    "an index that names a tensor twice": (
        "duplicate-key",
        sharded(
            lambda folder: (folder / INDEX).write_text(
                (folder / INDEX)
                .read_text()
                .replace('"weight_map": {', f'"weight_map": {{"lm_head.weight":"{FIRST}",')
            )
        ),
    ),
    "an index with something after the object": (
        "header-text",
        sharded(lambda folder: (folder / INDEX).write_text((folder / INDEX).read_text() + "é}")),
    ),
    "an index with two weight_maps": (
        "duplicate-key",
        sharded(
            lambda folder: (folder / INDEX).write_text(
                (folder / INDEX).read_text().rstrip("}\n ") + '},"weight_map":{}}'
            )
        ),
    ),
    "an index without a colon": (
        "header-text",
        sharded(lambda folder: (folder / INDEX).write_text('{"weight_map" {}}')),
    ),
    "a config that is no JSON": (
        "config-text",
        sharded(lambda folder: (folder / "config.json").write_text("{")),
    ),
    "a config that is no object": (
        "config-text",
        sharded(lambda folder: (folder / "config.json").write_text("[]")),
    ),
    "a config nested deeply": (
        "config-text",
        sharded(lambda folder: (folder / "config.json").write_text("[" * 100000)),
    ),
    "a config that is too long": (
        "config-text",
        sharded(lambda folder: (folder / "config.json").write_text("{}" + " " * LONGEST_CONFIG)),
    ),
    "a scale that is missing": (
        "scale-missing",
        changed("ct-mxfp4", "model.safetensors", lambda tensors: tensors.pop(f"{Q}.weight_scale")),
    ),
    "an outer scale that is missing": (
        "scale-missing",
        changed("ct-nvfp4", "model.safetensors", lambda tensors: tensors.pop(f"{Q}.weight_global_scale")),
    ),
    "a scale of whole bytes that is missing": (
        "scale-missing",
        changed("ct-fp8-channel", "model.safetensors", lambda tensors: tensors.pop(f"{Q}.weight_scale")),
    ),
    "a scale of ModelOpt that is missing": (
        "scale-missing",
        MODELS["modelopt-nvfp4"]
        ._replace(
            tensors={
                "a.weight": Made("U8", (6, 32)),
                "a.weight_scale_2": Made("F32", ()),
                "a.input_scale": Made("F32", ()),
            }
        )
        .write,
    ),
    "a scale of MLX that is missing": (
        "scale-missing",
        MODELS["mlx-by-config"]._replace(tensors={"a.weight": Made("U32", (6, 8))}).write,
    ),
    "a scale of gpt-oss that is missing": (
        "scale-missing",
        MODELS["gpt-oss"]._replace(tensors={"a_blocks": Made("U8", (6, 8, 16))}).write,
    ),
    "a scale that nothing uses": (
        "scale-unused",
        changed(
            "ct-mxfp4",
            "model.safetensors",
            lambda tensors: tensors.update({"x.weight_scale": Made("U8", (3, 3))}),
        ),
    ),
    "a scale and an outer scale that nothing uses": (
        "scale-unused",
        changed("ct-nvfp4", "model.safetensors", lambda tensors: tensors.pop(f"{Q}.weight_packed")),
    ),
    "a scale of blocks cut short": (
        "scale-shape",
        changed(
            "ct-fp8-block",
            "model.safetensors",
            lambda tensors: tensors.update({f"{DOWN}.weight_scale": Made("BF16", (1, 1))}),
        ),
    ),
    "a scale of a matrix cut short": (
        "scale-shape",
        changed(
            "ct-fp8-tensor",
            "model.safetensors",
            lambda tensors: tensors.update(
                {f"{Q}.weight_scale": without_last_row(tensors[f"{Q}.weight_scale"])}
            ),
        ),
    ),
    "a scale with zero points cut short": (
        "scale-shape",
        changed(
            "ct-int4-asym",
            "model.safetensors",
            lambda tensors: tensors.update(
                {f"{Q}.weight_scale": without_last_row(tensors[f"{Q}.weight_scale"])}
            ),
        ),
    ),
    "packed words cut short": (
        "packed-shape",
        changed(
            "ct-int4",
            "model.safetensors",
            lambda tensors: tensors.update(
                {f"{Q}.weight_packed": without_last_row(tensors[f"{Q}.weight_packed"])}
            ),
        ),
    ),
    "no magic of GGUF": ("header-magic", gguf(b"GGML" + bytes(60))),
    "an empty gguf": ("not-weights", gguf(b"")),
    "version 1": ("header-version", gguf(gguf_bytes(version=1))),
    "a big-endian gguf of version 2": ("header-version", gguf(b"GGUF" + struct.pack(">IQQ", 2, 0, 0))),
    "a gguf cut in its header": ("header-length", gguf(gguf_bytes()[:20])),
    "a gguf that claims more tensors than it has bytes": (
        "header-length",
        gguf(gguf_bytes(num_tensors=1 << 63)),
    ),
    "a gguf that claims more keys than it has bytes": ("header-length", gguf(gguf_bytes(num_keys=1 << 63))),
    "an array that claims more than the file has": (
        "header-length",
        gguf(gguf_bytes(keys=gguf_key("a", 9, struct.pack("<IQ", 0, 1 << 63)), num_keys=1)),
    ),
    "an array of strings that claims more than the file has": (
        "header-length",
        gguf(gguf_bytes(keys=gguf_key("a", 9, struct.pack("<IQ", 8, 1 << 63)), num_keys=1)),
    ),
    "a string that is longer than the file": (
        "header-length",
        gguf(gguf_bytes(keys=gguf_key("a", 8, b"\xff" * 8), num_keys=1)),
    ),
    "a value of a type that GGUF has not": (
        "header-text",
        gguf(gguf_bytes(keys=gguf_key("a", 13, bytes(8)), num_keys=1)),
    ),
    "a name in gguf that is too long": (
        "header-text",
        gguf_of(gguf_entry("n" * 65536, (64,))),
    ),
    "a value of a type that GGUF has not, after those that it has": (
        "header-text",
        gguf(
            gguf_bytes(
                keys=gguf_key("a", 9, struct.pack("<IQ", 5, 2) + bytes(8))
                + gguf_key("general.alignment", 4, struct.pack("<I", 64))
                + gguf_key("b", 99, bytes(8)),
                num_keys=3,
            )
        ),
    ),
    "arrays nested deeply": (
        "header-text",
        gguf(gguf_bytes(keys=gguf_key("a", 9, struct.pack("<IQ", 9, 1) * 20 + bytes(64)), num_keys=1)),
    ),
    "an alignment of 0": (
        "header-text",
        gguf(gguf_bytes(keys=gguf_key("general.alignment", 4, bytes(4)), num_keys=1)),
    ),
    "an alignment that is no u32": (
        "header-text",
        gguf(gguf_bytes(keys=gguf_key("general.alignment", 10, (64).to_bytes(8, "little")), num_keys=1)),
    ),
    "a numbered gguf that is gone": ("shard-missing", one_numbered_gguf),
    "a tensor of nine dimensions in gguf": ("header-text", gguf_of(gguf_entry("a", (1,) * 9))),
    "a key twice": (
        "duplicate-key",
        gguf(gguf_bytes(keys=gguf_key("a", 0, b"\1") * 2, num_keys=2) + bytes(6)),
    ),
    "a tensor twice in gguf": ("duplicate-key", gguf_of(gguf_entry("a", (64,)), gguf_entry("a", (64,)))),
    "a name that llama.cpp refuses": ("reader-limit", gguf_of(gguf_entry("n" * 64, (64,)))),
    "payloads of gguf out of order": (
        "payload-order",
        gguf_of(gguf_entry("a", (32,), offset=32), gguf_entry("b", (32,))),
    ),
    "a number of a split file that is not its name's": ("split-count", gguf_split(number=1)),
    "a row of half a block": ("header-entry", gguf_of(gguf_entry("a", (16, 4), kind=8), body=bytes(68))),
    "a name in gguf that is not UTF-8": (
        "source-name",
        gguf_of(gguf_entry("a", (64,)).replace(b"a", b"\xff")),
    ),
    "a gguf without its payloads": ("file-short", gguf_of(gguf_entry("a", (65,)))),
    "an offset in gguf that wraps": ("file-short", gguf_of(gguf_entry("a", (64,), offset=2**64 - 32))),
    "payloads of gguf that overlap": (
        "payload-overlap",
        gguf_of(gguf_entry("a", (64,)), gguf_entry("b", (32,), offset=32)),
    ),
    "a gap in gguf": ("payload-gap", gguf_of(gguf_entry("a", (32,), offset=32))),
    "a GPTQ weight of another dtype": (
        "other-format",
        declared_gptq(lambda made: made.update({"l.0.q.qweight": Made("I64", (8, 32))})),
    ),
    "a GPTQ layer of many without its g_idx": (
        "unlike-siblings",
        declared_gptq(lambda made: made.pop("l.1.q.g_idx")),
    ),
    "a payload of gguf out of alignment": (
        "payload-align",
        gguf_of(gguf_entry("a", (8,)), gguf_entry("b", (48,), offset=16)),
    ),
}


def check(path: Path) -> Report:
    """What `kiln check` makes of a path that is one checkpoint."""
    return check_checkpoint(path / INDEX if (path / INDEX).exists() else path)


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_one_finding(case: str, tmp_path: Path) -> None:
    rule, build = CASES[case]
    path = build(tmp_path)
    report = check(path)
    assert [found.rule for found in report.findings[:1]] == [rule]
    assert report.verdict == CHECKPOINT_RULES[rule].status
    (finding,) = report.findings
    assert finding.file is not None
    assert finding.message.isprintable()
    assert 0 <= finding.offset <= finding.offset + finding.length
    if not case.startswith(("a config that is too", "an index that names a file of")):
        assert finding.offset + finding.length <= os.path.getsize(finding.file)
    assert main(["check", str(path)]) == 1


def indexed_with_wrong_total(folder: Path) -> Path:
    (folder / "a.safetensors").write_bytes(safetensors_bytes({"a": Made("F32", (1,))}))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 5}, "weight_map": {"a": "a.safetensors"}}))
    return index


WARNINGS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "a payload of safetensors out of alignment": (
        "payload-align",
        safetensors(
            with_header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"abcd", pad=False)
        ),
    ),
    "an index whose total is off": ("index-size", indexed_with_wrong_total),
    "a safetensors without a tensor": ("no-element", safetensors(safetensors_bytes({}))),
    "a safetensors without an entry, with metadata": (
        "no-element",
        safetensors(safetensors_bytes({}, {"format": "pt"})),
    ),
    "a safetensors of tensors without an element": (
        "no-element",
        safetensors(safetensors_bytes({"a": Made("F32", (0,)), "b": Made("U8", (0,))})),
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_what_the_format_allows_is_a_warning(case: str, tmp_path: Path) -> None:
    rule, build = WARNINGS[case]
    path = build(tmp_path)
    report = check(path)
    assert [(found.rule, found.level) for found in report.findings] == [(rule, "warning")]
    assert report.ok
    assert main(["check", str(path)]) == 0
    assert main(["import", str(path), "-o", str(tmp_path / "out.kiln")]) == 0


def test_each_rule_on_checkpoints_has_a_case() -> None:
    found = {rule for rule, _ in (*CASES.values(), *WARNINGS.values())}
    assert found == CHECKPOINT_RULES.keys() - {"not-verified"}  # which --strict alone finds


@pytest.mark.parametrize("rule", CHECKPOINT_RULES)
def test_each_rule_on_checkpoints_is_explained(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", rule]) == 0
    assert CHECKPOINT_RULES[rule].about in capsys.readouterr().out


QUANTIZED = {
    "ct-nvfp4": ("weight_packed", 16),
    "ct-mxfp4": ("weight_packed", 32),
    "ct-mxfp8": ("weight", 32),
    "ct-int4": ("weight_packed", 128),
    "ct-fp8-channel": ("weight", 0),
}


ELEMENTS = {"U8": 2, "I32": 8}
"""Elements of four bits in one of a packed weight, by its dtype."""


@pytest.mark.parametrize("folder", QUANTIZED)
def test_a_scale_without_its_last_row_is_told_with_both_names_and_the_numbers(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of(folder, tmp_path)
    suffix, group_size = QUANTIZED[folder]
    weight, scale = f"{Q}.{suffix}", f"{Q}.weight_scale"
    tensors = tensors_of(copy / "model.safetensors")
    dtype, (rows, columns) = tensors[scale].dtype, tensors[scale].shape
    edit(
        copy / "model.safetensors",
        lambda tensors: tensors.update({scale: without_last_row(tensors[scale])}),
    )
    assert main(["check", str(copy)]) == 1
    verdict, note, found, *others = capsys.readouterr().out.splitlines()
    assert verdict == f"{copy / 'model.safetensors'}: TYPE"
    assert note.startswith("  linked 7: ")
    whole = f"{tensors[weight].dtype} {list(tensors[weight].shape)}"
    assert found.startswith(
        f'  scale-shape: "{scale}" is {dtype} [{rows - 1}, {columns}] beside "{weight}" {whole}; '
    )
    assert dtype in found.rpartition("; ")[2]
    assert found.endswith(f" [{rows}, {columns}] there")
    if group_size:
        row = tensors[weight].shape[1] * ELEMENTS.get(tensors[weight].dtype, 1)
        assert f"{row} / {group_size}" in others[0]
        assert f" = {columns}" in others[0]
    (entry_at,) = re.findall(
        rf"{re.escape(str(copy))}/model.safetensors, byte (\d+)  {dtype} ", "\n".join(others)
    )
    assert (copy / "model.safetensors").read_bytes()[int(entry_at) :].startswith(f'"{scale}":'.encode())


def test_a_wrong_shape_across_shards_is_told_where_the_scale_is_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    scale = f"{DOWN}.weight_scale"
    edit(copy / SECOND, lambda tensors: tensors.update({scale: without_last_row(tensors[scale])}))
    assert main(["check", "--format", "json", str(copy)]) == 1
    (report,) = json.loads(capsys.readouterr().out)["files"]
    total, finding = report["findings"]
    assert (total["rule"], total["level"]) == ("index-size", "warning")
    assert report["path"] == str(copy / INDEX)
    assert (finding["rule"], finding["status"], finding["name"]) == ("scale-shape", "TYPE", scale)
    assert finding["file"] == str(copy / SECOND)
    assert f'beside "{DOWN}.weight_packed" U8 ' in finding["message"]
    raw = (copy / SECOND).read_bytes()
    assert raw[finding["offset"] :][: finding["length"]].startswith(f'"{scale}":'.encode())
    assert raw[finding["offset"] :][: finding["length"]].endswith(b"}")


def test_an_outer_scale_without_an_element_is_told_where_it_is_described(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4", tmp_path)
    outer = f"{Q}.weight_global_scale"
    edit(copy / "model.safetensors", lambda tensors: tensors.update({outer: Made("F32", (0,))}))
    (found,) = check(copy).findings
    assert (found.rule, found.name) == ("scale-shape", outer)
    assert (copy / "model.safetensors").read_bytes()[found.offset :].startswith(f'"{outer}":'.encode())


def test_a_name_that_the_rules_reject_is_a_finding_at_its_entry(tmp_path: Path) -> None:
    tensors = {
        "": Made("U8", (3,)),
        "a\nb": Made("U8", (3,)),
        "é": Made("U8", (3,)),
        "z\x85": Made("U8", (1,)),
    }
    path = safetensors(safetensors_bytes(tensors))(tmp_path)
    report = check_checkpoint(str(path))
    assert [(found.rule, found.name) for found in report.findings] == [
        ("name-text", ""),
        ("name-text", "a\nb"),
        ("name-text", "z\x85"),
    ]
    raw = path.read_bytes()
    for found, key in zip(report.findings, (b'""', b'"a\\nb"', b'"z\\u0085"'), strict=True):
        assert raw[found.offset : found.offset + found.length].startswith(key + b":")


def test_places_count_bytes_where_names_are_not_ascii(tmp_path: Path) -> None:
    text = f'{{"日本":{entry()},"é":{entry(offsets="[3,6]", shape="[4]")}}}'
    path = header(text, b"abcdef")(tmp_path)
    (found,) = check_checkpoint(str(path)).findings
    assert (found.rule, found.name) == ("data-length", "é")
    assert path.read_bytes()[found.offset : found.offset + found.length].decode().startswith('"é":{')


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_real_checkpoint_is_ok(folder: str) -> None:
    report = check(CHECKPOINTS / folder)
    assert (report.verdict, report.findings) == ("OK", ())


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_of_each_convention_is_ok(name: str, tmp_path: Path) -> None:
    assert check(MODELS[name].write(tmp_path)).findings == ()


def test_a_gguf_file_is_ok(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    assert check_checkpoint(str(tmp_path / "model.gguf")).findings == ()


def test_what_no_file_of_an_index_has_is_missed_where_a_shard_is_gone_too(tmp_path: Path) -> None:
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / SECOND).unlink()
    content = json.loads((copy / INDEX).read_text())
    del content["weight_map"][f"{DOWN}.weight_scale"]
    (copy / INDEX).write_text(json.dumps(content))
    gone, found = check_checkpoint(str(copy / FIRST)).findings
    assert gone.rule == "shard-missing"
    assert (found.rule, found.name) == ("scale-missing", f"{DOWN}.weight_packed")


def test_a_header_longer_than_the_format_allows_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write((LONGEST_JSON + 1).to_bytes(8, "little") + b"{}")
        file.truncate(2 * LONGEST_JSON)
    (found,) = check_checkpoint(str(tmp_path / "model.safetensors")).findings
    assert (found.rule, found.offset, found.length) == ("header-length", 0, 8)
    assert found.message == f"the header claims {LONGEST_JSON + 1} bytes; the format allows {LONGEST_JSON}"


def test_a_very_long_gguf_header_is_not_read(tmp_path: Path) -> None:
    head = gguf_bytes(keys=gguf_key("a", 8, struct.pack("<Q", LONGEST_HEADER)), num_keys=1)
    with open(tmp_path / "model.gguf", "wb") as file:
        file.write(head)
        file.truncate(2 * LONGEST_HEADER)
    (found,) = check_checkpoint(str(tmp_path / "model.gguf")).findings
    assert found.rule == "header-length"


def test_what_can_not_be_read_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "model.safetensors"
    assert main(["check", str(missing)]) == 2
    assert capsys.readouterr().err == f"kiln: {missing}: No such file or directory\n"
    copy = copy_of("ct-nvfp4-sharded", tmp_path)
    (copy / SECOND).unlink()
    (copy / SECOND).mkdir()
    assert main(["check", str(copy)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert SECOND in err
