"""Shapes as a template writes them: `[*E, N, ceil(K * b / 32)]`.

A dimension is an expression in names (N, K, g …), whole numbers, `+ - * /`, `ceil(x)`, which rounds up,
and `up(x, m)`, the least multiple of m that is not less than x. `*E` stands for any number of leading
dimensions. Arithmetic is exact: a quotient that leaves a rest is no dimension.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from math import ceil, prod
from typing import NamedTuple, TypeAlias

Value: TypeAlias = "int | str | tuple[int, ...]"
"""What a name stands for: a number; an expression in other names; or, for `*E`, dimensions."""

Values: TypeAlias = Mapping[str, Value]


class Shape(NamedTuple):
    """A shape in names.

    Attributes:
        text: as it is written.
        stack: the name of the leading dimensions; None where there are none.
        dimensions: an expression for each of the others.

    """

    text: str
    stack: str | None
    dimensions: tuple[ast.expr, ...]

    def may_be(self, rank: int) -> bool:
        """Whether a shape of so many dimensions may be this one."""
        return rank == len(self.dimensions) or (self.stack is not None and rank > len(self.dimensions))

    def of(self, values: Values) -> tuple[int, ...] | None:
        """The shape in numbers; None where a name has no value or a dimension is no whole number.

        Args:
            values: of the names.

        """
        lengths: list[int] = []
        if self.stack is not None:
            leading = values.get(self.stack)
            if not isinstance(leading, tuple):
                return None
            lengths += leading
        for dimension in self.dimensions:
            length = _whole(_value(dimension, values))
            if length is None:
                return None
            lengths.append(length)
        return tuple(lengths)


@cache
def parse(text: str) -> tuple[Shape, ...]:
    """The alternatives of `[N, 1] | [N]`.

    Raises ValueError where a text is no such shape.
    """
    return tuple(map(_parse_one, text.split("|")))


def _parse_one(text: str) -> Shape:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no shape: {error.msg}") from error
    if not isinstance(tree, ast.List):
        raise ValueError(f"{text!r} is no shape: it has no brackets")
    first = tree.elts[0] if tree.elts else None
    if isinstance(first, ast.Starred) and isinstance(first.value, ast.Name):
        return Shape(text.strip(), first.value.id, tuple(tree.elts[1:]))
    return Shape(text.strip(), None, tuple(tree.elts))


@cache
def expression(text: str) -> ast.expr:
    """One expression, such as `K * b / 32`.

    Raises ValueError where it is none.
    """
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no expression: {error.msg}") from error


def number(text: str, values: Values) -> int | None:
    """The value of an expression; None where a name has none or it is no whole number."""
    return _whole(_value(expression(text), values))


def unknown(shape: Shape, values: Values) -> bool:
    """Whether a name in a shape has no value."""
    return (shape.stack is not None and shape.stack not in values) or any(
        True for one in shape.dimensions for _ in _unknown(one, values)
    )


def possible(shape: Shape, found: tuple[int, ...], values: Values) -> bool:
    """Whether some values of the names without one give a shape what was found.

    Args:
        shape: in names.
        found: in numbers.
        values: of the names that are known.

    """
    if not shape.may_be(len(found)):
        return False
    leading = len(found) - len(shape.dimensions)
    if shape.stack is not None and values.get(shape.stack, found[:leading]) != found[:leading]:
        return False
    for dimension, length in zip(shape.dimensions, found[leading:], strict=True):
        names = set(_unknown(dimension, values))
        if not names and _value(dimension, values) != length:
            return False
        if len(names) == 1 and _solved(dimension, Fraction(length), values, True) is None:
            return False
    return True


def working(shape: Shape, values: Values) -> str:
    """How the dimensions that are worked out come about: `ceil(40 / 32) = 2`; empty where none is."""
    return ", ".join(
        f"{_filled(one, values)} = {_whole(_value(one, values))}"
        for one in shape.dimensions
        if not isinstance(one, ast.Name | ast.Constant) and _whole(_value(one, values)) is not None
    )


def solve(shape: Shape, found: tuple[int, ...], values: Values, rounded: bool) -> dict[str, Value]:
    """Names without a value that a found shape gives one.

    Args:
        shape: in names.
        found: in numbers.
        values: of the names that are known.
        rounded: whether to solve what is rounded too: the greatest value that is not rounded.

    Returns:
        The new values; none where the number of dimensions does not agree.

    """
    leading = len(found) - len(shape.dimensions)
    if not shape.may_be(len(found)):
        return {}
    new: dict[str, Value] = {}
    if shape.stack is not None and shape.stack not in values:
        new[shape.stack] = found[:leading]
    for dimension, length in zip(shape.dimensions, found[leading:], strict=True):
        unknown = set(_unknown(dimension, {**values, **new}))
        if len(unknown) == 1:
            solved = _solved(dimension, Fraction(length), {**values, **new}, rounded)
            if solved is not None:
                new[unknown.pop()] = solved
    return new


def _value(node: ast.expr, values: Values) -> Fraction | None:
    """The exact value of an expression; None where a name has none."""
    match node:
        case ast.Constant(value=int() as constant):
            return Fraction(constant)
        case ast.Name(id=name):
            found = values.get(name)
            if isinstance(found, str):
                return _value(expression(found), values)
            return _fraction(prod(found) if isinstance(found, tuple) else found)
        case ast.BinOp(left=left, op=op, right=right):
            return _applied(op, _value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id="ceil"), args=[inner]):
            value = _value(inner, values)
            return None if value is None else Fraction(ceil(value))
        case ast.Call(func=ast.Name(id="up"), args=[inner, step]):
            value, by = _value(inner, values), _value(step, values)
            return None if value is None or not by else Fraction(ceil(value / by) * by)
    raise ValueError(f"{ast.unparse(node)!r} is no expression of a shape")


def _fraction(value: int | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _applied(op: ast.operator, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    if left is None or right is None:
        return None
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right if right else None
    raise ValueError(f"{ast.dump(op)} is no operation of a shape")


def _whole(value: Fraction | None) -> int | None:
    return int(value) if value is not None and value.denominator == 1 and value >= 0 else None


def _unknown(node: ast.expr, values: Values) -> Iterator[str]:
    """The names in an expression that have no value."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id not in ("ceil", "up"):
            found = values.get(one.id)
            if found is None:
                yield one.id
            elif isinstance(found, str):
                yield from _unknown(expression(found), values)


def _solved(node: ast.expr, target: Fraction, values: Values, rounded: bool) -> int | None:
    """The value of the one unknown name that gives an expression a value; None where none is found."""
    match node:
        case ast.Name(id=name):
            if isinstance(named := values.get(name), str):
                return _solved(expression(named), target, values, rounded)
            return _whole(target)
        case ast.Call(
            func=ast.Name(id="ceil"), args=[ast.BinOp(left=left, op=ast.Div(), right=ast.Name() as by)]
        ) if rounded and any(_unknown(by, values)):
            value = _value(left, values)
            return None if not target or value is None else ceil(value / target)
        case ast.Call(func=ast.Name(id="ceil" | "up"), args=[inner, *_]) if rounded:
            return _solved(inner, target, values, rounded)
        case ast.BinOp(left=left, op=op, right=right):
            known_left = _value(left, values)
            if known_left is not None:
                rest = _inverse_of_right(op, known_left, target)
                return None if rest is None else _solved(right, rest, values, rounded)
            known_right = _value(right, values)
            if known_right is None:
                return None
            rest = _inverse_of_left(op, known_right, target)
            return None if rest is None else _solved(left, rest, values, rounded)
    return None


def _inverse_of_left(op: ast.operator, right: Fraction, target: Fraction) -> Fraction | None:
    match op:
        case ast.Add():
            return target - right
        case ast.Sub():
            return target + right
        case ast.Mult():
            return target / right if right else None
        case ast.Div():
            return target * right
    return None


def _inverse_of_right(op: ast.operator, left: Fraction, target: Fraction) -> Fraction | None:
    match op:
        case ast.Add():
            return target - left
        case ast.Sub():
            return left - target
        case ast.Mult():
            return target / left if left else None
        case ast.Div():
            return left / target if target else None
    return None


def _filled(node: ast.expr, values: Values) -> str:
    """An expression with numbers for names, and the layout page's signs."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            value = None if name.id in ("ceil", "up") else _value(name, values)
            return name if value is None else ast.Constant(_whole(value))

    return ast.unparse(Fill().visit(ast.parse(ast.unparse(node), mode="eval").body)).replace("*", "·")
