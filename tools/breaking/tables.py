"""What the breaks of a zoo come to, as text and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tools.breaking.breaks import KINDS
from tools.breaking.judging import Judged, Outcome

FAMILIES = {
    "ao": "torchao",
    "ar": "AutoRound",
    "autofp8": "AutoFP8",
    "bnb": "bitsandbytes",
    "c2q": "convert_to_quant",
    "comfy": "ComfyUI",
    "ct": "compressed-tensors",
    "ctold": "compressed-tensors",
    "deepseek": "DeepSeek",
    "eetq": "EETQ",
    "fpquant": "FP-Quant",
    "gguf": "GGUF",
    "gpt": "gpt-oss",
    "hqq": "HQQ",
    "kimi": "Kimi",
    "llama4": "fbgemm",
    "llmc": "llm-compressor",
    "minimax": "MiniMax",
    "ministral3": "Mistral",
    "mistral": "Mistral",
    "mlx": "MLX",
    "mlxlm": "MLX",
    "modelopt": "ModelOpt",
    "nvidia": "ModelOpt",
    "quanto": "quanto",
    "quark": "Quark",
    "sdnq": "SDNQ",
    "tf": "transformers",
}
"""Tools and families of models, by how the names of the zoo's checkpoints begin."""

COMMAND = "tools/break_checkpoints.py --markdown docs/reference/breaking.md"

INTRODUCTION = (
    "`tools/break_checkpoints.py` takes the checkpoints in `tests/data/zoo`, which tools of many kinds",
    "wrote, changes one thing in each, in every way that applies, and runs `kiln check` on the result. It",
    "breaks one module of each sort: a row or a column more or less, two dimensions swapped, a dtype",
    "replaced, a tensor removed or exchanged with that of another module. It also changes what the config",
    "says of the weights.",
    "",
    "A break of a tensor is noticed where an error names it, its module, or another tensor of the module.",
    "One of a config is noticed where there is any error.",
)

MEANING = (
    "The first percentage counts every break. The second leaves out those that nobody can see who reads no",
    "payloads: the broken checkpoint is one that a tool could have written, of a model of another shape or",
    "with another choice of the tool. A break is left out only if a check misses it and a rule in",
    "`tools/breaking/unseeable.py` says why it can't be seen; so the second percentage is the share that a",
    "check notices of the breaks that it could notice. `--at-least` holds that one to a limit.",
    "",
    "In the tables, the column *headers can't show* counts what is left out, and *error names another* the",
    "breaks that give an error which names some other module.",
    "",
    "`tools/break_checkpoints.py --list-missed` prints every break that is missed, below its reason.",
)


def family_of(name: str) -> str:
    """The tool or family that a checkpoint is of; the beginning of its name where that is unknown."""
    beginning = name.split("-")[0]
    return FAMILIES.get(beginning, beginning)


def outcomes_of(judged: Sequence[Judged]) -> list[Outcome]:
    """All outcomes, checkpoint by checkpoint."""
    return [outcome for one in judged for outcome in one.outcomes]


def rate(outcomes: Sequence[Outcome]) -> float:
    """Percent of breaks that are noticed; 0 where there is none."""
    return 100 * sum(outcome.noticed for outcome in outcomes) / len(outcomes) if outcomes else 0.0


def seeable_rate(outcomes: Sequence[Outcome]) -> float:
    """Percent of breaks that are noticed, of those that headers can show."""
    return rate([outcome for outcome in outcomes if outcome.reason is None])


def total_line(outcomes: Sequence[Outcome]) -> str:
    """One sentence with both rates."""
    noticed = sum(outcome.noticed for outcome in outcomes)
    seeable = sum(outcome.reason is None for outcome in outcomes)
    return (
        f"{noticed} of {len(outcomes)} breaks are noticed, {rate(outcomes):.1f} %; "
        f"of the {seeable} that headers can show, {seeable_rate(outcomes):.1f} %."
    )


def _rows(outcomes: Sequence[Outcome], key: Callable[[Outcome], str], order: Sequence[str]) -> Iterator[str]:
    """One row of a table for each of `order` that there are breaks of."""
    for name in order:
        group = [outcome for outcome in outcomes if key(outcome) == name]
        if group:
            noticed = sum(outcome.noticed for outcome in group)
            hidden = sum(outcome.reason is not None for outcome in group)
            unnamed = sum(_is_unnamed(outcome) for outcome in group)
            cells = (name, len(group), noticed, f"{rate(group):.1f}", hidden, unnamed)
            yield "| " + " | ".join(map(str, cells)) + " |"


def _is_unnamed(outcome: Outcome) -> bool:
    """Whether there is an error, which names something else."""
    return not outcome.noticed and outcome.reason is None and outcome.error is not None


def _table(first: str, rows: Iterator[str]) -> list[str]:
    heads = (first, "breaks", "noticed", "%", "headers can't show", "error names another")
    return ["| " + " | ".join(heads) + " |", "|---" + "|--:" * 5 + "|", *rows]


def by_kind(outcomes: Sequence[Outcome]) -> list[str]:
    """A table with a row for each kind of break."""
    return _table("break", _rows(outcomes, lambda one: one.kind, KINDS))


def by_family(outcomes: Sequence[Outcome]) -> list[str]:
    """A table with a row for each tool and family of models."""
    names = sorted({family_of(outcome.checkpoint) for outcome in outcomes}, key=str.casefold)
    return _table("written by", _rows(outcomes, lambda one: family_of(one.checkpoint), names))


def refusals(judged: Sequence[Judged]) -> list[str]:
    """A line for each checkpoint that is refused unbroken, so that nothing can be learnt by breaking it."""
    return [f"{one.checkpoint}: {one.refused}" for one in judged if one.refused is not None]


def missed_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Each break that is missed, below the reason why headers can't show it; those without one last."""
    reasons = dict.fromkeys(outcome.reason for outcome in outcomes if not outcome.noticed)
    for reason in sorted(reasons, key=lambda text: (text is None, text or "")):
        yield reason or "Headers can show it:"
        for outcome in outcomes:
            if not outcome.noticed and outcome.reason == reason:
                error = f" (the error is: {outcome.error})" if outcome.error is not None else ""
                yield f"    {outcome.checkpoint}: {outcome.kind}: {outcome.what}{error}"


def text(judged: Sequence[Judged]) -> str:
    """The tables, for a terminal."""
    outcomes = outcomes_of(judged)
    lines = [*by_family(outcomes), "", *by_kind(outcomes), ""]
    lines += [f"refused unbroken: {line}" for line in refusals(judged)]
    return "\n".join([*lines, total_line(outcomes)])


def _by_count(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons with their counts, the most frequent first."""
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def _missed_items(outcomes: Sequence[Outcome]) -> list[str]:
    """An item of a list for each break that is missed without a reason."""
    return [
        f"- {outcome.checkpoint}: {outcome.kind}: `{outcome.what}`"
        for outcome in outcomes
        if not outcome.noticed and outcome.reason is None
    ]


def markdown(judged: Sequence[Judged]) -> str:
    """The page of the documentation."""
    outcomes = outcomes_of(judged)
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.reason is not None)
    lines = [
        f"<!-- `{COMMAND}` makes this page: do not edit it. -->",
        "",
        "# What a check notices",
        "",
        *INTRODUCTION,
        "",
        f"In {len(judged)} checkpoints, {total_line(outcomes)}",
        "",
        *MEANING,
        "",
        "## By what wrote the checkpoint",
        "",
        *by_family(outcomes),
        "",
        "## By what is broken",
        "",
        *by_kind(outcomes),
        "",
        "## What headers can't show",
        "",
        "These breaks make another sound checkpoint, as far as headers and configs tell.",
        "",
        "| breaks | reason |",
        "|--:|---|",
        *(f"| {count} | {reason} |" for reason, count in _by_count(reasons)),
        "",
        "## What headers can show and a check misses",
        "",
        *(_missed_items(outcomes) or ["Nothing."]),
    ]
    if refused := refusals(judged):
        lines += ["", "## Refused unbroken", "", "These are not broken:", ""]
        lines += [f"- {line}" for line in refused]
    return "\n".join(lines) + "\n"
