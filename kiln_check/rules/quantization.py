"""Rules 16 to 30: how a tensor names its scale and its outer scale.

The rules are those of the Quantization page ("Why the scale is another tensor" and the
table of schemes after it); their names and their order are the layout page's, "Rules".
Each function judges one rule for one tensor and returns a Fault or None. It may take
for granted what the rule's row in `table` says that it needs. `kiln rules NAME` prints
its docstring.
"""

from __future__ import annotations

from kiln_check.constants import NONE, SCALES, SCALES_AND_OUTER
from kiln_check.generated.kiln_v2_records import DTYPES, NO_AXIS, NO_INDEX, SCHEMES
from kiln_check.rules.fault import Fault
from kiln_check.rules.view import View, element_count, type_text
from kiln_check.text import plural

QUANTIZED = (SCALES, SCALES_AND_OUTER)


def scheme(view: View, index: int) -> Fault | None:
    """The scheme is 0 (none), 1 (scales) or 2 (scales and outer).

    Why: the scheme says which of the two indexes mean something.

    Fix: write 0, 1 or 2.
    """
    tensor = view.tensor(index)
    if tensor.scheme in SCHEMES:
        return None
    return Fault(f"{view.short_label(index)} has scheme {tensor.scheme}; there are 0, 1 and 2")


def scheme_none(view: View, index: int) -> Fault | None:
    """Scheme 0 has group_size 0, quant_axis 0xFFFF, and both indexes 0xFFFFFFFF.

    Why: a tensor without a link must not look half linked: a reader that goes by
    the index alone would apply a scale that the scheme does not name.

    Fix: write those values, or set the scheme that was meant.
    """
    tensor = view.tensor(index)
    if tensor.scheme != NONE:
        return None
    wanted = {"group_size": 0, "quant_axis": NO_AXIS, "scale_index": NO_INDEX, "outer_index": NO_INDEX}
    for field, value in wanted.items():
        found = getattr(tensor, field)
        if found != value:
            shown = value if value == 0 else f"0x{value:X}"
            return Fault(f"{view.label(index)} has scheme 0, but {field} {found}, not {shown}", field=field)
    return None


def quant_rank(view: View, index: int) -> Fault | None:
    """A tensor of scheme 1 or 2 has at least one dimension.

    Why: groups run along an axis, and a tensor of rank 0 has none.

    Fix: give the tensor the shape [1], or scheme 0.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or tensor.rank >= 1:
        return None
    return Fault(f"{view.label(index)} has scheme {tensor.scheme}, but rank 0 and so no axis to group along")


def quant_axis(view: View, index: int) -> Fault | None:
    """The quant_axis of a tensor of scheme 1 or 2 is less than its rank.

    Why: groups run along this axis. 0 is the outermost.

    Fix: for groups along the last axis write rank − 1.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or tensor.quant_axis < tensor.rank:
        return None
    return Fault(f"{view.label(index)} has quant_axis {tensor.quant_axis}; its rank is {tensor.rank}")


def group_size(view: View, index: int) -> Fault | None:
    """The group_size of a tensor of scheme 1 or 2 is at least 1.

    Why: it is the number of elements that share one scale along quant_axis.

    Fix: write the size of a group, 32 for MXFP4, 16 for NVFP4, the whole dimension
    for one scale a row.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or tensor.group_size >= 1:
        return None
    return Fault(f"{view.label(index)} has scheme {tensor.scheme}, but group_size 0")


def scale_index(view: View, index: int) -> Fault | None:
    """The scale_index of a tensor of scheme 1 or 2 is that of a tensor in the directory.

    Why: the scale is another tensor of the same file. Without it the elements can't
    be read as numbers.

    Fix: store the scale in this file and write its index, counted from 0.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or tensor.scale_index < view.header.num_tensors:
        return None
    return _no_such_tensor(view, index, "scale_index")


def scale_self(view: View, index: int) -> Fault | None:
    """The scale of a tensor is another tensor.

    Why: a tensor that scales itself is a chain without an end.

    Fix: point scale_index at the tensor that holds the scales.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or tensor.scale_index != index:
        return None
    return Fault(f"{view.label(index)} names itself as its scale")


def scale_chain(view: View, index: int) -> Fault | None:
    """The scale tensor has scheme 0.

    Why: a scale that itself has a scheme is a chain, and a chain has no end that can
    be seen from the two indexes.

    Fix: store the scale unscaled. A scale over the scales is what scheme 2 is for.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED or view.tensor(tensor.scale_index).scheme == NONE:
        return None
    return Fault(
        f"the scale of {view.label(index)} is {view.label(tensor.scale_index)}, "
        f"which has scheme {view.tensor(tensor.scale_index).scheme}, not 0"
    )


def scale_count(view: View, index: int) -> Fault | None:
    """The scale tensor has one element for each group.

    Why: a scale that was cut short, or belongs to another tensor, would still be
    read, and each weight after the gap would be scaled by the wrong number. The
    count is ceil(shape[axis] / group_size) times the other dimensions. The scale's
    dtype and shape are free.

    Fix: if the scale is short, export it again; if group_size or quant_axis is not
    the one that the weights were quantized with, correct it.
    """
    tensor = view.tensor(index)
    if tensor.scheme not in QUANTIZED:
        return None
    axis = tensor.quant_axis
    others = [length for i, length in enumerate(tensor.shape[: tensor.rank]) if i != axis]
    expected = -(-tensor.shape[axis] // tensor.group_size)
    for length in others:
        expected *= length
    found = element_count(view.tensor(tensor.scale_index))
    if found == expected:
        return None
    groups = f"groups of {tensor.group_size} along axis {axis}"
    return Fault(
        f"{view.short_label(index)} ({type_text(tensor)}, {groups}) needs {plural(expected, 'scale')}; "
        f"{view.label(tensor.scale_index)} has {found}",
        f"ceil({tensor.shape[axis]} / {tensor.group_size}) · "
        f"{' · '.join(map(str, others or [1]))} = {expected}",
    )


def outer_absent(view: View, index: int) -> Fault | None:
    """Scheme 1 has the outer_index 0xFFFFFFFF.

    Why: scheme 1 is one scale tensor and nothing else; an outer scale that it names
    would be left out by a reader that goes by the scheme.

    Fix: write 0xFFFFFFFF, or scheme 2 if the outer scale is meant.
    """
    tensor = view.tensor(index)
    if tensor.scheme != SCALES or tensor.outer_index == NO_INDEX:
        return None
    return Fault(
        f"{view.label(index)} has scheme 1, but outer_index {tensor.outer_index}, not 0x{NO_INDEX:X}"
    )


def outer_index(view: View, index: int) -> Fault | None:
    """The outer_index of a tensor of scheme 2 is that of a tensor in the directory.

    Why: scheme 2 says that one f32 scales the scales; without it every weight is
    off by that factor.

    Fix: store the outer scale in this file and write its index, or use scheme 1.
    """
    tensor = view.tensor(index)
    if tensor.scheme != SCALES_AND_OUTER or tensor.outer_index < view.header.num_tensors:
        return None
    return _no_such_tensor(view, index, "outer_index")


def outer_distinct(view: View, index: int) -> Fault | None:
    """The outer scale is neither the tensor itself nor its scale.

    Why: they are three tensors with three meanings.

    Fix: point outer_index at the tensor that holds the one f32.
    """
    tensor = view.tensor(index)
    if tensor.scheme != SCALES_AND_OUTER or tensor.outer_index not in (index, tensor.scale_index):
        return None
    what = "itself" if tensor.outer_index == index else f"its scale, {view.short_label(tensor.scale_index)},"
    return Fault(f"{view.label(index)} names {what} as its outer scale")


def outer_chain(view: View, index: int) -> Fault | None:
    """The outer scale has scheme 0.

    Why: an outer scale that itself has a scheme is a chain.

    Fix: store the outer scale unscaled, as one f32.
    """
    outer = view.outer_of(index)
    if outer is None or view.tensor(outer).scheme == NONE:
        return None
    return Fault(
        f"the outer scale of {view.label(index)} is {view.label(outer)}, "
        f"which has scheme {view.tensor(outer).scheme}, not 0"
    )


def outer_dtype(view: View, index: int) -> Fault | None:
    """The outer scale is f32.

    Why: the dtype of a scale is free, that of an outer scale is not: it is one f32,
    so that every reader can hand it out.

    Fix: store the outer scale as f32.
    """
    outer = view.outer_of(index)
    if outer is None or DTYPES.get(view.tensor(outer).dtype) == "f32":
        return None
    return Fault(f"the outer scale of {view.label(index)} is {view.label(outer)}; it must be f32")


def outer_count(view: View, index: int) -> Fault | None:
    """The outer scale has one element.

    Why: it scales the whole tensor. Its shape is free: [], [1] and [1, 1] have one.

    Fix: store one value; scales a row or a group belong in the scale tensor.
    """
    outer = view.outer_of(index)
    if outer is None or element_count(view.tensor(outer)) == 1:
        return None
    found = element_count(view.tensor(outer))
    return Fault(
        f"the outer scale of {view.label(index)} is {view.label(outer)}; it has {found} elements, not 1"
    )


def _no_such_tensor(view: View, index: int, field: str) -> Fault:
    found = getattr(view.tensor(index), field)
    if found == NO_INDEX:
        return Fault(
            f"{view.label(index)} has scheme {view.tensor(index).scheme}, but {field} 0x{found:X}: none"
        )
    count = plural(view.header.num_tensors, "tensor")
    return Fault(f"{view.label(index)} has {field} {found}; the directory has {count}, counted from 0")
