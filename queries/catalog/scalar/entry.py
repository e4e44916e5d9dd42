"""The catalog's entry of a scalar function or operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Expression, Literal, Value
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.types import GsqlType

Gain = Callable[[Sequence[Expression]], Fraction | None]
"""Returns how a result follows one argument, given all arguments; see ``FunctionEntry.gains``."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        type: its type; None for any type, the same for all parameters without one.
        is_literal: whether it must be a constant.
        objection: returns what is wrong with a constant value, "" if nothing is.
    """

    type: GsqlType | None
    is_literal: bool = False
    objection: Callable[[Value], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """A scalar function: its types, its facts and its meaning.

    Attributes:
        name: the canonical name, ``Call.function``.
        parameters: the parameters in order.
        result: the type of the result; None for that of the parameters without a type.
        evaluate: computes the result from Python values; for a strict function, from values that
            are not None.
        repeats: how many of the last parameters may repeat as a group: 1 for ``coalesce(x, …)``;
            ``case`` repeats the pair (condition, result) and ends in one more result.
        is_strict: whether the result is NULL whenever an argument is NULL.
        makes_null: returns whether the result may be NULL although no argument is, given the
            arguments.
        is_never_null: whether the result is not NULL whatever the arguments are.
        cost: the cost of one evaluation, in additions.
        is_lfta_safe: whether an LFTA kernel can compute it exactly. With STRING arguments see also
            ``catalog/safety.py``.
        gains: for each argument, returns how the result moves with it while the other arguments
            stand still or move: a positive number keeps the order, a negative one reverses it, 0
            means that the result ignores it, None that no order survives. The number is the factor
            by which a step of the argument is stretched. () means None for all. Overflow of 64 bits
            is disregarded.
        is_pure: whether equal arguments give equal results.
        is_high_only: whether the meaning needs a library that must not be imported by the catalog:
            the HFTA job has it, in ``engine/functions/`` under the entry's name, and ``evaluate``
            raises.
        needs_bytes: the number of bytes at the start of a STRING argument that it reads, None for
            all; an LFTA ships no more of a payload.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: GsqlType | None
    evaluate: Callable[..., Value]
    repeats: int = 0
    is_strict: bool = True
    makes_null: Callable[[Sequence[Expression]], bool] = lambda _: False
    is_never_null: bool = False
    cost: int = 1
    is_lfta_safe: bool = True
    gains: tuple[Gain, ...] = ()
    is_pure: bool = True
    is_high_only: bool = False
    needs_bytes: int | None = None

    @property
    def is_foldable(self) -> bool:
        """Whether a call of constants can be computed before the first packet."""
        return self.is_pure and not self.is_high_only

    def is_nullable(self, arguments: Sequence[Expression]) -> bool:
        """Return whether a call with ``arguments`` can be NULL."""
        if self.is_never_null:
            return False
        if self.is_strict:
            return any(a.is_nullable for a in arguments) or self.makes_null(arguments)
        return self.makes_null(arguments)


def always(_: Sequence[Expression]) -> bool:
    """Return True: any call may give NULL."""
    return True


def any_nullable(arguments: Sequence[Expression]) -> bool:
    """Return whether an argument may be NULL, for calls that give NULL of NULL."""
    return any(argument.is_nullable for argument in arguments)


def unless_nonzero_literal(position: int) -> Callable[[Sequence[Expression]], bool]:
    """Return a rule: NULL is possible unless an argument is a constant other than zero."""

    def rule(arguments: Sequence[Expression]) -> bool:
        argument = arguments[position]
        return not (isinstance(argument, Literal) and argument.value)

    return rule


def unless_literal_from_zero(position: int) -> Callable[[Sequence[Expression]], bool]:
    """Return a rule: NULL is possible unless an argument is a constant of 0 or more."""

    def rule(arguments: Sequence[Expression]) -> bool:
        value = number(arguments[position])
        return value is None or value < 0

    return rule


def by(numerator: int, denominator: int = 1) -> Gain:
    """Return the gain that is the same for all arguments."""
    gain = Fraction(numerator, denominator)
    return lambda _: gain


KEEPS = by(1)
FLIPS = by(-1)


def loses(_: Sequence[Expression]) -> Fraction | None:
    """Return None, the gain of an argument whose order does not survive."""
    return None


def number(argument: Expression) -> Fraction | None:
    """Return the value of a numeric constant, None for any other expression."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, int | float):
        return None
    if argument.value != argument.value or argument.value in (float("inf"), float("-inf")):
        return None
    return Fraction(argument.value)
