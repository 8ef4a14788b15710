"""What a tool's format stores for one module, as data.

A template lists the tensors of a module: suffix, dtypes, shape in N rows and K columns of the weight.
`engine` holds modules to it; docs/reference/templates.md is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from kiln_check.checkpoints.conventions.shapes import Value

Companions: TypeAlias = "Mapping[str, dict[str, Any]]"
"""The JSON objects of the configs beside a checkpoint, by file name, and METADATA."""

METADATA = "__metadata__"
"""What stands, among Companions, for the metadata of the safetensors files."""

FLOATS = "F16 BF16 F32"
"""The dtypes that a scale of full precision may have."""

OPTIONAL = "optional"
"""The condition of a tensor that may be there or not."""

BLOCKS = "a scale for each block of rows and columns"
ZERO_POINTS = "zero points"
ONE_SCALE = "one scale for a matrix"
PER_EXPERT = "an outer scale for each expert"
ACTIVATION_ORDER = "groups in activation order"
PART_WORDS = "rows that do not fill whole words"
SWIZZLED = "scales in the order of a tensor core's tiles"
CODEBOOK = "codes that a table gives their values"
SPARSE = "only what is not zero"
OWN_ORDER = "words packed in an order of their own"
FAKE = "the weight in full precision"


class Slot(NamedTuple):
    """One tensor of a module.

    Attributes:
        suffix: what its name has after the module's.
        dtypes: one or more, as safetensors calls them, separated by spaces.
        shape: or shapes, as `shapes` has them; outermost dimension first.
        when: "" where it is always there, OPTIONAL, or the name of a parameter, perhaps after "not ",
            by which it is there; where nothing says what the parameter is, it may be there or not.
        gives: reads the values of names from its payload, which is small; raises ValueError where the
            payload holds something else.

    """

    suffix: str
    dtypes: str
    shape: str
    when: str = ""
    gives: Callable[[bytes], Mapping[str, Value | bool]] | None = None


class Hold(NamedTuple):
    """How Kiln stores a module: which tensor is linked with which; not one byte changes.

    Attributes:
        dtype: of the weight in Kiln; `{b}` stands for a parameter.
        group: elements along the axis that share a scale, as an expression.
        scale: suffix of the scale.
        scale_dtype: of the scale in Kiln, where it is another than its own.
        outer: suffix of the outer scale, for scheme 2.
        shape: the weight's in elements.
        axis: along which groups run; -1 is the last.
        unless: reasons why Kiln can't hold a module that has a tensor of a suffix.
        whole: an expression that must be a whole number, else rows do not fill whole words.

    """

    dtype: str
    group: str
    scale: str
    scale_dtype: str | None = None
    outer: str | None = None
    shape: str = "[*E, N, K]"
    axis: int = -1
    unless: tuple[tuple[str, str], ...] = ()
    whole: str | None = None


class Template(NamedTuple):
    """What one format stores for a module.

    Attributes:
        tool: who writes it.
        format: as the tool calls it.
        slots: the tensors; the weight first.
        holds: how Kiln stores it, or the reason why it can't.
        options: values that a parameter usually has, tried in this order where nothing says which.
        closed: whether it has no others.
        fixed: parameters that it has one value of, in the config's words; where a config says another, the
            two contradict each other.
        only: parameters by which the format is told from others; it is not held to where one is known and
            has another value.

    """

    tool: str
    format: str
    slots: tuple[Slot, ...]
    holds: Hold | str
    options: Mapping[str, Sequence[Value]] = {}
    only: Mapping[str, Value | bool] = {}
    closed: bool = False
    fixed: Mapping[str, Value] = {}

    @property
    def name(self) -> str:
        """Tool and format, for people."""
        return f"{self.tool} {self.format}"


class Declared(NamedTuple):
    """What a config says of a module.

    Attributes:
        tool: that the config is of.
        format: as the config calls it.
        templates: one of which the module is held to; none where the format is not known.
        parameters: values of names in the templates.
        named: whether the config names this very module.

    """

    tool: str
    format: str
    templates: tuple[Template, ...]
    parameters: Mapping[str, Value | bool] = {}
    named: bool = False


class Excluded(NamedTuple):
    """A module that a config leaves as it is.

    Attributes:
        tool: that the config is of.
        pattern: by which the config names it.

    """

    tool: str
    pattern: str


class Scheme(Protocol):
    """What a tool's config says of a whole checkpoint."""

    @property
    def tool(self) -> str:
        """Name of the tool."""

    def of(self, module: str) -> Declared | Excluded | None:
        """What it says of a module, by its name; None where it says nothing."""


class Tool(NamedTuple):
    """A tool, or a family of tools that store weights alike.

    Attributes:
        name: for people.
        templates: of its formats.
        declare: reads the tool's config; None where none of the companions is one.
        marks: suffixes of tensors that no other tool writes: a module that has one is of this tool.
        is_apart: whether its marks stand beside a config that tells of another naming of the same weights.
        is_first: whether its config counts where one of another tool lies beside it: what it wrote last.
        spread: names of the parts of experts that one scale covers, by the name that the scale has.

    """

    name: str
    templates: tuple[Template, ...]
    declare: Callable[[Companions], Scheme | None]
    marks: tuple[str, ...] = ()
    is_apart: bool = False
    is_first: bool = False
    spread: Mapping[str, tuple[str, ...]] = {}


def integers(*names: str) -> Callable[[bytes], dict[str, Value | bool]]:
    """Reads the values of names from a payload of as many integers, little-endian, of one width."""

    def read(payload: bytes) -> dict[str, Value | bool]:
        width, rest = divmod(len(payload), len(names))
        if rest or width not in (1, 2, 4, 8):
            raise ValueError(f"{len(payload)} bytes are not {len(names)} integers")
        values = [int.from_bytes(payload[i : i + width], "little") for i in range(0, len(payload), width)]
        return dict(zip(names, values, strict=True))

    return read


def fused(template: Template, format_: str | None = None) -> Template:
    """The same for experts in one tensor, whose names have no ".weight": `down_proj_weight_scale`."""
    slots = tuple(slot._replace(suffix=_fused(slot.suffix)) for slot in template.slots)
    holds = template.holds
    if isinstance(holds, Hold):
        holds = holds._replace(
            scale=_fused(holds.scale),
            outer=None if holds.outer is None else _fused(holds.outer),
            unless=tuple((_fused(suffix), reason) for suffix, reason in holds.unless),
        )
    return template._replace(slots=slots, holds=holds, format=format_ or f"{template.format}, fused experts")


def _fused(suffix: str) -> str:
    return "" if suffix == ".weight" else suffix.replace(".", "_", 1)


def by_format(templates: Iterable[Template]) -> dict[str, tuple[Template, ...]]:
    """Templates by their formats."""
    found: dict[str, tuple[Template, ...]] = {}
    for template in templates:
        found[template.format] = (*found.get(template.format, ()), template)
    return found
