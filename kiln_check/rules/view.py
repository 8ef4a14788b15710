"""How messages call a tensor."""

from __future__ import annotations

from kiln_check.generated.kiln_v2_records import DTYPES, MAX_RANK
from kiln_check.rules.subjects import File, Row
from kiln_check.text import quote


class View:
    """One file as the messages of the rules speak of it.

    Attributes:
        file: the file as a whole.
        tensor: one tensor of it, by its index.

    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.tensor = file.tensor

    def label(self, index: int) -> str:
        """A tensor as a message calls it: `tensor 0 "w" (e2m1 [32])`."""
        return f"{self.short_label(index)} ({type_text(self.tensor(index))})"

    def short_label(self, index: int) -> str:
        """A tensor as a message calls it, without its type: `tensor 0 "w"`."""
        name = self.file.directory.name(index)
        return f"tensor {index}" if name is None else f"tensor {index} {quote(name)}"


def type_text(tensor: Row) -> str:
    """A dtype and a shape: `e2m1 [32]`."""
    dtype = DTYPES.get(tensor.dtype, f"dtype 0x{tensor.dtype:04x}")
    if tensor.rank > MAX_RANK:
        return f"{dtype}, rank {tensor.rank}"
    return f"{dtype} {list(tensor.shape[: tensor.rank])}"
