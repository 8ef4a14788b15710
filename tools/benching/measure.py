"""Measurements: how long runs take in turn, and how much memory a process takes."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kiln_check import check
from tools.benching.checkpoints import Checkpoint
from tools.benching.contenders import CHECKPOINT_CONTENDERS, CONTENDERS, installed
from tools.benching.files import Case

SLOW_ROUNDS = 3
"""Rounds of the contenders that take seconds."""

SMALL = 1000
"""Tensors that are read for one measurement at least."""

CAN_MEASURE_PEAKS = os.path.exists("/proc/self/status")


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


def in_turn(runs: Sequence[Callable[[], object]], rounds: int, times: int = 1) -> list[list[float]]:
    """The seconds that each takes in each round; a round runs all of them."""
    measured: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for taken, each in zip(measured, runs, strict=True):
            taken.append(seconds(each, times))
    return measured


def medians(runs: Sequence[Callable[[], object]], rounds: int, times: int = 1) -> list[float]:
    """The median seconds of each, run in turn."""
    return [statistics.median(taken) for taken in in_turn(runs, rounds, times)]


def directory_times(case: Case, rounds: int) -> tuple[dict[str, float], list[str]]:
    """The median seconds of each contender, and a line for each that refused the file."""
    able = [name for name, contender in CONTENDERS.items() if contender.can(case)]
    times: dict[str, list[float]] = {name: [] for name in able}
    notes = []
    for number in range(rounds):
        for name in list(able):
            if CONTENDERS[name].slow and number >= SLOW_ROUNDS:
                continue
            try:
                times[name].append(seconds(partial(CONTENDERS[name].run, case), times_of(case.num_tensors)))
            except Exception as error:
                able.remove(name)
                notes.append(f"{name} refuses {case.title} tensors: {error}")
    return {name: statistics.median(taken) for name, taken in times.items() if taken}, notes


def checkpoint_times(checkpoint: Checkpoint, rounds: int) -> dict[str, float]:
    """The least seconds of each contender on a checkpoint, run in turn."""
    able = [name for name in CHECKPOINT_CONTENDERS if "safetensors" not in name or installed("safetensors")]
    measured = in_turn([partial(CHECKPOINT_CONTENDERS[name], checkpoint) for name in able], rounds)
    return dict(zip(able, map(min, measured), strict=True))


def run(command: Sequence[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def output(code: str, *arguments: object) -> str:
    """What a new process of this Python prints when it runs the code."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def written_times(commands: dict[Path, list[str]], rounds: int) -> list[float]:
    """The median seconds of commands that each write a file, which is removed after each run."""
    measured: dict[Path, list[float]] = {target: [] for target in commands}
    for _ in range(rounds):
        for target, command in commands.items():
            os.sync()  # what was written before is not to be waited for now
            measured[target].append(seconds(partial(run, command)))
            target.unlink()
    return [statistics.median(taken) for taken in measured.values()]


PEAK = """
import sys
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
import kiln_check
assert getattr(kiln_check, sys.argv[1])(sys.argv[2]).ok
print(before, peak())
"""


def peak_of_process(function: str, path: Path) -> int:
    """What a new process that checks takes above the interpreter in bytes, NumPy included.

    VmHWM rather than ru_maxrss, which a process inherits from the one that starts it.

    Args:
        function: of kiln_check, which takes the path.
        path: what is checked.

    """
    before, after = output(PEAK, function, path).split()
    return (int(after) - int(before)) * 1024


TRACED = """
import sys, tracemalloc
import numpy
from kiln_check import check_checkpoint
tracemalloc.start()
assert check_checkpoint(sys.argv[1]).ok
print(tracemalloc.get_traced_memory()[1])
"""


def peak_of_allocations(index: Path) -> int:
    """The most bytes that Python and NumPy had allocated at once in a check of a checkpoint."""
    return int(output(TRACED, index))


FRESH = """
import sys, time
from kiln_check import screen
from kiln_check.checking import check
screen.COLUMNS_FROM = screen.LOAD_NUMPY_FROM = int(sys.argv[1])
start = time.perf_counter()
assert check(sys.argv[2]).ok
print(time.perf_counter() - start)
"""


def fresh_time(start: int, path: Path, rounds: int) -> float:
    """The median seconds of a check in a new process, with NumPy used from `start` tensors on."""
    return statistics.median(float(output(FRESH, start, path)) for _ in range(rounds))


def broken_time(path: Path) -> tuple[float, int]:
    """The seconds of one check of a broken file, and the number of its findings."""
    start = time.perf_counter()
    findings = len(check(path).findings)
    return time.perf_counter() - start, findings
