#!/usr/bin/env python3
"""Keep the checkpoints of a folder, one in each folder below it, as tests/data/zoo has them.

    tools/collect_zoo.py FOLDER              write one zip for each
    tools/collect_zoo.py FOLDER -o OUTPUT    write them somewhere else
    tools/collect_zoo.py FOLDER --whole      keep every file byte for byte

Headers, configs and indexes are kept byte for byte, and so are short payloads; the
others become zeros.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.zoo import ZOO, every_file, files_of, packed  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep the checkpoints of a folder as zips.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="has a folder for each checkpoint")
    parser.add_argument("-o", "--output", type=Path, default=ZOO, metavar="OUTPUT", help=f"{ZOO.name}/")
    parser.add_argument("--whole", action="store_true", help="keep every file byte for byte")
    options = parser.parse_args()
    keep = every_file if options.whole else files_of
    options.output.mkdir(parents=True, exist_ok=True)
    total = count = 0
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        archive = packed(keep(folder))
        (options.output / f"{folder.name}.zip").write_bytes(archive)
        count, total = count + 1, total + len(archive)
    print(f"{count} checkpoints, {total} bytes")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
