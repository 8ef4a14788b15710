"""Measures `kiln check` side by side with what else reads a directory of tensors.

Builds its files in a temporary folder, with payloads that take no room on the disk,
runs every contender in turn, several rounds interleaved, and prints medians as
Markdown. docs/performance.md has the table and says what it shows.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kaitaistruct import KaitaiStream
from numpy.typing import NDArray

from kiln_check import check, screen
from kiln_check import open as kiln_open
from kiln_check.constants import ALIGNMENT, F32, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.directory import LEN_DESCRIPTOR, LEN_HEADER
from kiln_check.generated.kiln_v2 import KilnV2
from kiln_check.generated.kiln_v2_records import (
    DESCRIPTOR,
    DTYPES,
    HEADER_STRUCT,
    MAGIC,
    NO_AXIS,
    NO_INDEX,
    VERSION,
)

CODES = {name: code for code, name in DTYPES.items()}

EXPERTS = 128
PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
LAYER = 1 + EXPERTS * len(PROJECTIONS) * 2
"""Tensors of a layer: one outer scale, then for each projection a weight and its scale."""

ROWS, COLUMNS, GROUP = 64, 128, 16

GGUF_MOST = 10_000
PARSER_MOST = 100_000
SLOW = ("generated parser", "gguf")
SLOW_ROUNDS = 3
"""Rounds of the contenders that take seconds."""

SMALL = 1000
"""Tensors that are read for one measurement at least."""


def names() -> Iterator[str]:
    """The names of a model with experts, layer after layer, without an end."""
    layer = 0
    while True:
        experts = f"model.layers.{layer}.mlp.experts"
        yield f"{experts}.weight_outer_scale"
        for expert in range(EXPERTS):
            for projection in PROJECTIONS:
                yield f"{experts}.{expert}.{projection}.weight"
                yield f"{experts}.{expert}.{projection}.weight_scale"
        layer += 1


class Case(NamedTuple):
    """Files of as many tensors with the same names, in each format.

    Attributes:
        title: what the table calls it.
        num_tensors: number of tensors.
        kiln, safetensors, gguf: the files; None where there is none.
        head: size of header, directory and names of the Kiln file in bytes.

    """

    title: str
    num_tensors: int
    kiln: Path
    safetensors: Path | None
    gguf: Path | None
    head: int


def descriptors(count: int, order: NDArray[np.int64]) -> NDArray[Any]:
    """Sound descriptors whose payloads lie in the given order; half of the tensors have a scheme.

    Every other layer has scheme 2, the rest scheme 1. ofs_data starts at 0.
    """
    index = np.arange(count)
    place = index % LAYER
    is_outer = place == 0
    is_weight = (place % 2 == 1) & (index + 1 < count)
    with_outer = is_weight & (index // LAYER % 2 == 0)
    table = np.zeros(count, np.dtype(DESCRIPTOR))
    table["dtype"] = np.where(is_outer, F32, np.where(is_weight, CODES["e2m1"], CODES["f8e4m3"]))
    table["rank"] = np.where(is_outer, 0, 2)
    table["scheme"] = np.where(with_outer, SCALES_AND_OUTER, np.where(is_weight, SCALES, NONE))
    table["quant_axis"] = np.where(is_weight, 1, NO_AXIS)
    table["group_size"] = np.where(is_weight, GROUP, 0)
    table["scale_index"] = np.where(is_weight, index + 1, NO_INDEX)
    table["outer_index"] = np.where(with_outer, index - place, NO_INDEX)
    table["shape"][~is_outer, 0] = ROWS
    table["shape"][~is_outer, 1] = np.where(is_weight, COLUMNS, COLUMNS // GROUP)[~is_outer]
    lengths = np.where(is_outer, 4, np.where(is_weight, ROWS * COLUMNS // 2, ROWS * COLUMNS // GROUP))
    rooms = -(-lengths[order] // ALIGNMENT) * ALIGNMENT
    table["len_data"] = lengths
    table["ofs_data"][order] = np.cumsum(rooms) - rooms
    return table


def write_kiln(path: Path, table: NDArray[Any], labels: Sequence[str]) -> int:
    """Write a Kiln file without its payloads; return the size of its head in bytes."""
    pool = "".join(labels).encode()
    lengths = np.array([len(label) for label in labels])
    table["len_name"], table["ofs_name"] = lengths, np.cumsum(lengths) - lengths
    head = LEN_HEADER + LEN_DESCRIPTOR * len(table) + len(pool)
    table["ofs_data"] += np.uint64(-(-head // ALIGNMENT) * ALIGNMENT)
    size = int((table["ofs_data"] + table["len_data"]).max())
    header = struct.pack(HEADER_STRUCT, MAGIC, VERSION, 0, len(table), len(pool), size, b"")
    write_sparse(path, header + table.tobytes() + pool, size)
    return head


def write_safetensors(path: Path, lengths: Sequence[int], labels: Sequence[str]) -> None:
    """Write a safetensors file without its payloads."""
    entries, end = {}, 0
    for label, length in zip(labels, lengths, strict=True):
        entries[label] = {"dtype": "U8", "shape": [length], "data_offsets": [end, end + length]}
        end += length
    header = json.dumps(entries, separators=(",", ":")).encode()
    write_sparse(path, struct.pack("<Q", len(header)) + header, 8 + len(header) + end)


def write_gguf(path: Path, lengths: Sequence[int], labels: Sequence[str]) -> None:
    """Write a GGUF file without its payloads: version 3, no metadata, tensors of type I8."""
    parts, end = [struct.pack("<4sIQQ", b"GGUF", 3, len(labels), 0)], 0
    for label, length in zip(labels, lengths, strict=True):
        raw = label.encode()
        parts.append(struct.pack(f"<Q{len(raw)}sIQIQ", len(raw), raw, 1, length, 24, end))
        end += -(-length // 32) * 32
    head = b"".join(parts)
    write_sparse(path, head, -(-len(head) // 32) * 32 + end)


def write_sparse(path: Path, head: bytes, size: int) -> None:
    path.write_bytes(head)
    os.truncate(path, size)


def build(folder: Path, count: int, *, shuffled: bool = False) -> Case:
    """Build the files of one case; the shuffled one is in Kiln alone."""
    labels = list(islice(names(), count))
    order = np.random.default_rng(4).permutation(count) if shuffled else np.arange(count)
    table = descriptors(count, order)
    lengths = table["len_data"].tolist()
    stem = folder / f"{count}{'-shuffled' if shuffled else ''}"
    kiln, safetensors, gguf = (Path(f"{stem}.{suffix}") for suffix in ("kiln", "safetensors", "gguf"))
    head = write_kiln(kiln, table, labels)
    if shuffled:
        return Case(f"{count:,}, payloads shuffled", count, kiln, None, None, head)
    write_safetensors(safetensors, lengths, labels)
    if count <= GGUF_MOST:
        write_gguf(gguf, lengths, labels)
    return Case(f"{count:,}", count, kiln, safetensors, gguf if count <= GGUF_MOST else None, head)


def run_check(case: Case) -> None:
    assert check(case.kiln).ok


def run_parser(case: Case) -> None:
    with open(case.kiln, "rb") as file:
        head = file.read(case.head)
    assert len(KilnV2(KaitaiStream(BytesIO(head))).descriptors) == case.num_tensors


def run_safetensors(case: Case) -> None:
    from safetensors import safe_open

    with safe_open(case.safetensors, "np") as file:
        assert len(file.keys()) == case.num_tensors


def run_gguf(case: Case) -> None:
    from gguf import GGUFReader

    assert case.gguf is not None
    assert len(GGUFReader(case.gguf).tensors) == case.num_tensors


def run_floor(case: Case) -> None:
    with open(case.kiln, "rb") as file:
        file.seek(LEN_HEADER)
        np.frombuffer(file.read(LEN_DESCRIPTOR * case.num_tensors), np.uint8).sum()


Contender = Callable[[Case], None]

CONTENDERS: dict[str, tuple[Contender, Callable[[Case], bool]]] = {
    "kiln check": (run_check, lambda _case: True),
    "generated parser": (
        run_parser,
        lambda case: case.num_tensors <= PARSER_MOST and case.safetensors is not None,
    ),
    "safetensors": (run_safetensors, lambda case: case.safetensors is not None and installed("safetensors")),
    "gguf": (run_gguf, lambda case: case.gguf is not None and installed("gguf")),
    "floor": (run_floor, lambda _case: True),
}
"""Each with the cases that it can be measured on."""


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def seconds(run: Callable[[], object], times: int = 1) -> float:
    """How long one of so many runs after one another takes."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def times_of(num_tensors: int) -> int:
    """How often a directory is read for one measurement: more often if it is small."""
    return max(1, SMALL // num_tensors)


def measure(case: Case, rounds: int) -> tuple[dict[str, float], list[str]]:
    """The median seconds of each contender, and a line for each that refused the file."""
    able = [name for name, (_, can) in CONTENDERS.items() if can(case)]
    times: dict[str, list[float]] = {name: [] for name in able}
    notes = []
    for number in range(rounds):
        for name in list(able):
            if name in SLOW and number >= SLOW_ROUNDS:
                continue
            try:
                times[name].append(seconds(partial(CONTENDERS[name][0], case), times_of(case.num_tensors)))
            except Exception as error:
                able.remove(name)
                notes.append(f"{name} refuses {case.title} tensors: {error}")
    return {name: statistics.median(taken) for name, taken in times.items() if taken}, notes


def directories(folder: Path, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of all contenders on directories of several sizes."""
    cases = [build(folder, count) for count in sizes]
    cases.append(build(folder, max(sizes), shuffled=True))
    missing = [name for name in ("safetensors", "gguf") if not installed(name)]
    yield table_row("tensors", *CONTENDERS, "safetensors / check", "check / floor")
    yield table_row(*["---:"] * (len(CONTENDERS) + 3))
    notes = [f"{name} is not installed and was not measured" for name in missing]
    for case in cases:
        medians, refused = measure(case, rounds)
        notes += refused
        taken = medians["kiln check"]
        yield table_row(
            case.title,
            *(time_text(medians.get(name)) for name in CONTENDERS),
            ratio_text(medians.get("safetensors"), taken),
            ratio_text(taken, medians["floor"]),
        )
    yield from ("", *(f"- {note}" for note in notes))


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def time_text(taken: float | None) -> str:
    if taken is None:
        return "–"
    return f"{taken * 1e3:.1f} ms" if taken >= 1e-3 else f"{taken * 1e6:.0f} µs"


def ratio_text(one: float | None, other: float) -> str:
    return "–" if one is None else f"{one / other:.1f} ×"


PEAK = """
import sys
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
from kiln_check import check
assert check(sys.argv[1]).ok
print(before, peak())
"""


def peak_memory(folder: Path, count: int) -> Iterator[str]:
    """What a process that checks one file takes above the interpreter, NumPy included."""
    if not os.path.exists("/proc/self/status"):
        yield "- not measured: this system has no /proc"
        return
    case = build(folder, count)
    before, after = (int(kilobytes) * 1024 for kilobytes in output(PEAK, case.kiln).split())
    yield table_row("tensors", "directory + names", "peak above the interpreter", "ratio")
    yield table_row(*["---:"] * 4)
    yield table_row(
        f"{count:,}",
        f"{case.head / 1e6:.0f} MB",
        f"{(after - before) / 1e6:.0f} MB",
        f"{(after - before) / case.head:.2f} ×",
    )


LOOP = """
import os, sys
for parent, _, files in os.walk(sys.argv[1]):
    for name in files:
        with open(os.path.join(parent, name), "rb") as file:
            file.read()
"""


def commands(folder: Path, num_files: int, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of whole commands, from the start of the process to its end."""
    raw = build(folder, 3).kiln.read_bytes()
    many = folder / "many"
    for number in range(num_files):
        parent = many / f"{number // 1000:03}"
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f"{number:05}.kiln").write_bytes(raw)
    command = kiln_command()
    one = str(many / "000" / "00000.kiln")
    nothing = [sys.executable, "-c", "pass"]
    pairs = [
        ("1 small file", one, "python -c pass", nothing),
        (f"{num_files:,} small files", str(many), "a Python loop", [sys.executable, "-c", LOOP, str(many)]),
    ]
    large = [build(folder, count) for count in sizes]
    pairs += [
        (f"1 file of {case.title} tensors", str(case.kiln), "python -c pass", nothing) for case in large
    ]
    yield table_row("`kiln check` of", "median", "beside it", "median", "ratio")
    yield table_row("---", "---:", "---", "---:", "---:")
    for title, path, other_title, other in pairs:
        runs = [partial(run, [*command, "check", path]), partial(run, other)]
        taken, sibling = interleaved(runs, rounds)
        yield table_row(title, time_text(taken), other_title, time_text(sibling), ratio_text(taken, sibling))


def kiln_command() -> list[str]:
    """The command of this environment, or what stands for it in a checkout."""
    kiln = Path(sys.executable).with_name("kiln")
    return [str(kiln)] if kiln.exists() else [sys.executable, "-m", "kiln_check"]


def checkpoints(folder: Path, size: int, count: int, rounds: int) -> Iterator[str]:
    """The table of moving weights: an import beside `cp`, one tensor out of many beside safetensors."""
    source, imported, copied = (folder / name for name in ("in.safetensors", "out.kiln", "out.copy"))
    write_weights(source, size)
    commands = {
        imported: [*kiln_command(), "import", str(source), "-o", str(imported)],
        copied: ["cp", str(source), str(copied)],
    }
    measured: dict[Path, list[float]] = {imported: [], copied: []}
    for _ in range(rounds):
        for target, command in commands.items():
            os.sync()  # what was written before is not to be waited for now
            measured[target].append(seconds(partial(run, command)))
            target.unlink()
    taken, sibling = map(statistics.median, measured.values())
    yield table_row("Kiln", "median", "beside it", "median", "ratio")
    yield table_row("---", "---:", "---", "---:", "---:")
    title = f"kiln import of {size >> 20:,} MiB"
    yield table_row(title, time_text(taken), "cp", time_text(sibling), ratio_text(taken, sibling))
    source.unlink()
    if not installed("safetensors"):
        yield "\n- safetensors is not installed: one tensor out of many was not measured"
        return
    case = build(folder, count)
    name = next(islice(names(), count // 2, None))
    taken, sibling = interleaved([partial(open_one, case, name), partial(get_one, case, name)], rounds)
    title = f"open, and 1 of {case.title} tensors"
    yield table_row(
        title, time_text(taken), "safe_open, get_tensor", time_text(sibling), ratio_text(taken, sibling)
    )


def write_weights(path: Path, size: int) -> None:
    """A safetensors file of tensors of 1 MiB, whose bytes are there."""
    tensor = os.urandom(1 << 20)
    count = size // len(tensor)
    write_safetensors(path, [len(tensor)] * count, [f"model.layers.{index}.weight" for index in range(count)])
    with path.open("r+b") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        for _ in range(count):
            file.write(tensor)


def open_one(case: Case, name: str) -> None:
    with kiln_open(case.kiln) as file:
        bytes(file[name].bytes())


def get_one(case: Case, name: str) -> None:
    from safetensors import safe_open

    with safe_open(case.safetensors, framework="numpy") as file:
        file.get_tensor(name)


def run(command: Sequence[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def interleaved(runs: Sequence[Callable[[], object]], rounds: int, times: int = 1) -> list[float]:
    """The median seconds of each, run in turn."""
    measured: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for taken, each in zip(measured, runs, strict=True):
            taken.append(seconds(each, times))
    return [statistics.median(taken) for taken in measured]


FRESH = """
import sys, time
from kiln_check import screen
from kiln_check.checking import check
screen.COLUMNS_FROM = screen.LOAD_NUMPY_FROM = int(sys.argv[1])
start = time.perf_counter()
assert check(sys.argv[2]).ok
print(time.perf_counter() - start)
"""


def line(folder: Path, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of a check on either side of the line, with NumPy loaded before and in a new process."""
    yield table_row("tensors", "plain Python", "NumPy", "plain Python, new process", "NumPy, new process")
    yield table_row(*["---:"] * 5)
    for count in sizes:
        path = build(folder, count).kiln
        lines = (count + 1, 0)
        warm = interleaved([partial(check_beside, start, path) for start in lines], rounds, times_of(count))
        cold = [
            statistics.median(float(output(FRESH, start, path)) for _ in range(rounds)) for start in lines
        ]
        yield table_row(f"{count:,}", *map(time_text, warm + cold))


def check_beside(start: int, path: Path) -> None:
    """Check a file with NumPy used from `start` tensors on."""
    before = screen.COLUMNS_FROM
    screen.COLUMNS_FROM = start
    try:
        assert check(path).ok
    finally:
        screen.COLUMNS_FROM = before


def output(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def broken(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """The table of directories in which every tensor breaks rules, each checked once."""
    yield table_row("tensors, all broken", "findings", "kiln check", "a tensor")
    yield table_row(*["---:"] * 4)
    for count in sizes:
        table = descriptors(count, np.arange(count))
        table["reserved1"] = 1
        table["foreign_tag"] = 1
        table["group_size"] += 1
        path = folder / f"{count}-broken.kiln"
        write_kiln(path, table, list(islice(names(), count)))
        start = time.perf_counter()
        findings = len(check(path).findings)
        taken = time.perf_counter() - start
        yield table_row(f"{count:,}", f"{findings:,}", f"{taken:.1f} s", time_text(taken / count))


def numbers(text: str) -> list[int]:
    return [int(number.replace("_", "")) for number in text.split(",") if number]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure kiln check side by side with other tools.")
    parser.add_argument("--sizes", type=numbers, default=[3, 1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each table (15)")
    parser.add_argument("--files", type=int, default=10_000, help="small files of one command (10,000)")
    parser.add_argument("--line", type=numbers, default=[10, 25, 100, 1000, 4000, 5000, 10_000])
    parser.add_argument("--weights", type=int, default=2048, help="MiB that are imported and copied (2048)")
    parser.add_argument("--broken", type=numbers, default=[50_000, 100_000])
    options = parser.parse_args(arguments)
    versions = " ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in ("numpy", "kaitaistruct", "safetensors", "gguf")
        if installed(package)
    )
    print(f"Python {platform.python_version()}, {versions}; medians of {options.rounds} rounds.")
    largest = max(options.sizes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = {
            "Directories": directories(folder, options.sizes, options.rounds),
            "Memory": peak_memory(folder, largest),
            "Commands": commands(folder, options.files, options.sizes[-2:], options.rounds),
            "Checkpoints": checkpoints(folder, options.weights << 20, options.sizes[-2], options.rounds),
            "The line": line(folder, options.line, options.rounds),
            "Broken directories": broken(folder, options.broken),
        }
        for title, lines in parts.items():
            print(f"\n### {title}\n")
            for text in lines:
                print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
