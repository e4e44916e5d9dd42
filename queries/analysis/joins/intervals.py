"""Interval joins: conditions that keep the times of both sides of a join near each other.

``b.time BETWEEN a.time AND a.time + 5`` means 0 <= b.time - a.time <= 5. Each comparison of a left
and a right expression is brought to this form, ``right - left <= n`` or ``>= n``; the tightest
bound in each direction is an end of the interval. The comparisons remain conditions of the join:
the interval may be wider than they allow (where they compute with floats), never narrower.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import Interval
from gscope.queries.plan.trees import inputs_of
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Pair = tuple[Expression, Expression]
"""An expression over the left side and one over the right side."""

_FARTHEST = 1 << 61
"""The farthest end that counts as a bound: computing with one beyond it could overflow."""

_FLIPPED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt"}
_MS_A_NS = Fraction(1, 1_000_000)


@dataclass(slots=True)
class Ends:
    """The least and the most that right - left of a pair may be.

    Attributes:
        least: None if no comparison bounds the difference from below.
        most: None if no comparison bounds it from above.
    """

    least: int | None = None
    most: int | None = None

    def narrow(self, comparison: str, value: Fraction, *, is_exact: bool) -> None:
        """Narrow to ``right - left <comparison> value``, less one where floats may have rounded."""
        slack = 0 if is_exact else 1
        if comparison in ("ge", "gt"):
            end = math.floor(value) + 1 if comparison == "gt" else math.ceil(value)
            if abs(end) <= _FARTHEST:
                self.least = max(end - slack, end - slack if self.least is None else self.least)
        else:
            end = math.ceil(value) - 1 if comparison == "lt" else math.floor(value)
            if abs(end) <= _FARTHEST:
                self.most = min(end + slack, end + slack if self.most is None else self.most)

    @property
    def interval(self) -> Interval | None:
        """The interval, None if an end is missing."""
        if self.least is None or self.most is None:
            return None
        return Interval(self.least, self.most)

    @property
    def negated(self) -> Ends:
        """The ends of left - right."""
        return Ends(
            None if self.most is None else -self.most,
            None if self.least is None else -self.least,
        )


def differences(predicates: Sequence[Expression]) -> dict[Pair, Ends]:
    """Return the bounds that ``predicates`` set to right - left of each pair, in order."""
    found: dict[Pair, Ends] = {}
    for predicate in predicates:
        for one, comparison, other in _comparisons(predicate):
            form = _LinearForm().add(one, Fraction(1)).add(other, Fraction(-1))
            pair = form.pair
            if pair is None:
                continue
            gain = form.terms[pair[1]]
            value = -form.constant / gain
            direction = comparison if gain > 0 else _FLIPPED[comparison]
            found.setdefault(pair, Ends()).narrow(direction, value, is_exact=form.is_exact)
    return found


def _comparisons(predicate: Expression) -> Iterator[tuple[Expression, str, Expression]]:
    """Yield the comparisons that ``predicate`` implies.

    ``abs(x) <= n`` implies ``-n <= x`` and ``x <= n``.
    """
    if not isinstance(predicate, Call) or predicate.function not in _FLIPPED:
        return
    one, other = predicate.arguments
    comparison = predicate.function
    if not inputs_of(one):
        one, other, comparison = other, one, _FLIPPED[comparison]
    match one:
        case Call("abs_int" | "abs_float" as function, (inside,)) if comparison in ("le", "lt"):
            negative = "neg_int" if function == "abs_int" else "neg_float"
            yield inside, comparison, other
            yield replace(one, function=negative), comparison, other
        case _:
            yield one, comparison, other


@dataclass(slots=True)
class _LinearForm:
    """A sum of expressions, each times a number, and a constant."""

    terms: dict[Expression, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)
    is_exact: bool = True

    @property
    def pair(self) -> Pair | None:
        """The left and the right expression if the form is ``c * right - c * left + constant``."""
        terms = {term: gain for term, gain in self.terms.items() if gain}
        sides = {frozenset(inputs_of(term)): term for term in terms}
        if len(terms) != 2 or sides.keys() != {frozenset({0}), frozenset({1})}:
            return None
        left, right = sides[frozenset({0})], sides[frozenset({1})]
        return (left, right) if terms[left] == -terms[right] else None

    def add(self, expression: Expression, gain: Fraction) -> _LinearForm:
        """Add ``expression`` times ``gain``, split into terms where that separates the sides."""
        match expression:
            case Literal(value) if isinstance(value, int | float) and math.isfinite(value):
                self.constant += gain * Fraction(value)
            case Call("add_int" | "add_float" | "ts_add", (one, other)) if _opens(one, other):
                self.add(one, gain).add(other, gain)
            case Call("sub_int" | "sub_float" | "ts_sub", (one, other)) if _opens(one, other):
                self.add(one, gain).add(other, -gain)
            case Call("neg_int" | "neg_float", (one,)):
                self.add(one, -gain)
            case Call("ts_diff", (one, other)):
                self.add(one, gain * _MS_A_NS).add(other, -gain * _MS_A_NS)
            case Call("mul_int" | "mul_float", (one, Literal() as factor)) if _is_mixed(one):
                self._scale(one, gain, factor, is_division=False)
            case Call("mul_int" | "mul_float", (Literal() as factor, one)) if _is_mixed(one):
                self._scale(one, gain, factor, is_division=False)
            case Call("div_float", (one, Literal() as factor)) if _is_mixed(one):
                self._scale(one, gain, factor, is_division=True)
            case Call("int_to_float", (one,)):
                self.add(one, gain)
            case _:
                self.terms[expression] = self.terms.get(expression, Fraction(0)) + gain
        is_float = expression.type is GsqlType.FLOAT and not isinstance(expression, Literal)
        self.is_exact = self.is_exact and not is_float
        return self

    def _scale(
        self, expression: Expression, gain: Fraction, factor: Literal, *, is_division: bool
    ) -> None:
        number = factor.value
        if not isinstance(number, int | float) or not math.isfinite(number) or not number:
            self.terms[expression] = self.terms.get(expression, Fraction(0)) + gain
            return
        self.add(expression, gain / Fraction(number) if is_division else gain * Fraction(number))


def _opens(one: Expression, other: Expression) -> bool:
    """Return whether a sum is worth splitting: a constant, or operands of different sides."""
    is_constant = isinstance(one, Literal) or isinstance(other, Literal)
    return is_constant or len(inputs_of(one) | inputs_of(other)) > 1


def _is_mixed(expression: Expression) -> bool:
    return len(inputs_of(expression)) > 1
