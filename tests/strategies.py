"""Hypothesis strategies: sound files of any shape, and faults that break one rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tools.corpus.layout import DTYPE_CODES, MAX_RANK, NO_AXIS, NO_INDEX, File, Tensor

U2, U4, U8 = 1 << 16, 1 << 32, 1 << 64

PLAIN_DTYPES = sorted(DTYPE_CODES.keys() - {"foreign"})

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
Shape: TypeAlias = tuple[int, ...]


@st.composite
def shapes(draw: Draw, min_rank: int = 0) -> Shape:
    """A shape of at most 64 elements, of any rank, with zeros; with one, others may be huge."""
    rank = draw(st.integers(min_rank, MAX_RANK))
    lengths: list[int] = []
    for _ in range(rank):
        room = 64 // max(1, math.prod(lengths))
        lengths.append(draw(st.integers(0, min(room, 40))))
    if 0 in lengths and draw(st.booleans()):
        lengths = [length and draw(st.integers(1, U8 - 1)) for length in lengths]
    return tuple(draw(st.permutations(lengths)))


@st.composite
def unlinked(draw: Draw) -> dict[str, Any]:
    """A tensor of scheme 0, of any dtype."""
    shape = draw(shapes())
    if draw(st.integers(0, 4)):
        return {"dtype": draw(st.sampled_from(PLAIN_DTYPES)), "shape": shape}
    elements = draw(st.integers(1, 5))
    if shape:
        shape = (*shape[:-1], shape[-1] * elements % U8 if math.prod(shape) else shape[-1])
    else:
        elements = 1
    block = (elements, draw(st.integers(1, 7)))
    return {"dtype": "foreign", "shape": shape, "block": block, "tag": draw(st.integers(0, U4 - 1))}


def due_scales(shape: Shape, axis: int, group_size: int) -> int:
    """Number of scales, as the page gives it: groups along the axis times the other dimensions."""
    groups, rest = divmod(shape[axis], group_size)
    return (groups + (rest > 0)) * math.prod(shape[:axis] + shape[axis + 1 :])


@st.composite
def scale_shapes(draw: Draw, count: int) -> Shape:
    """A shape with `count` elements."""
    if count == 0:
        forms: list[Shape] = [(0,), (3, 0), (0, U8 - 1)]
    else:
        forms = [(count,), (count, 1), (1, count, 1), *([()] if count == 1 else [])]
    shape: Shape = draw(st.sampled_from(forms))
    return shape


@st.composite
def sound_tensors(draw: Draw) -> list[Tensor]:
    """Tensors that together make a sound file; links are by index."""
    plans: list[dict[str, Any]] = [draw(unlinked()) for _ in range(draw(st.integers(0, 4)))]
    for _ in range(draw(st.integers(0, 3))):
        shape = draw(shapes(min_rank=1))
        axis = draw(st.integers(0, len(shape) - 1))
        near = [1, min(max(shape[axis], 1), U4 - 1), min(shape[axis] + 1, U4 - 1), U4 - 1]
        group_size = draw(st.sampled_from(near) | st.integers(1, 40))
        plan = {"dtype": draw(st.sampled_from(PLAIN_DTYPES)), "shape": shape, "scheme": 1}
        plan.update(axis=axis, group_size=group_size)
        plan["scale"] = _scale(draw, plans, due_scales(shape, axis, group_size))
        if draw(st.booleans()):
            plan.update(scheme=2, outer=_outer(draw, plans, plan["scale"]))
        plans.append(plan)
    order = draw(st.permutations(range(len(plans))))
    place = {plan: index for index, plan in enumerate(order)}
    names = draw(st.lists(NAMES, min_size=len(plans), max_size=len(plans), unique=True))
    for plan in plans:
        plan.update({link: place[plan[link]] for link in ("scale", "outer") if link in plan})
    return [Tensor(name, **plans[plan]) for name, plan in zip(names, order, strict=True)]


def _scale(draw: Draw, plans: list[dict[str, Any]], count: int) -> int:
    """A place in `plans`: a tensor that has the count already, or a new one."""
    shared = [
        other
        for other, plan in enumerate(plans)
        if "scheme" not in plan and math.prod(plan["shape"]) == count
    ]
    if shared and draw(st.booleans()):
        place: int = draw(st.sampled_from(shared))
        return place
    plans.append({"dtype": draw(st.sampled_from(PLAIN_DTYPES)), "shape": draw(scale_shapes(count))})
    return len(plans) - 1


def _outer(draw: Draw, plans: list[dict[str, Any]], scale: int) -> int:
    shared = [
        other
        for other, plan in enumerate(plans)
        if other != scale
        and "scheme" not in plan
        and plan["dtype"] == "f32"
        and math.prod(plan["shape"]) == 1
    ]
    if shared and draw(st.booleans()):
        place: int = draw(st.sampled_from(shared))
        return place
    plans.append({"dtype": "f32", "shape": draw(st.sampled_from([(), (1,), (1, 1, 1)]))})
    return len(plans) - 1


@st.composite
def sound_files(draw: Draw) -> File:
    """A sound file; some payloads are shared whole, and some bytes belong to nobody."""
    tensors = draw(sound_tensors())
    file = File(*tensors, slack=draw(st.sampled_from([0, 1, 64])))
    for index, tensor in enumerate(tensors):
        twins = [other for other in range(index) if tensors[other].due_bytes == tensor.due_bytes]
        if twins and not draw(st.integers(0, 3)):
            file.place(index, like=draw(st.sampled_from(twins)))
    return file


Breaker = Callable[[Draw, File], int | None]
"""Breaks a sound file in place; gives the tensor that is at fault, None for the file itself."""

FAULTS: dict[str, tuple[Callable[[File], list[int]] | None, Breaker]] = {}
"""For each rule: which tensors of a file it can be broken for (None: the file), and how."""


def fault(rule: str, among: Callable[[File], list[int]] | None) -> Callable[[Any], Any]:
    """Register a function that breaks `rule` for one of the tensors that `among` gives.

    It returns the tensor that is then at fault, where that is another one.
    """

    def register(breaker: Callable[..., int | None]) -> Callable[..., int | None]:
        def apply(draw: Draw, file: File) -> int | None:
            if among is None:
                breaker(draw, file)
                return None
            index: int = draw(st.sampled_from(among(file)))
            at_fault = breaker(draw, file, index)
            return index if at_fault is None else at_fault

        FAULTS[rule] = (among, apply)
        return breaker

    return register


def every(file: File) -> list[int]:
    """All tensors."""
    return list(range(len(file.descriptors)))


def where(test: Callable[[dict[str, Any]], object]) -> Callable[[File], list[int]]:
    """The tensors whose descriptor passes a test."""
    return lambda file: [index for index in every(file) if test(file.descriptors[index])]


quantized = where(lambda fields: fields["scheme"] in (1, 2))
with_outer = where(lambda fields: fields["scheme"] == 2)


def linked(link: str, among: Callable[[File], list[int]]) -> Callable[[File], list[int]]:
    """Those of the tensors whose scale_index or outer_index is that of a tensor."""
    return lambda file: [i for i in among(file) if file.descriptors[i][link] < len(file.descriptors)]


def counted(file: File) -> list[int]:
    """The quantized tensors whose groups can be counted, and whose scale is there."""
    fields = file.descriptors
    return [
        index
        for index in linked("scale_index", quantized)(file)
        if fields[index]["quant_axis"] < len(fields[index]["shape"]) and fields[index]["group_size"]
    ]


plain = where(lambda fields: fields["scheme"] == 0)


@fault("magic", None)
def _magic(draw: Draw, file: File) -> None:
    place = draw(st.integers(0, 7))
    raw = bytearray(file.header["magic"])
    raw[place] ^= draw(st.integers(1, 255))
    file.head(magic=bytes(raw))


@fault("version", None)
def _version(draw: Draw, file: File) -> None:
    file.head(version=draw(st.integers(0, U2 - 1).filter(lambda number: number != 2)))


@fault("file-length", None)
def _file_length(draw: Draw, file: File) -> None:
    if draw(st.booleans()):
        file.cut(draw(st.integers(0, file.size - 1)))
    else:
        file.append(bytes(draw(st.integers(1, 3))))


@fault("reserved", every)
def _reserved(draw: Draw, file: File, index: int) -> None:
    field, top = draw(st.sampled_from([("reserved1", U2), ("reserved2", U8)]))
    file.set(index, **{field: draw(st.integers(1, top - 1))})


@fault("name-range", every)
def _name_range(draw: Draw, file: File, index: int) -> None:
    file.set(index, ofs_name=draw(st.integers(file.header["len_names"], U4 - 1)), len_name=1)


@fault("name-text", every)
def _name_text(draw: Draw, file: File, index: int) -> None:
    fields = file.descriptors[index]
    kind = draw(st.sampled_from(["empty", "control", "not UTF-8"]))
    if kind == "empty":
        file.set(index, len_name=0)
        return
    bad = [b"\0", b"\x1f", b"\x7f"] if kind == "control" else [b"\xff", b"\x80", b"\xc0", b"\xf5"]
    raw = bytearray(file.names)
    raw[fields["ofs_name"] : fields["ofs_name"] + 1] = draw(st.sampled_from(bad))
    file.names = bytes(raw)


@fault("name-unique", lambda file: every(file)[1:])
def _name_unique(draw: Draw, file: File, index: int) -> None:
    other = file.descriptors[draw(st.integers(0, index - 1))]
    file.set(index, ofs_name=other["ofs_name"], len_name=other["len_name"])


@fault("dtype", every)
def _dtype(draw: Draw, file: File, index: int) -> None:
    file.set(index, dtype=draw(st.integers(0, U2 - 1).filter(lambda code: code not in DTYPE_CODES.values())))


@fault("rank", every)
def _rank(draw: Draw, file: File, index: int) -> None:
    file.set(index, rank=draw(st.integers(MAX_RANK + 1, U2 - 1)))


@fault("shape-tail", where(lambda fields: fields["rank"] < MAX_RANK))
def _shape_tail(draw: Draw, file: File, index: int) -> None:
    fields = file.descriptors[index]
    shape = [*fields["shape"], *[0] * (MAX_RANK - len(fields["shape"]))]
    shape[draw(st.integers(fields["rank"], MAX_RANK - 1))] = draw(st.integers(1, U8 - 1))
    file.set(index, shape=tuple(shape))


@fault("foreign-block", every)
def _foreign_block(draw: Draw, file: File, index: int) -> None:
    fields = file.descriptors[index]
    if fields["dtype"] != DTYPE_CODES["foreign"]:
        field = draw(st.sampled_from(["block_elements", "block_bytes", "foreign_tag"]))
        file.set(index, **{field: draw(st.integers(1, U4 - 1))})
    elif math.prod(fields["shape"]) and draw(st.booleans()):
        count = math.prod(fields["shape"])
        file.set(index, block_elements=draw(st.integers(2, U4 - 1).filter(lambda size: count % size)))
    else:
        file.set(index, **{draw(st.sampled_from(["block_elements", "block_bytes"])): 0})


@fault("data-length", every)
def _data_length(draw: Draw, file: File, index: int) -> None:
    expected = file.descriptors[index]["len_data"]
    file.set(index, len_data=draw(st.integers(0, U8 - 1).filter(lambda length: length != expected)))


@fault("data-align", every)
def _data_align(draw: Draw, file: File, index: int) -> None:
    file.set(index, ofs_data=file.descriptors[index]["ofs_data"] // 64 * 64 + draw(st.integers(1, 63)))


@fault("data-range", every)
def _data_range(draw: Draw, file: File, index: int) -> None:
    head = file.size - len(file.data)
    end = max(0, file.header["len_file"] - file.descriptors[index]["len_data"])
    file.set(index, ofs_data=draw(st.integers(0, head - 1) | st.integers(end + 1, U8 - 1)))


@fault("data-overlap", where(lambda fields: 1 < fields["len_data"] < 1 << 20))
def _data_overlap(draw: Draw, file: File, index: int) -> int:
    shorter = dict(file.descriptors[index], ofs_name=len(file.names), len_name=3)
    shorter.update(dtype=DTYPE_CODES["u8"], rank=1, shape=(shorter["len_data"] - 1,))
    shorter.update(scheme=0, quant_axis=NO_AXIS, group_size=0, scale_index=NO_INDEX, outer_index=NO_INDEX)
    shorter.update(len_data=shorter["len_data"] - 1, foreign_tag=0, block_elements=0, block_bytes=0)
    append_descriptor(file, shorter, b"\xe2\x80\xa6")
    return len(file.descriptors) - 1


@fault("scheme", every)
def _scheme(draw: Draw, file: File, index: int) -> None:
    file.set(index, scheme=draw(st.integers(3, U2 - 1)))


@fault("scheme-none", plain)
def _scheme_none(draw: Draw, file: File, index: int) -> None:
    field, first, last = draw(
        st.sampled_from(
            [
                ("group_size", 1, U4 - 1),
                ("quant_axis", 0, NO_AXIS - 1),
                ("scale_index", 0, NO_INDEX - 1),
                ("outer_index", 0, NO_INDEX - 1),
            ]
        )
    )
    file.set(index, **{field: draw(st.integers(first, last))})


@fault("quant-rank", quantized)
def _quant_rank(draw: Draw, file: File, index: int) -> None:
    file.set(index, rank=0)


@fault("quant-axis", quantized)
def _quant_axis(draw: Draw, file: File, index: int) -> None:
    file.set(index, quant_axis=draw(st.integers(file.descriptors[index]["rank"], U2 - 1)))


@fault("group-size", quantized)
def _group_size(draw: Draw, file: File, index: int) -> None:
    file.set(index, group_size=0)


@fault("scale-index", quantized)
def _scale_index(draw: Draw, file: File, index: int) -> None:
    file.set(index, scale_index=draw(st.integers(len(file.descriptors), U4 - 1)))


@fault("scale-self", quantized)
def _scale_self(draw: Draw, file: File, index: int) -> None:
    file.set(index, scale_index=index)


@fault("scale-chain", linked("scale_index", quantized))
def _scale_chain(draw: Draw, file: File, index: int) -> None:
    file.set(file.descriptors[index]["scale_index"], scheme=draw(st.integers(1, U2 - 1)))


@fault("scale-count", counted)
def _scale_count(draw: Draw, file: File, index: int) -> None:
    fields = file.descriptors[index]
    expected = due_scales(fields["shape"], fields["quant_axis"], fields["group_size"])
    count = draw(st.integers(0, U8 - 1).filter(lambda number: number != expected))
    file.set(fields["scale_index"], rank=1, shape=(count,))


@fault("outer-absent", where(lambda fields: fields["scheme"] == 1))
def _outer_absent(draw: Draw, file: File, index: int) -> None:
    file.set(index, outer_index=draw(st.integers(0, NO_INDEX - 1)))


@fault("outer-index", with_outer)
def _outer_index(draw: Draw, file: File, index: int) -> None:
    file.set(index, outer_index=draw(st.integers(len(file.descriptors), U4 - 1)))


@fault("outer-distinct", with_outer)
def _outer_distinct(draw: Draw, file: File, index: int) -> None:
    file.set(index, outer_index=draw(st.sampled_from([index, file.descriptors[index]["scale_index"]])))


@fault("outer-chain", linked("outer_index", with_outer))
def _outer_chain(draw: Draw, file: File, index: int) -> None:
    file.set(file.descriptors[index]["outer_index"], scheme=draw(st.integers(1, U2 - 1)))


@fault("outer-dtype", linked("outer_index", with_outer))
def _outer_dtype(draw: Draw, file: File, index: int) -> None:
    codes = st.integers(0, U2 - 1).filter(lambda code: code != DTYPE_CODES["f32"])
    file.set(file.descriptors[index]["outer_index"], dtype=draw(codes))


@fault("outer-count", linked("outer_index", with_outer))
def _outer_count(draw: Draw, file: File, index: int) -> None:
    count = draw(st.integers(0, U8 - 1).filter(lambda number: number != 1))
    file.set(file.descriptors[index]["outer_index"], rank=1, shape=(count,))


def append_descriptor(file: File, fields: dict[str, Any], name: bytes) -> None:
    """Put one more tensor at the end; every payload moves with the head that grows."""
    before = file.size - len(file.data)
    file.descriptors.append(fields)
    file.names += name
    grown = file.size - len(file.data)
    pad = -grown % 64
    moved = grown + pad - before
    file.data = bytes(pad) + file.data
    for other in file.descriptors:
        other["ofs_data"] = min(other["ofs_data"] + moved, U8 - 1)
    file.head(
        num_tensors=len(file.descriptors), len_names=len(file.names), len_file=file.header["len_file"] + moved
    )


@st.composite
def broken_files(draw: Draw, faults: int = 1) -> tuple[File, list[tuple[str, int | None]]]:
    """A file with so many faults, and which rule was broken for which tensor (None: the file)."""
    file = draw(sound_files())
    done = []
    for _ in range(faults):
        fitting = [rule for rule, (among, _) in FAULTS.items() if among is None or among(file)]
        rule = draw(st.sampled_from(fitting))
        done.append((rule, FAULTS[rule][1](draw, file)))
    return file, done
