#!/usr/bin/env python3
"""Measure `kiln check` side by side with what else reads directories and headers of tensors.

    tools/bench.py                      every table, as Markdown
    tools/bench.py --only PART …        some of them: directories, memory, commands, checkpoints,
                                        weights, line, broken

The files are made in a temporary folder, with payloads that take no room on the disk. Every
contender runs in turn, several rounds interleaved. docs/performance.md has the tables and says
what they show.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.benching import tables  # noqa: E402
from tools.benching.checkpoints import TENSORS_OF_MODULE  # noqa: E402
from tools.benching.contenders import installed  # noqa: E402

Part = Callable[[Path, argparse.Namespace], Iterator[str]]

PARTS: dict[str, tuple[str, Part]] = {
    "directories": (
        "Directories",
        lambda folder, options: tables.directories(folder, options.sizes, options.rounds),
    ),
    "memory": ("Memory", lambda folder, options: tables.memory(folder, max(options.sizes))),
    "commands": (
        "Commands",
        lambda folder, options: tables.commands(folder, options.files, options.sizes[-2:], options.rounds),
    ),
    "checkpoints": (
        "Checkpoints",
        lambda folder, options: tables.checkpoints(folder, options.checkpoint, options.rounds),
    ),
    "weights": (
        "Weights",
        lambda folder, options: tables.weights(
            folder, options.weights << 20, options.sizes[-2:][0], options.rounds
        ),
    ),
    "line": ("The line", lambda folder, options: tables.line(folder, options.line, options.rounds)),
    "broken": ("Broken directories", lambda folder, options: tables.broken(folder, options.broken)),
}
"""Name, title and table of each part, in the order in which they are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status: 0, or 2 for bad usage."""
    options = _parser().parse_args(arguments)
    versions = " ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in ("numpy", "kaitaistruct", "safetensors", "gguf")
        if installed(package)
    )
    print(f"Python {platform.python_version()}, {versions}; medians of {options.rounds} rounds.")
    for name, (title, part) in PARTS.items():
        if name not in options.only:
            continue
        print(f"\n### {title}\n")
        with tempfile.TemporaryDirectory() as folder:
            for text in part(Path(folder), options):
                print(text, flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure kiln check side by side with other tools.")
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), help="the parts that are measured (all)")
    add("--sizes", type=counts, default=[3, 1000, 10_000, 100_000, 1_000_000], help="tensors of a directory")
    add("--rounds", type=count, default=15, help="rounds of each table (15)")
    add("--files", type=count, default=10_000, help="small files of one command (10,000)")
    add("--checkpoint", type=tensors_and_shards, default=(90_000, 30), help="tensors, shards (90_000,30)")
    add("--weights", type=count, default=2048, help="MiB that are imported and copied (2048)")
    add("--line", type=counts, default=[10, 25, 100, 1000, 4000, 5000, 10_000], help="tensors on the line")
    add("--broken", type=counts, default=[50_000, 100_000], help="tensors of a broken directory")
    return parser


def count(text: str) -> int:
    """A whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return number


def counts(text: str) -> list[int]:
    """Whole numbers from 1 with commas between them."""
    return [count(number) for number in text.split(",")]


def tensors_and_shards(text: str) -> tuple[int, int]:
    """The tensors of a checkpoint, four a module, and its shards, at most one a module."""
    numbers = counts(text)
    if len(numbers) != 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not TENSORS,SHARDS")
    num_tensors, num_shards = numbers
    if num_tensors % TENSORS_OF_MODULE:
        raise argparse.ArgumentTypeError(f"{num_tensors} tensors are no multiple of {TENSORS_OF_MODULE}")
    if num_shards > num_tensors // TENSORS_OF_MODULE:
        raise argparse.ArgumentTypeError(f"{num_tensors} tensors are too few for {num_shards} shards")
    return num_tensors, num_shards


if __name__ == "__main__":
    sys.exit(main())
