"""What a break is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


class Change(NamedTuple):
    """A tensor that is changed: those of its module as they were, by suffix, its own suffix, and it after.

    `after` is None where the tensor is gone.
    """

    module: Mapping[str, Tensor]
    suffix: str
    after: Tensor | None

    @property
    def before(self) -> Tensor:
        """The tensor as it was."""
        return self.module[self.suffix]


class Setting(NamedTuple):
    """What a key of a config says, before and after."""

    key: str
    before: Any
    after: Any


class Break(NamedTuple):
    """A sound checkpoint with one thing wrong.

    Attributes:
        kind: one of KINDS.
        what: what is changed, on one line.
        broken: the checkpoint afterwards.
        names: the names of which an error must have one; empty where any error will do.
        changes: of tensors of safetensors files.
        setting: of a config.
        padded: whether no more of a GGUF file's payloads changes than what pads them.

    """

    kind: str
    what: str
    broken: Checkpoint
    names: frozenset[str]
    changes: tuple[Change, ...] = ()
    setting: Setting | None = None
    padded: bool = False
