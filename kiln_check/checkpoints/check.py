"""A checkpoint checked through the head that an import would write."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kiln_check.checking import check_source, unreadable
from kiln_check.checkpoints.checkpoint import read_checkpoint
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.plan import Plan, plan
from kiln_check.checkpoints.summary import foreign_lines, link_lines, weights_of
from kiln_check.checkpoints.surroundings import Surroundings
from kiln_check.errors import KilnError
from kiln_check.report import OK, Finding, Report
from kiln_check.source import BytesSource
from kiln_check.text import printable, quote
from kiln_check.writer import Layout, NewTensor, lay_out


def check_checkpoint(
    path: str,
    shards: Sequence[str] = (),
    *,
    called: str | None = None,
    surroundings: Surroundings | None = None,
) -> Report:
    """Check a checkpoint of another format; only headers are read.

    Args:
        path: a .safetensors or .gguf file, or an index.
        shards: the files of a checkpoint without an index; `path` is one of them.
        called: what the report calls it; by default its path.
        surroundings: what is known of folders already, where several are checked.

    Returns:
        A Report. Interop's own findings come first, then those of the rules; each
        says in which file and where in it the tensor is described. Tensors have the
        indexes that they would have in the imported file.

    """
    called = path if called is None else called
    try:
        made = plan(read_checkpoint(path, shards, surroundings=surroundings))
        return report_on(made, lay_out(made.tensors), called)
    except OSError as error:
        of = f"{os.fsdecode(error.filename)}: " if error.filename not in (None, path) else ""
        return unreadable(called, OSError(error.errno, f"{of}{error.strerror or error}"))
    except MemoryError as error:
        return unreadable(called, error)
    except (KilnError, ArithmeticError, RecursionError) as error:
        reason = f"no Kiln file can hold this: {error}" if isinstance(error, KilnError) else f"{error!r}"
        return unreadable(called, OSError(reason))


def report_on(made: Plan, layout: Layout, called: str) -> Report:
    """The report on a plan and its layout; see `check_checkpoint`."""
    judged = check_source(BytesSource(layout.head, layout.size), called)
    names = list(made.tensors)
    sources = made.checkpoint.tensors()
    findings = (*made.findings, *(_at_source(made, sources, names, one) for one in judged.findings))
    verdict = next((one.status for one in findings if one.level == "error"), OK)
    faulty = {found.name for found in findings if found.level == "error"}
    links = [link for link in made.links if link.weight not in faulty]
    unlinked = [one for one in made.unlinked if one.finding is None]
    notes = (*link_lines(links, unlinked), *foreign_lines(sources.values()))
    weights = weights_of(links, unlinked, sources.values())
    return Report(called, verdict, judged.num_tensors, findings, None, notes, *weights)


def _at_source(made: Plan, sources: dict[str, SourceTensor], names: list[str], found: Finding) -> Finding:
    """A rule's finding, with the place in the checkpoint where the tensor at fault is described."""
    if found.tensor is None or names[found.tensor] not in sources:  # a fault of import's own making
        return found._replace(file=made.checkpoint.path)
    weight = sources[names[found.tensor]]
    at = sources[_at_fault(made.tensors[weight.name], weight.name, found)]
    message = found.message
    if weight.path != at.path:
        message += printable(f" ({os.path.basename(weight.path)} and {os.path.basename(at.path)})")
    return found._replace(
        file=at.path,
        offset=at.entry_offset,
        length=at.entry_length,
        data=b"",
        value=f"{quote(at.name)[1:-1]}: {at.text()}",
        message=message,
    )


def _at_fault(tensor: NewTensor, name: str, found: Finding) -> str:
    """The name of the scale or outer scale, of a link at fault; else the tensor's own."""
    linked = {"scale_index": tensor.scale, "outer_index": tensor.outer}.get(found.field)
    return name if linked is None else linked
