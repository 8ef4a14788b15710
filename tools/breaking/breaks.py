"""What a break is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tools.breaking.folder import Checkpoint, Tensor

ROW_MORE = "a row more"
ROW_LESS = "a row less"
COLUMN_MORE = "a column more"
COLUMN_LESS = "a column less"
REMOVED = "removed"
ALL_REMOVED = "all of a kind removed"
TRANSPOSED = "transposed"
EXCHANGED = "exchanged"
FLATTENED = "flattened"
MADE_TWO = "one element made two"
DTYPE = "dtype changed"
GROUP_SIZE = "config's group size"
WIDTH = "config's bits"
FORMAT = "config's format"
GGUF_SHAPE = "GGUF: dimension"
GGUF_TYPE = "GGUF: type"

KINDS = (
    *(ROW_MORE, ROW_LESS, COLUMN_MORE, COLUMN_LESS, REMOVED, ALL_REMOVED, TRANSPOSED, EXCHANGED),
    *(FLATTENED, MADE_TWO, DTYPE, GROUP_SIZE, WIDTH, FORMAT, GGUF_SHAPE, GGUF_TYPE),
)


class Break(NamedTuple):
    """A sound checkpoint with one thing wrong.

    Attributes:
        kind: one of KINDS.
        what: what is changed, on one line.
        broken: the checkpoint afterwards.
        names: the names of which a finding must have one; empty where any error will do.
        suffix: what follows the module's name, of the tensor that is changed; "" for a config.
        before: that tensor as it was.
        after: that tensor as it is; None where it is gone.
        module: the tensors of its module as they were, by suffix.

    """

    kind: str
    what: str
    broken: Checkpoint
    names: frozenset[str]
    suffix: str = ""
    before: Tensor | None = None
    after: Tensor | None = None
    module: Mapping[str, Tensor] = {}
