"""The rules from `scheme` on: how a tensor names its scale and its outer scale.

The rules are those of the Quantization page ("Why the scale is another tensor" and the
table of schemes after it); their names and their order are the layout page's, "Rules".
See `Rule` for what a declaration says. Which tensors have the scheme that a rule is
about says `applies`; a scheme that there is not breaks the rule `scheme`, which all need.
"""

from __future__ import annotations

from kiln_check.constants import F32, NONE, SCALES, SCALES_AND_OUTER
from kiln_check.generated.kiln_v2_records import NO_AXIS, NO_INDEX
from kiln_check.rules.fault import Fault
from kiln_check.rules.rule import Rule, Subject, Truth
from kiln_check.rules.view import View, type_text
from kiln_check.text import plural


def has_scheme_0(t: Subject) -> Truth:
    return t.scheme == NONE


def has_scheme_1(t: Subject) -> Truth:
    return t.scheme == SCALES


def has_scheme_2(t: Subject) -> Truth:
    return t.scheme == SCALES_AND_OUTER


def is_quantized(t: Subject) -> Truth:
    return t.scheme != NONE


class Scheme(Rule, name="scheme", status="TYPE", field="scheme"):
    """The scheme is 0 (none), 1 (scales) or 2 (scales and outer).

    Why: the scheme says which of the two indexes mean something.

    Fix: write 0, 1 or 2.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.scheme <= SCALES_AND_OUTER

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        return Fault(f"{view.short_label(index)} has scheme {tensor.scheme}; there are 0, 1 and 2")


class SchemeNone(
    Rule, name="scheme-none", status="TYPE", field="group_size", needs=("scheme",), applies=has_scheme_0
):
    """Scheme 0 has group_size 0, quant_axis 0xFFFF, and both indexes 0xFFFFFFFF.

    Why: a tensor without a link must not look half linked: a reader that goes by
    the index alone would apply a scale that the scheme does not name.

    Fix: write those values, or set the scheme that was meant.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        no_link = (t.scale_index == NO_INDEX) & (t.outer_index == NO_INDEX)
        return (t.group_size == 0) & (t.quant_axis == NO_AXIS) & no_link

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        wanted = {"group_size": 0, "quant_axis": NO_AXIS, "scale_index": NO_INDEX, "outer_index": NO_INDEX}
        field = next(field for field, value in wanted.items() if getattr(tensor, field) != value)
        shown = f"0x{wanted[field]:X}" if wanted[field] else 0
        return Fault(
            f"{view.label(index)} has scheme 0, but {field} {getattr(tensor, field)}, not {shown}",
            field=field,
        )


class QuantRank(
    Rule, name="quant-rank", status="TYPE", field="rank", needs=("scheme", "rank"), applies=is_quantized
):
    """A tensor of scheme 1 or 2 has at least one dimension.

    Why: groups run along an axis, and a tensor of rank 0 has none.

    Fix: give the tensor the shape [1], or scheme 0.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.rank >= 1

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        scheme = view.tensor(index).scheme
        return Fault(f"{view.label(index)} has scheme {scheme}, but rank 0 and so no axis to group along")


class QuantAxis(
    Rule,
    name="quant-axis",
    status="TYPE",
    field="quant_axis",
    needs=("scheme", "rank", "quant-rank"),
    applies=is_quantized,
):
    """The quant_axis of a tensor of scheme 1 or 2 is less than its rank.

    Why: groups run along this axis. 0 is the outermost.

    Fix: for groups along the last axis write rank − 1.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.quant_axis < t.rank

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        return Fault(f"{view.label(index)} has quant_axis {tensor.quant_axis}; its rank is {tensor.rank}")


class GroupSize(
    Rule, name="group-size", status="TYPE", field="group_size", needs=("scheme",), applies=is_quantized
):
    """The group_size of a tensor of scheme 1 or 2 is at least 1.

    Why: it is the number of elements that share one scale along quant_axis.

    Fix: write the size of a group, 32 for MXFP4, 16 for NVFP4, the whole dimension
    for one scale a row.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.group_size >= 1

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        return Fault(f"{view.label(index)} has scheme {view.tensor(index).scheme}, but group_size 0")


class ScaleIndex(
    Rule, name="scale-index", status="TYPE", field="scale_index", needs=("scheme",), applies=is_quantized
):
    """The scale_index of a tensor of scheme 1 or 2 is that of a tensor in the directory.

    Why: the scale is another tensor of the same file. Without it the elements can't
    be read as numbers.

    Fix: store the scale in this file and write its index, counted from 0.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.scale_index < t.file.num_tensors

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        return _no_such_tensor(view, index, "scale_index")


class ScaleSelf(
    Rule, name="scale-self", status="TYPE", field="scale_index", needs=("scale-index",), applies=is_quantized
):
    """The scale of a tensor is another tensor.

    Why: a tensor that scales itself is a chain without an end.

    Fix: point scale_index at the tensor that holds the scales.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.scale_index != t.index

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        return Fault(f"{view.label(index)} names itself as its scale")


class ScaleChain(
    Rule, name="scale-chain", status="TYPE", field="scale_index", needs=("scale-self",), applies=is_quantized
):
    """The scale tensor has scheme 0.

    Why: a scale that itself has a scheme is a chain, and a chain has no end that can
    be seen from the two indexes.

    Fix: store the scale unscaled. A scale over the scales is what scheme 2 is for.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.scale.scheme == NONE

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        scale = view.tensor(index).scale_index
        return Fault(
            f"the scale of {view.label(index)} is {view.label(scale)}, "
            f"which has scheme {view.tensor(scale).scheme}, not 0"
        )


class ScaleCount(
    Rule,
    name="scale-count",
    status="TYPE",
    field="scale_index",
    needs=("rank", "shape-tail", "quant-axis", "group-size", "scale-chain"),
    of_scale=("rank", "shape-tail"),
    applies=is_quantized,
):
    """The scale tensor has one element for each group.

    Why: a scale that was cut short, or belongs to another tensor, would still be
    read, and each weight after the gap would be scaled by the wrong number. The
    count is ceil(shape[axis] / group_size) times the other dimensions. The scale's
    dtype and shape are free.

    Fix: if the scale is short, export it again; if group_size or quant_axis is not
    the one that the weights were quantized with, correct it.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.scale.count == t.expected_scales

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        axis = tensor.quant_axis
        others = [length for i, length in enumerate(tensor.shape[: tensor.rank]) if i != axis]
        expected, found = tensor.expected_scales, tensor.scale.count
        groups = f"groups of {tensor.group_size} along axis {axis}"
        return Fault(
            f"{view.short_label(index)} ({type_text(tensor)}, {groups}) needs {plural(expected, 'scale')}; "
            f"{view.label(tensor.scale_index)} has {found}",
            f"ceil({tensor.shape[axis]} / {tensor.group_size}) · "
            f"{' · '.join(map(str, others or [1]))} = {expected}",
        )


class OuterAbsent(
    Rule, name="outer-absent", status="TYPE", field="outer_index", needs=("scheme",), applies=has_scheme_1
):
    """Scheme 1 has the outer_index 0xFFFFFFFF.

    Why: scheme 1 is one scale tensor and nothing else; an outer scale that it names
    would be left out by a reader that goes by the scheme.

    Fix: write 0xFFFFFFFF, or scheme 2 if the outer scale is meant.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.outer_index == NO_INDEX

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        return Fault(
            f"{view.label(index)} has scheme 1, but outer_index {tensor.outer_index}, not 0x{NO_INDEX:X}"
        )


class OuterIndex(
    Rule, name="outer-index", status="TYPE", field="outer_index", needs=("scheme",), applies=has_scheme_2
):
    """The outer_index of a tensor of scheme 2 is that of a tensor in the directory.

    Why: scheme 2 says that one f32 scales the scales; without it every weight is
    off by that factor.

    Fix: store the outer scale in this file and write its index, or use scheme 1.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.outer_index < t.file.num_tensors

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        return _no_such_tensor(view, index, "outer_index")


class OuterDistinct(
    Rule,
    name="outer-distinct",
    status="TYPE",
    field="outer_index",
    needs=("outer-index",),
    applies=has_scheme_2,
):
    """The outer scale is neither the tensor itself nor its scale.

    Why: they are three tensors with three meanings.

    Fix: point outer_index at the tensor that holds the one f32.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return (t.outer_index != t.index) & (t.outer_index != t.scale_index)

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        tensor = view.tensor(index)
        what = (
            "itself" if tensor.outer_index == index else f"its scale, {view.short_label(tensor.scale_index)},"
        )
        return Fault(f"{view.label(index)} names {what} as its outer scale")


class OuterChain(
    Rule,
    name="outer-chain",
    status="TYPE",
    field="outer_index",
    needs=("outer-distinct",),
    applies=has_scheme_2,
):
    """The outer scale has scheme 0.

    Why: an outer scale that itself has a scheme is a chain.

    Fix: store the outer scale unscaled, as one f32.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.outer.scheme == NONE

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        outer = view.tensor(index).outer_index
        return Fault(
            f"the outer scale of {view.label(index)} is {view.label(outer)}, "
            f"which has scheme {view.tensor(outer).scheme}, not 0"
        )


class OuterDtype(
    Rule,
    name="outer-dtype",
    status="TYPE",
    field="outer_index",
    needs=("outer-distinct",),
    applies=has_scheme_2,
):
    """The outer scale is f32.

    Why: the dtype of a scale is free, that of an outer scale is not: it is one f32,
    so that every reader can hand it out.

    Fix: store the outer scale as f32.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.outer.dtype == F32

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        outer = view.tensor(index).outer_index
        return Fault(f"the outer scale of {view.label(index)} is {view.label(outer)}; it must be f32")


class OuterCount(
    Rule,
    name="outer-count",
    status="TYPE",
    field="outer_index",
    needs=("outer-distinct",),
    of_outer=("rank", "shape-tail"),
    applies=has_scheme_2,
):
    """The outer scale has one element.

    Why: it scales the whole tensor. Its shape is free: [], [1] and [1, 1] have one.

    Fix: store one value; scales a row or a group belong in the scale tensor.
    """

    @staticmethod
    def holds(t: Subject) -> Truth:
        return t.outer.count == 1

    @staticmethod
    def explain(view: View, index: int) -> Fault:
        outer = view.tensor(index).outer_index
        found = view.tensor(outer).count
        return Fault(
            f"the outer scale of {view.label(index)} is {view.label(outer)}; it has {found} elements, not 1"
        )


def _no_such_tensor(view: View, index: int, field: str) -> Fault:
    found = getattr(view.tensor(index), field)
    if found == NO_INDEX:
        return Fault(
            f"{view.label(index)} has scheme {view.tensor(index).scheme}, but {field} 0x{found:X}: none"
        )
    count = plural(view.file.num_tensors, "tensor")
    return Fault(f"{view.label(index)} has {field} {found}; the directory has {count}, counted from 0")
