"""What a rule is: all that is known of it, declared once, as a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from kiln_check.rules.fault import Fault

DIRECTORY = "directory whole"
"""A need: magic and version hold, and header, directory and names are all there."""

Subject: TypeAlias = Any
"""What a predicate is asked of: a File, one tensor (a Row), or many at once (the screen's Columns)."""

Truth: TypeAlias = Any
"""What a predicate answers: a bool, or of Columns one for each tensor."""


class Rule(ABC):
    """One rule of the layout page, section "Rules".

    A rule is a subclass that is never made an instance of. Its docstring is what
    `kiln rules NAME` prints.

    `holds` says of a File or a tensor whether it keeps the rule, where all that the
    rule needs holds. It uses nothing but comparisons, `&`, `|` and `+ - * // %` on
    numbers that are not negative, so that it reads the same for exact integers and for
    columns. A column of a field is no wider than the field: `holds` takes no sum and no
    product of fields, but compares with a difference, which may be negative only beside
    a comparison that fails then. Element counts, blocks and what is made of them have 64
    bits, and the screen proves that they suffice.

    Attributes:
        name: what findings call it.
        status: the verdict that it gives.
        field: the field that a finding points at, by its name in the .ksy.
        needs: rules that must hold for the same tensor, or DIRECTORY.
        of_scale: rules that must hold for the tensor's scale.
        of_outer: rules that must hold for the tensor's outer scale.
        applies: which tensors it is about, as a predicate like `holds`; None for all.
        for_file: whether it is judged for the file as a whole.
        for_tensor: whether it is judged for each tensor.
        on_columns: whether `holds` runs on columns; else the screen has a proof of its own.

    """

    name: ClassVar[str]
    status: ClassVar[str]
    field: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    of_scale: ClassVar[tuple[str, ...]]
    of_outer: ClassVar[tuple[str, ...]]
    applies: ClassVar[Callable[[Subject], Truth] | None]
    for_file: ClassVar[bool]
    for_tensor: ClassVar[bool]
    on_columns: ClassVar[bool]

    def __init_subclass__(
        cls,
        *,
        name: str,
        status: str,
        field: str,
        needs: tuple[str, ...] = (DIRECTORY,),
        of_scale: tuple[str, ...] = (),
        of_outer: tuple[str, ...] = (),
        applies: Callable[[Subject], Truth] | None = None,
        for_file: bool = False,
        for_tensor: bool = True,
        on_columns: bool = True,
    ) -> None:
        cls.name, cls.status, cls.field = name, status, field
        cls.needs, cls.of_scale, cls.of_outer = needs, of_scale, of_outer
        cls.applies = None if applies is None else staticmethod(applies)
        cls.for_file, cls.for_tensor, cls.on_columns = for_file, for_tensor, on_columns

    @staticmethod
    @abstractmethod
    def holds(t: Subject) -> Truth:
        """Return whether `t` keeps the rule."""

    @staticmethod
    @abstractmethod
    def explain(view: Any, index: Any) -> Fault:
        """Return what is wrong with a tensor, or with the file (`index` is None), that breaks the rule."""
