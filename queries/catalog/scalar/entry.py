"""What the catalog says about a scalar function or operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Expression, Literal, Value

if TYPE_CHECKING:
    from gscope.queries.expressions.types import GsqlType

Gain = Callable[[Sequence[Expression]], Fraction | None]
"""How a result follows one argument, given all arguments: see ``FunctionEntry.gains``."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        type: None for "any one type, the same for all parameters without a type".
        is_literal: whether only a constant will do.
        objection: what is wrong with a constant value, "" if nothing is.
    """

    type: GsqlType | None
    is_literal: bool = False
    objection: Callable[[Value], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """A scalar function: its types, its facts and its meaning.

    Attributes:
        name: the canonical name, ``Call.function``.
        parameters: in order.
        result: None for the type of the parameters without a type.
        evaluate: the meaning, on Python values; of a strict function, on values that are not None.
        repeats: how many of the last parameters may repeat as a group: 1 for ``coalesce(x, …)``;
            ``case`` repeats the pair (condition, result) and ends in one more result.
        is_strict: NULL whenever an argument is NULL.
        makes_null: whether the result may be NULL although no argument is, given the arguments.
        is_never_null: the result is not NULL whatever the arguments are.
        cost: of one evaluation, in additions.
        is_lfta_safe: whether an LFTA kernel can compute it exactly. With STRING arguments see also
            ``catalog/safety.py``.
        gains: for each argument, how the result moves with it while the other arguments stand still
            or move: a positive number keeps the order, a negative one turns it round, 0 means that
            the result ignores it, None that no order survives. The number is the factor by which a
            step of the argument is stretched. () means None for all. Wrap-around at 64 bits apart.
        is_pure: equal arguments give equal results.
        is_high_only: the meaning needs a library that has no place beside the catalog: the HFTA job has
            it, in ``engine/functions/`` by the entry's name, and ``evaluate`` refuses.
        needs_bytes: how many bytes at the start of a STRING argument it looks at, None for all; an LFTA
            ships no more of a payload than that.
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
        """Whether a call with ``arguments`` can be NULL."""
        if self.is_never_null:
            return False
        if self.is_strict:
            return any(a.is_nullable for a in arguments) or self.makes_null(arguments)
        return self.makes_null(arguments)


def always(_: Sequence[Expression]) -> bool:
    """Any call may give NULL."""
    return True


def any_nullable(arguments: Sequence[Expression]) -> bool:
    """A call may give NULL if one of its arguments may."""
    return any(argument.is_nullable for argument in arguments)


def unless_nonzero_literal(position: int) -> Callable[[Sequence[Expression]], bool]:
    """A call may give NULL unless the argument at ``position`` is a constant other than zero."""

    def rule(arguments: Sequence[Expression]) -> bool:
        argument = arguments[position]
        return not (isinstance(argument, Literal) and argument.value)

    return rule


def unless_literal_from_zero(position: int) -> Callable[[Sequence[Expression]], bool]:
    """A call may give NULL unless the argument at ``position`` is a constant of 0 or more."""

    def rule(arguments: Sequence[Expression]) -> bool:
        value = number(arguments[position])
        return value is None or value < 0

    return rule


def by(numerator: int, denominator: int = 1) -> Gain:
    """The gain that is the same for all arguments."""
    gain = Fraction(numerator, denominator)
    return lambda _: gain


KEEPS = by(1)
FLIPS = by(-1)


def loses(_: Sequence[Expression]) -> Fraction | None:
    """The gain of an argument whose order does not survive."""
    return None


def number(argument: Expression) -> Fraction | None:
    """The value of a numeric constant, None for everything else."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, int | float):
        return None
    if argument.value != argument.value or argument.value in (float("inf"), float("-inf")):
        return None
    return Fraction(argument.value)
