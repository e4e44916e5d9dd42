"""Bounds of punctuation, put through expressions (control plane, no tuples)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Value

Bound = int | float
"""A bound of a punctuation: an integer, or -inf (nothing promised) or +inf (ended)."""

NOTHING: Bound = -math.inf
ENDED: Bound = math.inf

Span = tuple[Bound, Bound]
"""The least and the greatest value there can be; infinite where that is not known."""

ANYTHING: Span = (NOTHING, ENDED)
NO_VALUE: Span = (ENDED, NOTHING)

Known = Callable[[Expression], Bound | None]
"""The bound of an expression that is known as a whole, None for others. Unknown columns promise nothing."""

KnownSpan = Callable[[Expression], Span | None]
"""The same for spans. Unknown columns can hold anything."""


def named(bounds: Mapping[str, Bound]) -> Known:
    """Columns known by their name; a decreasing one is known by its negative, see ``Punctuation``."""

    def known(part: Expression) -> Bound | None:
        if not isinstance(part, Column):
            return None
        falling = bounds.get(f"-{part.name}")
        return bounds.get(part.name) if falling is None else turned(falling)

    return known


def turned(bound: Bound) -> Bound:
    """The bound of the negative of something that is bounded the other way."""
    return -bound if math.isfinite(bound) else bound


def named_spans(spans: Mapping[str, Span]) -> KnownSpan:
    """Columns known by their name."""
    return lambda part: spans.get(part.name) if isinstance(part, Column) else None


def bound_of(expression: Expression, known: Known, *, is_falling: bool = False) -> Bound:
    """The bound of a monotone ``expression``, given bounds of some of its parts.

    f(bounds) where they are finite; ended when all parts have ended; nothing promised when any part
    promises nothing. A ``coalesce`` is one of its arguments, so its bound is the least of theirs, or, of
    one that falls, the greatest.
    """
    bound = known(expression)
    if bound is not None:
        return bound
    if isinstance(expression, Literal):
        return _finite(expression.value, NOTHING)
    if not isinstance(expression, Call):
        return NOTHING
    if expression.function == "coalesce":
        bounds = [bound_of(each, known, is_falling=is_falling) for each in expression.arguments]
        if NOTHING in bounds:
            return NOTHING
        furthest = max if is_falling else min
        return furthest([bound for bound in bounds if bound != ENDED], default=ENDED)
    bounds = [bound_of(part, known) for part in _varying(expression)]
    if NOTHING in bounds or not bounds:
        return NOTHING
    if ENDED in bounds:
        return ENDED if all(bound == ENDED for bound in bounds) else NOTHING
    return _finite(_apply(expression, bounds), NOTHING)


def span_of(expression: Expression, known: KnownSpan) -> Span:
    """The span of an ``expression`` that is monotone in each of its parts, given spans of some.

    A part without any value is NULL, and so is the whole. The expression is least and greatest at corners of the box that its parts span.
    """
    span = known(expression)
    if span is not None:
        return span
    if isinstance(expression, Literal):
        value = expression.value
        return _finite(value, NOTHING), _finite(value, ENDED)
    if not isinstance(expression, Call):
        return ANYTHING
    if expression.function == "coalesce":
        return joined([span_of(argument, known) for argument in expression.arguments])
    spans = [span_of(part, known) for part in _varying(expression)]
    if NO_VALUE in spans:
        return NO_VALUE
    if not spans or len(spans) > _MOST_PARTS or any(map(_is_open, spans)):
        return ANYTHING
    corners = [_apply(expression, corner) for corner in product(*spans)]
    return (
        min(_finite(corner, NOTHING) for corner in corners),
        max(_finite(corner, ENDED) for corner in corners),
    )


_MOST_PARTS = 4


def joined(spans: Sequence[Span]) -> Span:
    """The smallest span around all of ``spans``."""
    least = min((least for least, _ in spans), default=ENDED)
    return least, max((greatest for _, greatest in spans), default=NOTHING)


def _varying(call: Call) -> list[Expression]:
    return [part for part in call.arguments if not isinstance(part, Literal)]


def _is_open(span: Span) -> bool:
    return not (math.isfinite(span[0]) and math.isfinite(span[1]))


def _apply(expression: Call, values: Sequence[Bound]) -> Value:
    """``expression`` with its parts that are not literals replaced by ``values``, in order."""
    given = iter(values)
    arguments = tuple(
        part if isinstance(part, Literal) else Literal(next(given), part.type)
        for part in expression.arguments
    )
    return evaluate(
        Call(expression.function, arguments, expression.type, expression.is_nullable), _no_leaf
    )


def _no_leaf(leaf: Expression) -> Value:
    message = f"{leaf} is no literal"
    raise AssertionError(message)


def _finite(value: Value, otherwise: Bound) -> Bound:
    """``value`` as a bound if it is a number."""
    if value is None or isinstance(value, bytes) or not math.isfinite(value):
        return otherwise
    return value
