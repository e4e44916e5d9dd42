"""Bounds of punctuation, propagated through expressions (control plane, no tuples)."""

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
"""A bound of a punctuation: a number, -inf (nothing is promised) or +inf (the input has ended)."""

NOTHING: Bound = -math.inf
ENDED: Bound = math.inf

Span = tuple[Bound, Bound]
"""The least and the greatest possible value; infinite where that is unknown."""

ANYTHING: Span = (NOTHING, ENDED)
NO_VALUE: Span = (ENDED, NOTHING)

Known = Callable[[Expression], Bound | None]
"""Returns the bound of an expression that is known as a whole; None for others.

A column that is unknown promises nothing.
"""

KnownSpan = Callable[[Expression], Span | None]
"""Returns the span of an expression that is known as a whole; None for others.

A column that is unknown may hold any value.
"""


def bounds_by_name(bounds: Mapping[str, Bound]) -> Known:
    """Return a lookup of columns by name, a decreasing one by its negative (``Punctuation``)."""

    def known(part: Expression) -> Bound | None:
        if not isinstance(part, Column):
            return None
        falling = bounds.get(f"-{part.name}")
        return bounds.get(part.name) if falling is None else negated_bound(falling)

    return known


def negated_bound(bound: Bound) -> Bound:
    """Return the bound of a negated value: the negative of a finite bound."""
    return -bound if math.isfinite(bound) else bound


def spans_by_name(spans: Mapping[str, Span]) -> KnownSpan:
    """Return a lookup of columns by name."""
    return lambda part: spans.get(part.name) if isinstance(part, Column) else None


def bound_of(expression: Expression, known: Known, *, is_falling: bool = False) -> Bound:
    """Return the bound of a monotone ``expression``, given bounds of some of its parts.

    It is f(bounds) where these are finite; +inf where all parts have ended; -inf where any part
    promises nothing. A ``coalesce`` equals one of its arguments, so its bound is the least of
    theirs, or, if it is decreasing, the greatest.
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
    """Return the span of an ``expression`` that is monotone in each part, given spans of some.

    A part without any value is NULL, and so is the whole. The expression takes its least and its
    greatest value at corners of the box that the spans of its parts form.
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
        return enclosing_span([span_of(argument, known) for argument in expression.arguments])
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


def enclosing_span(spans: Sequence[Span]) -> Span:
    """Return the smallest span that includes all of ``spans``."""
    least = min((least for least, _ in spans), default=ENDED)
    return least, max((greatest for _, greatest in spans), default=NOTHING)


def _varying(call: Call) -> list[Expression]:
    return [part for part in call.arguments if not isinstance(part, Literal)]


def _is_open(span: Span) -> bool:
    return not (math.isfinite(span[0]) and math.isfinite(span[1]))


def _apply(expression: Call, values: Sequence[Bound]) -> Value:
    """Return ``expression`` for ``values`` of its parts that are not literals, in order."""
    given = iter(values)
    arguments = tuple(
        part if isinstance(part, Literal) else Literal(next(given), part.type)
        for part in expression.arguments
    )
    return evaluate(
        Call(expression.function, arguments, expression.type, expression.is_nullable), _no_leaf
    )


def _no_leaf(leaf: Expression) -> Value:
    message = f"expected a literal, got {leaf}"
    raise AssertionError(message)


def _finite(value: Value, otherwise: Bound) -> Bound:
    """Return ``value`` if it is a finite number, else ``otherwise``."""
    if value is None or isinstance(value, bytes) or not math.isfinite(value):
        return otherwise
    return value
