"""What is found wrong with a checkpoint, beside the rules of the layout page."""

from __future__ import annotations

from typing import NamedTuple

from kiln_check.report import Finding, Level


class CheckpointRule(NamedTuple):
    """A rule on checkpoints.

    Attributes:
        name: what findings call it.
        status: the verdict that it gives.
        about: what a sound checkpoint has, why, and how to mend one.
        stops_import: of errors: "always"; "never" where import mends or keeps what is
            odd; or "link" where import goes on if tensors may be brought in apart.
        level: of its findings: "warning" where the format allows what is found and no
            reader refuses it.

    """

    name: str
    status: str
    about: str
    stops_import: str = "always"
    level: Level = "error"


_RULES = (
    CheckpointRule(
        "not-weights",
        "MAGIC",
        "A file holds weights, in the format that its name says.\n\n"
        "Why: a pointer of Git LFS, an error page, an archive, or a file of zeros that a download never "
        "filled lies under the name of many a file. Of these a loader says that the header is too large.\n\n"
        "Fix: get the file itself, or give it the name of its format; the message says which.",
    ),
    CheckpointRule(
        "header-magic",
        "MAGIC",
        "A GGUF file starts with the four bytes GGUF.\n\n"
        "Why: they tell it from every other file.\n\n"
        "Fix: the file is of another format, or was damaged; get it again.",
    ),
    CheckpointRule(
        "header-version",
        "VERSION",
        "A GGUF file is of version 2 or 3, a big-endian one of version 3.\n\n"
        "Why: version 1 has other widths, and no writer of a later one is known.\n\n"
        "Fix: convert the file with the tools of llama.cpp.",
    ),
    CheckpointRule(
        "header-length",
        "LENGTH",
        "The header is all there, and no longer than its format allows.\n\n"
        "Why: a header that claims more than the file holds is a cut or hostile file. safetensors allows "
        "100,000,000 bytes; of GGUF as many are read.\n\n"
        "Fix: get the file again.",
    ),
    CheckpointRule(
        "header-text",
        "TYPE",
        "The header is what its format says: for safetensors and an index, a JSON object in UTF-8; for GGUF, "
        "keys with values of the thirteen types.\n\n"
        "Why: what one reader mends in silence another refuses.\n\n"
        "Fix: get the file again, or write it again with the library of its format.",
    ),
    CheckpointRule(
        "header-entry",
        "TYPE",
        "What the header says of a tensor is complete and of the format: name, a dtype that the format has, "
        "shape, and where the payload lies.\n\n"
        "Why: without one of them the payload is bytes of unknown meaning.\n\n"
        "Fix: write the file again with the library of its format.",
    ),
    CheckpointRule(
        "duplicate-key",
        "NAME",
        "No key stands twice in a header or an index.\n\n"
        "Why: one reader takes the first, another the last, and they load different weights.\n\n"
        "Fix: remove one of the two.",
    ),
    CheckpointRule(
        "source-name",
        "NAME",
        "A name can be stored: it is UTF-8 of at most 65535 bytes, does not begin with kiln.source/, which "
        "import keeps for itself, and a file's name holds no control character.\n\n"
        "Why: a Kiln file could not hold the name, or export could not give the file back.\n\n"
        "Fix: rename the tensor or the file.",
    ),
    CheckpointRule(
        "source-rank",
        "TYPE",
        "A tensor has at most 8 dimensions.\n\nWhy: a descriptor has room for 8.\n\n"
        "Fix: merge dimensions until there are 8 or fewer.",
    ),
    CheckpointRule(
        "reader-limit",
        "TYPE",
        "In a GGUF file names of tensors have at most 63 bytes, and tensors at most 4 dimensions, none of 0, "
        "and no key is empty.\n\n"
        "Why: llama.cpp refuses any other, or did so for years. Import keeps it.\n\n"
        "Fix: write the file again with shorter names, merged dimensions, or without the tensor or key.",
        "never",
    ),
    CheckpointRule(
        "split-count",
        "LENGTH",
        "GGUF files that one was split into say in split.no, split.count and split.tensors.count what is so: "
        "which one each is, how many they are, and how many tensors they hold.\n\n"
        "Why: llama.cpp goes by these keys and refuses files that disagree with them. Files without any of "
        "the keys are a warning: of them only the first is loaded.\n\n"
        "Fix: give the files their own names again, get those that are missing, or split the model again.",
    ),
    CheckpointRule(
        "no-element",
        "LENGTH",
        "A safetensors file has tensors, not all of shape [0].\n\n"
        "Why: any other loads and changes nothing: an adapter that was never trained, or weights that lay "
        "elsewhere when they were saved, as with ZeRO stage 3. The format allows it, so it is a warning.\n\n"
        "Fix: gather the weights and save the model again.",
        "never",
        "warning",
    ),
    CheckpointRule(
        "file-short",
        "LENGTH",
        "A file holds the payloads that its header describes.\n\n"
        "Why: a download that broke off shows here before any weight is read.\n\n"
        "Fix: get the file again.",
    ),
    CheckpointRule(
        "payload-overlap",
        "OVERLAP",
        "No two tensors of a file share a byte.\n\n"
        "Why: neither format has shared payloads, so one of the two offsets is wrong.\n\n"
        "Fix: write the file again with the library of its format.",
    ),
    CheckpointRule(
        "payload-gap",
        "LENGTH",
        "Payloads follow one another without a gap, the first right after the header, and the file ends with "
        "the last. GGUF pads up to its alignment.\n\n"
        "Why: bytes that no tensor owns are a tensor that was lost, or something hidden. "
        "Import keeps them.\n\n"
        "Fix: write the file again with the library of its format.",
        "never",
    ),
    CheckpointRule(
        "payload-order",
        "LENGTH",
        "Payloads of a GGUF file lie in the order in which its header has their tensors.\n\n"
        "Why: llama.cpp adds up their sizes in that order and refuses any other offset. Import keeps them "
        "where they are.\n\n"
        "Fix: write the file again with the library of its format.",
        "never",
    ),
    CheckpointRule(
        "payload-align",
        "ALIGN",
        "A payload starts at a multiple of its element's size, in GGUF at one of the file's alignment.\n\n"
        "Why: elsewhere a mapped file can't be used where it is. Of GGUF, llama.cpp refuses such a file. "
        "safetensors asks for no alignment and mlx writes none: there it is a warning. Import aligns every "
        "payload.\n\n"
        "Fix: write the file again with the library of its format, or import it.",
        "never",
    ),
    CheckpointRule(
        "shard-missing",
        "LENGTH",
        "Each file that an index names lies beside the index; without an index, the numbers in the names of "
        "shards leave none out.\n\n"
        "Why: the tensors in it are missing, scales perhaps among them.\n\nFix: get the file.",
    ),
    CheckpointRule(
        "index-absent",
        "NAME",
        "Each tensor that an index names is in the file that the index gives for it.\n\n"
        "Why: a loader that goes by the index looks for it there.\n\n"
        "Fix: get index and files from the same place; they are of different versions of the model.",
    ),
    CheckpointRule(
        "index-unlisted",
        "NAME",
        "Each tensor of a file that an index names is named by the index too.\n\n"
        "Why: a loader that goes by the index never sees it. Import brings it in.\n\n"
        "Fix: add it to the index's weight_map.",
        "never",
    ),
    CheckpointRule(
        "two-shards",
        "NAME",
        "No tensor is in two files of one checkpoint.\n\n"
        "Why: which of the two is loaded depends on the loader. The copy that the index names is checked. A "
        "loader that goes by the index takes it; transformers and vLLM read whole files in the order of "
        "their names, so that the last copy stays. A copy before the one that the index names is left over, "
        "a warning: they all take the right one. One after it, or without an index, is an error.\n\n"
        "Fix: remove the copy that is left over.",
    ),
    CheckpointRule(
        "index-size",
        "LENGTH",
        "The total_size of an index's metadata is the size of all tensors in bytes.\n\n"
        "Why: loaders don't need it; tools that plan memory or downloads do. One that is off shows that the "
        "index was written for other files.\n\n"
        "Fix: write the index again with the files, or put in the number that the finding gives.",
        "never",
        "warning",
    ),
    CheckpointRule(
        "config-text",
        "TYPE",
        "Each config beside a checkpoint is a JSON object of at most 4 MiB.\n\n"
        "Why: they say by which tool and in which format the weights are quantized. Without them import goes "
        "by names, dtypes and shapes.\n\nFix: get the file again.",
        "never",
    ),
    CheckpointRule(
        "scale-missing",
        "TYPE",
        "A tensor whose format gives it a scale, an outer scale or zero points has them in the "
        "checkpoint.\n\n"
        "Why: without it the weights can't be read as numbers.\n\n"
        "Fix: get the missing file, or export the model again.",
        "link",
    ),
    CheckpointRule(
        "scale-unused",
        "TYPE",
        "A tensor that is named as a scale belongs to one weight.\n\n"
        "Why: its weight was lost or renamed, or one of two was left behind.\n\n"
        "Fix: get the missing file, or remove the scale.",
        "link",
    ),
    CheckpointRule(
        "scale-shape",
        "TYPE",
        "A scale has the dtype and the shape that its tool's format gives it; so have zero points, and all "
        "else that belongs to a weight.\n\n"
        "Why: a scale that was cut short, transposed or exchanged with another's gives wrong numbers.\n\n"
        "Fix: export the scale again.",
        "link",
    ),
    CheckpointRule(
        "packed-shape",
        "TYPE",
        "A packed weight has the shape that its scales and its stated shape give it.\n\n"
        "Why: rows would be cut in the wrong places.\n\n"
        "Fix: export the weight again.",
        "link",
    ),
    CheckpointRule(
        "other-format",
        "TYPE",
        "A module is quantized as the config says: in its format, not where the config excludes the module, "
        "and not plain where the config names that very module.\n\n"
        "Why: a loader goes by the config, and would read its bytes as something else.\n\n"
        "Fix: take the config that was written with the weights, or export the model again.",
        "link",
    ),
    CheckpointRule(
        "unlike-siblings",
        "TYPE",
        "Modules that differ in numbers alone, as layers and experts do, have the same tensors with the same "
        "dtypes.\n\n"
        "Why: a tensor that one layer of many lacks was lost.\n\n"
        "Fix: get the missing file, or export the model again.",
        "link",
    ),
    CheckpointRule(
        "not-verified",
        "TYPE",
        "Each quantized weight could be held to a template. Only `kiln check --strict` asks for it.\n\n"
        "Why: what is not known is not accused, so a checkpoint can be OK of which nothing was verified.\n\n"
        "Fix: put the config beside the checkpoint that its tool wrote; for a tool that Kiln does not know, "
        "check without --strict.",
        "never",
        "warning",
    ),
)

CHECKPOINT_RULES: dict[str, CheckpointRule] = {rule.name: rule for rule in _RULES}
"""By name, in verdict order; all come before the rules of the layout page."""

ORDER = {name: number for number, name in enumerate(CHECKPOINT_RULES)}


def finding(
    rule: str,
    message: str,
    path: str,
    offset: int = 0,
    length: int = 0,
    *,
    name: str | None = None,
    field: str = "",
    working: str | None = None,
    value: str = "",
    level: Level | None = None,
) -> Finding:
    """A finding on bytes of a file of the checkpoint.

    Args:
        rule: a name of CHECKPOINT_RULES.
        message: one line: what is wrong and with what numbers.
        path: the file.
        offset: where the bytes at fault start, from the start of the file.
        length: how many they are.
        name: the tensor's name, where one is at fault.
        field: what is at fault, as its format calls it.
        working: the arithmetic behind it, where there is any.
        value: the field's value as text.
        level: by default the rule's.

    """
    of = CHECKPOINT_RULES[rule]
    return Finding(
        rule,
        of.status,
        None,
        name,
        field,
        offset,
        length,
        message,
        working,
        b"",
        value,
        path,
        level or of.level,
    )


def explanation(name: str) -> str | None:
    """What a rule on checkpoints wants, why, and how to mend a file; None if there is none."""
    rule = CHECKPOINT_RULES.get(name)
    if rule is None:
        return None
    return (
        f"{name}\n\n{rule.about}\n\nstatus  {rule.status}\nlevel   {rule.level}\n"
        "of      checkpoints of other formats"
    )
