"""A checkpoint checked through the head that an import would write."""

from __future__ import annotations

import os

from kiln_check.checking import check_source, unreadable
from kiln_check.checkpoints.checkpoint import read_place
from kiln_check.checkpoints.clearing import clear
from kiln_check.checkpoints.folder import Folder, Place
from kiln_check.checkpoints.formats.header import SourceTensor
from kiln_check.checkpoints.plan import Plan, plan
from kiln_check.checkpoints.strict import strict as as_strict
from kiln_check.checkpoints.summary import file_lines, foreign_lines, link_lines, weights_of
from kiln_check.errors import KilnError, PathError
from kiln_check.paths import checkpoint_at
from kiln_check.report import OK, Finding, Report
from kiln_check.source import BytesSource
from kiln_check.text import printable, quote
from kiln_check.writer import Layout, NewTensor, lay_out


def check_checkpoint(path: str | os.PathLike[str], *, strict: bool = False) -> Report:
    """Check a checkpoint of another format; only headers are read.

    Args:
        path: what `kiln check` takes and one checkpoint: a .safetensors or .gguf file, an
            index, or a folder with one checkpoint. A shard means all that it belongs to.
        strict: whether warnings count, and quantized weights that could not be verified.

    Returns:
        A Report, on the index or the first file. Findings on the checkpoint come first,
        then those of the rules; each says in which file and where in it the tensor is
        described. Tensors have the indexes that they would have in the imported file.
        A path that means no checkpoint, or several, has the verdict UNREADABLE.

    """
    called = os.fspath(path)
    try:
        place = checkpoint_at(called)
    except PathError as error:
        return unreadable(called, OSError(str(error).removeprefix(f"{called}: ")))
    return check_place(place, strict=strict)


def check_place(place: Place, folder: Folder | None = None, *, strict: bool = False) -> Report:
    """Check a checkpoint; see `check_checkpoint`.

    Args:
        place: where its files are.
        folder: what is known of their folder, where several checkpoints of it are checked.
        strict: whether warnings count, and quantized weights that could not be verified.

    """
    report = _checked(place, folder)
    return as_strict(report) if strict else report


def _checked(place: Place, folder: Folder | None) -> Report:
    path = place.path
    folder = Folder(os.path.dirname(path)) if folder is None else folder
    try:
        cleared = clear(place, folder)
        if cleared is not None:
            return cleared
        made = plan(read_place(place, folder))
        return report_on(made, lay_out(made.tensors), path)
    except OSError as error:
        of = f"{os.fsdecode(error.filename)}: " if error.filename not in (None, path) else ""
        return unreadable(path, OSError(error.errno, f"{of}{error.strerror or error}"))
    except MemoryError as error:
        return unreadable(path, error)
    except KilnError as error:
        return unreadable(path, OSError(f"no Kiln file can hold this: {error}"))
    except Exception as error:  # one file must not end the check of a million others
        return unreadable(path, OSError(f"a fault of Kiln's own, please report it: {error!r}"))


def report_on(made: Plan, layout: Layout, path: str) -> Report:
    """The report on a plan and its layout, which calls it `path`; see `check_checkpoint`."""
    judged = check_source(BytesSource(layout.head, layout.size), path)
    names = list(made.tensors)
    sources = made.checkpoint.tensors()
    findings = (*made.findings, *(_at_source(made, sources, names, one) for one in judged.findings))
    verdict = next((one.status for one in findings if one.level == "error"), OK)
    faulty = {found.name for found in findings if found.level == "error"}
    links = [link for link in made.links if link.weight not in faulty]
    unlinked = [one for one in made.unlinked if one.finding is None]
    notes = (
        *file_lines(made.checkpoint.files),
        *link_lines(links, unlinked),
        *foreign_lines(sources.values()),
    )
    weights = weights_of(links, unlinked, sources.values())
    return Report(path, verdict, judged.num_tensors, findings, None, notes, *weights)


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
