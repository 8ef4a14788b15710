"""Breaks of the tensors of a checkpoint's quantized modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.breaking import breaks as kinds
from tools.breaking.breaks import Break, Change
from tools.breaking.folder import Checkpoint, Tensor
from tools.breaking.modules import Module, names_of, quantized_modules, representatives

OTHER_DTYPES = {
    "BF16": ("F32", "U8"),
    "F16": ("F32", "U8"),
    "F32": ("BF16", "I32"),
    "F64": ("F32", "I64"),
    "F8_E4M3": ("BF16", "I8"),
    "F8_E5M2": ("BF16", "I8"),
    "F8_E8M0": ("F32", "F8_E4M3"),
    "I16": ("I32", "F16"),
    "I32": ("I64", "F32"),
    "I64": ("I32", "F32"),
    "I8": ("U8", "BF16"),
    "U16": ("I32", "F16"),
    "U32": ("I64", "F32"),
    "U8": ("I8", "BF16"),
}
"""For each dtype one of its own class and one of another. E8M0 and U8 are two names of the same bytes."""


def tensor_breaks(checkpoint: Checkpoint) -> Iterator[Break]:
    """Every break of one module of each sort."""
    modules = quantized_modules(checkpoint)
    for module in representatives(modules):
        for suffix in module.tensors:
            yield from _altered(checkpoint, module, suffix)
            yield _removed(checkpoint, module, suffix)
            yield from _exchanged(checkpoint, modules, module, suffix)
    yield from _all_removed(checkpoint, modules)


def _changed(checkpoint: Checkpoint, changes: Mapping[str, Tensor | None]) -> Checkpoint:
    """The checkpoint with some of its tensors replaced; those replaced by None are gone."""
    after = {**checkpoint.tensors, **changes}
    return checkpoint._replace(tensors={name: one for name, one in after.items() if one is not None})


def _altered(checkpoint: Checkpoint, module: Module, suffix: str) -> Iterator[Break]:
    """The breaks that change the shape or the dtype of one tensor."""
    before = module.tensors[suffix]
    names = names_of(checkpoint, module)
    seen = {before[:2]}
    for kind, after in alterations(before):
        if after[:2] not in seen:
            seen.add(after[:2])
            what = f"{module.full(suffix)}: {before.text()} to {after.text()}"
            broken = _changed(checkpoint, {module.full(suffix): after})
            yield Break(kind, what, broken, names, (Change(module.tensors, suffix, after),))


def alterations(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """A tensor in every other shape and dtype, with the kind of break that it is; some may be equal.

    One element is not made none, nor flattened: loaders take it in any rank.
    """
    shape = tensor.shape
    if tensor.num_elements == 1:
        yield kinds.MADE_TWO, tensor._replace(shape=(2, *shape[1:]))
    for axis, length in enumerate(shape):
        column = axis > 0 and axis == len(shape) - 1
        more, less = (kinds.COLUMN_MORE, kinds.COLUMN_LESS) if column else (kinds.ROW_MORE, kinds.ROW_LESS)
        yield more, tensor._replace(shape=_with_length(shape, axis, length + 1))
        if length > 1:
            yield less, tensor._replace(shape=_with_length(shape, axis, length - 1))
    if len(shape) > 1:
        yield kinds.TRANSPOSED, tensor._replace(shape=(*shape[:-2], shape[-1], shape[-2]))
        if tensor.num_elements > 1:
            yield kinds.FLATTENED, tensor._replace(shape=(tensor.num_elements,))
    for dtype in OTHER_DTYPES.get(tensor.dtype, ()):
        yield kinds.DTYPE, tensor._replace(dtype=dtype)


def _with_length(shape: Sequence[int], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _removed(checkpoint: Checkpoint, module: Module, suffix: str) -> Break:
    name = module.full(suffix)
    return Break(
        kinds.REMOVED,
        f"{name}: {module.tensors[suffix].text()} removed",
        _changed(checkpoint, {name: None}),
        names_of(checkpoint, module),
        (Change(module.tensors, suffix, None),),
    )


def _exchanged(
    checkpoint: Checkpoint, modules: Sequence[Module], module: Module, suffix: str
) -> Iterator[Break]:
    """A tensor exchanged with that of another module: with one of the same count, and one of another."""
    before = module.tensors[suffix]
    others = {
        other: one.tensors[suffix]
        for other, one in enumerate(modules)
        if suffix in one.tensors and one.tensors[suffix].dtype == before.dtype
    }
    for same_count in (True, False):
        for other, after in others.items():
            if after.shape != before.shape and (after.num_elements == before.num_elements) == same_count:
                yield _exchange(checkpoint, module, modules[other], suffix)
                break


def _exchange(checkpoint: Checkpoint, module: Module, other: Module, suffix: str) -> Break:
    one, two = module.tensors[suffix], other.tensors[suffix]
    here, there = two._replace(file=one.file), one._replace(file=two.file)
    return Break(
        kinds.EXCHANGED,
        f"{module.full(suffix)}: {one.text()} for {other.full(suffix)}: {two.text()}",
        _changed(checkpoint, {module.full(suffix): here, other.full(suffix): there}),
        names_of(checkpoint, module) | names_of(checkpoint, other),
        (Change(module.tensors, suffix, here), Change(other.tensors, suffix, there)),
    )


def _all_removed(checkpoint: Checkpoint, modules: Sequence[Module]) -> Iterator[Break]:
    """Every tensor with the same suffix removed, for each suffix that several modules have."""
    with_suffix: dict[str, list[Module]] = {}
    for module in modules:
        for suffix in module.tensors:
            with_suffix.setdefault(suffix, []).append(module)
    for suffix, having in with_suffix.items():
        if len(having) == 1:
            continue
        yield Break(
            kinds.ALL_REMOVED,
            f"all {len(having)} {suffix}: removed",
            _changed(checkpoint, {module.full(suffix): None for module in having}),
            frozenset().union(*(names_of(checkpoint, module) for module in having)),
            tuple(Change(module.tensors, suffix, None) for module in having),
        )
