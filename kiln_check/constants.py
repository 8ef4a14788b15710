"""What the layout page says in numbers, and every limit of the package with its reason."""

from __future__ import annotations

try:
    from kiln_check.generated.kiln_v2_records import DTYPES, SCHEMES
except ModuleNotFoundError as error:
    raise ImportError(
        f"{error.name} is not there: Python found the checkout's folder kiln_check, which is not installed; "
        "run pip install -e . in the checkout, or start Python in another folder"
    ) from error

ALIGNMENT = 64
"""Bytes; where payloads may start (layout page, "Rules", data-align)."""

NONE: int
SCALES: int
SCALES_AND_OUTER: int
NONE, SCALES, SCALES_AND_OUTER = (
    next(code for code, scheme in SCHEMES.items() if scheme == name)
    for name in ("none", "scales", "scales_and_outer")
)

FOREIGN, F32 = (next(code for code, dtype in DTYPES.items() if dtype == name) for name in ("foreign", "f32"))

WIDTH = 0xFF
"""Mask: the part of a dtype that is the width of an element in bits, 0 for foreign (layout page, "dtype")."""

BITS: dict[str, int] = {dtype: code & WIDTH for code, dtype in DTYPES.items()}
"""Width of one element in bits, by the name of its dtype; 0 for foreign."""

LONGEST_NAME = 0xFFFF
"""Bytes of a tensor's name: len_name is a u2 (layout page, "Descriptor")."""

LONGEST_DIMENSION = (1 << 64) - 1
"""Elements: an entry of shape is a u8 (layout page, "Descriptor")."""

LARGEST_GROUP = (1 << 32) - 1
"""Elements that share a scale: group_size is a u4 (layout page, "Descriptor")."""

LARGEST_BLOCK = (1 << 32) - 1
"""Elements of a block, and bytes of one: both are a u4 (layout page, "Descriptor")."""

LONGEST_KEPT_NAME = 256
"""Bytes of a name that are kept to tell names apart. A digest stands for a longer one, so that many can't
fill the memory."""

LONGEST_QUOTE = 80
"""Characters of a name that a message shows, so that a message stays one line of a terminal or two."""

FINDINGS_SHOWN = 20
"""Findings of one rule that the text shows of one file, so that a person sees the next rule; JSON has all."""

BYTES_SHOWN = 16
"""Bytes of a field that the text shows: one line of a hex dump."""

PATTERN_SIGNS = "*?["
"""Characters of a path that make it a pattern, where no file has that very name."""

MOST_OUTPUT = 1 << 20
"""Bytes that a reader under test may print for one case; more is a reader that does not end."""

MOST_OPEN = 16
"""Files that are open to be read at once: a checkpoint may have more shards than a process may open."""

LONGEST_HEADER = 100_000_000
"""Bytes of a checkpoint file's header: the limit of the safetensors format. GGUF sets none, and a vocabulary
takes a tenth of this."""

LONGEST_INDEX = 100_000_000
"""Bytes of an index, which names each tensor once as a header does."""

LONGEST_CONFIG = 1 << 22
"""Bytes of a config that are read: the largest known lists each layer of a large model in 1 MiB."""

LARGEST_CLEARED = 1 << 60
"""Bytes of a checkpoint's files: a Kiln file of them has offsets of less than 64 bits, whatever is added."""

LONGEST_SMALL_PAYLOAD = 1 << 10
"""Bytes that are read of a payload to make a plan: a weight_shape has 16."""

MOST_FINDINGS = 10_000
"""Findings in one header after which the rest is not read, so that no report outgrows its file by much."""

MOST_PATTERNS = 64
"""Patterns of a config that each module is held against, so that the time stays linear."""

LONGEST_NUMBER = 1000
"""Characters of a number in JSON; a longer one takes quadratic time to convert."""

DEEPEST_JSON = 125
"""Arrays and objects in one another in a value that is passed over: what serde_json, and so the safetensors
package, allows in an entry."""

LONGEST_GGUF_KEY = 0xFFFF
"""Bytes of a key or a tensor's name in GGUF: the format's own limit for keys, and Kiln's for names."""

MOST_DIMENSIONS = 8
"""Dimensions of a tensor in GGUF that are read: those that a Kiln descriptor holds."""

LONGEST_GGML_NAME = 63
"""Bytes of a tensor's name that llama.cpp reads: GGML_MAX_NAME is 64, with the zero at the end."""

MOST_GGML_DIMENSIONS = 4
"""Dimensions of a tensor that llama.cpp reads: GGML_MAX_DIMS."""

DEEPEST_GGUF_ARRAY = 4
"""Arrays in one another in a GGUF key; readers know one level."""

LONGEST_PATTERN = 1000
"""Characters of a pattern of a config that is followed; those that tools write have some tens."""
