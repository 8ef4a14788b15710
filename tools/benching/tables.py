"""The tables of the bench, as lines of Markdown. Each makes its files, measures, and yields its rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from tools.benching.checkpoints import build_checkpoint
from tools.benching.contenders import (
    CHECKPOINT_CONTENDERS,
    CONTENDERS,
    check_beside,
    get_one,
    installed,
    kiln_command,
    open_one,
)
from tools.benching.files import build, names, write_broken, write_small, write_weights
from tools.benching.measure import (
    CAN_MEASURE_PEAKS,
    broken_time,
    checkpoint_times,
    directory_times,
    fresh_time,
    medians,
    peak_of_allocations,
    peak_of_process,
    run,
    times_of,
    written_times,
)

NO_PEAKS = "- not measured: this system has no /proc"

GOAL_OF_TIME = 6
"""A check of a checkpoint takes at most so many times as long as json.loads of its headers."""

GOAL_OF_MEMORY = 4
"""A check of a checkpoint takes at most so many times the bytes of its headers."""


def directories(folder: Path, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of all contenders on directories of several sizes."""
    cases = [build(folder, count) for count in sizes]
    cases.append(build(folder, max(sizes), shuffled=True))
    missing = [name for name in ("safetensors", "gguf") if not installed(name)]
    yield table_row("tensors", *CONTENDERS, "safetensors / check", "check / floor")
    yield table_row(*["---:"] * (len(CONTENDERS) + 3))
    notes = [f"{name} is not installed and was not measured" for name in missing]
    for case in cases:
        times, refused = directory_times(case, rounds)
        notes += refused
        taken = times["kiln check"]
        yield table_row(
            case.title,
            *(time_text(times.get(name)) for name in CONTENDERS),
            ratio_text(times.get("safetensors"), taken),
            ratio_text(taken, times["floor"]),
        )
    yield from ("", *(f"- {note}" for note in notes))


def memory(folder: Path, count: int) -> Iterator[str]:
    """The table of what a process that checks one file takes above the interpreter."""
    if not CAN_MEASURE_PEAKS:
        yield NO_PEAKS
        return
    case = build(folder, count)
    peak = peak_of_process("check", case.kiln)
    yield table_row("tensors", "directory + names", "peak above the interpreter", "ratio")
    yield table_row(*["---:"] * 4)
    yield table_row(f"{count:,}", size_text(case.head), size_text(peak), f"{peak / case.head:.2f} ×")


def commands(folder: Path, num_files: int, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of whole commands, from the start of the process to its end."""
    first = write_small(folder, num_files)
    many = str(folder / "many")
    nothing = [sys.executable, "-c", "pass"]
    pairs = [
        ("1 small file", str(first), "python -c pass", nothing),
        (f"{num_files:,} small files", many, "a Python loop", [sys.executable, "-c", LOOP, many]),
    ]
    large = [build(folder, count) for count in sizes]
    pairs += [
        (f"1 file of {case.title} tensors", str(case.kiln), "python -c pass", nothing) for case in large
    ]
    yield table_row("`kiln check` of", "median", "beside it", "median", "ratio")
    yield table_row("---", "---:", "---", "---:", "---:")
    for title, path, other_title, other in pairs:
        runs = [partial(run, [*kiln_command(), "check", path]), partial(run, other)]
        yield comparison_row(title, other_title, medians(runs, rounds))


LOOP = """
import os, sys
for parent, _, files in os.walk(sys.argv[1]):
    for name in files:
        with open(os.path.join(parent, name), "rb") as file:
            file.read()
"""


def checkpoints(folder: Path, size: tuple[int, int], rounds: int) -> Iterator[str]:
    """The tables of a check of a checkpoint: its time, and its memory, each beside its goal."""
    num_tensors, num_shards = size
    checkpoint = build_checkpoint(folder / "checkpoint", num_tensors, num_shards)
    times = checkpoint_times(checkpoint, rounds)
    loads, *_, check = CHECKPOINT_CONTENDERS
    yield table_row(f"{num_tensors:,} tensors, {num_shards:,} shards", "best", "/ json.loads", "goal")
    yield table_row("---", "---:", "---:", "---:")
    for name, taken in times.items():
        goal = f"≤ {GOAL_OF_TIME} ×" if name == check else "–"
        yield table_row(name, time_text(taken), ratio_text(taken, times[loads]), goal)
    yield ""
    yield table_row(f"check of {size_text(checkpoint.headers)} of headers", "peak", "/ headers", "goal")
    yield table_row("---", "---:", "---:", "---:")
    index = checkpoint.index_path
    peaks = {"allocated in the check (tracemalloc)": peak_of_allocations(index)}
    if CAN_MEASURE_PEAKS:
        peaks["process, above the interpreter (VmHWM)"] = peak_of_process("check_checkpoint", index)
    for name, peak in peaks.items():
        ratio = ratio_text(peak, checkpoint.headers)
        yield table_row(name, size_text(peak), ratio, f"≤ {GOAL_OF_MEMORY} ×")
    if not installed("safetensors"):
        yield "\n- safetensors is not installed and was not measured"


def weights(folder: Path, size: int, count: int, rounds: int) -> Iterator[str]:
    """The table of moving weights: an import beside `cp`, one tensor out of many beside safetensors."""
    source, imported, copied = (folder / name for name in ("in.safetensors", "out.kiln", "out.copy"))
    write_weights(source, size)
    writers = {
        imported: [*kiln_command(), "import", str(source), "-o", str(imported)],
        copied: ["cp", str(source), str(copied)],
    }
    taken = written_times(writers, rounds)
    source.unlink()
    yield table_row("Kiln", "median", "beside it", "median", "ratio")
    yield table_row("---", "---:", "---", "---:", "---:")
    yield comparison_row(f"kiln import of {size >> 20:,} MiB", "cp", taken)
    if not installed("safetensors"):
        yield "\n- safetensors is not installed: one tensor out of many was not measured"
        return
    case = build(folder, count)
    name = next(islice(names(), count // 2, None))
    taken = medians([partial(open_one, case, name), partial(get_one, case, name)], rounds)
    yield comparison_row(f"open, and 1 of {case.title} tensors", "safe_open, get_tensor", taken)


def line(folder: Path, sizes: Sequence[int], rounds: int) -> Iterator[str]:
    """The table of a check on either side of the line, with NumPy loaded before and in a new process."""
    yield table_row("tensors", "plain Python", "NumPy", "plain Python, new process", "NumPy, new process")
    yield table_row(*["---:"] * 5)
    for count in sizes:
        path = build(folder, count).kiln
        lines = (count + 1, 0)
        warm = medians([partial(check_beside, start, path) for start in lines], rounds, times_of(count))
        cold = [fresh_time(start, path, rounds) for start in lines]
        yield table_row(f"{count:,}", *map(time_text, warm + cold))


def broken(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """The table of directories in which every tensor breaks rules, each checked once."""
    yield table_row("tensors, all broken", "findings", "kiln check", "a tensor")
    yield table_row(*["---:"] * 4)
    for count in sizes:
        path = folder / f"{count}-broken.kiln"
        write_broken(path, count)
        taken, findings = broken_time(path)
        yield table_row(f"{count:,}", f"{findings:,}", f"{taken:.1f} s", time_text(taken / count))


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def comparison_row(title: str, other_title: str, taken: Sequence[float]) -> str:
    """A row of two times beside each other, and their ratio."""
    one, other = taken
    return table_row(title, time_text(one), other_title, time_text(other), ratio_text(one, other))


def time_text(taken: float | None) -> str:
    if taken is None:
        return "–"
    return f"{taken * 1e3:.1f} ms" if taken >= 1e-3 else f"{taken * 1e6:.0f} µs"


def size_text(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def ratio_text(one: float | None, other: float) -> str:
    return "–" if one is None else f"{one / other:.1f} ×"
