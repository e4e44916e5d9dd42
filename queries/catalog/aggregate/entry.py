"""What the catalog says about an aggregate.

An LFTA folds tuples into partials (``PartialOp``); the HFTA merges partials by the same fold,
COUNT by SUM, and ``finish`` makes the result. An aggregate may *join the key*: an expression over its argument,
mostly the argument itself, becomes part of the group key of the LFTA, so that the HFTA sees every value of it
once for each group (or more often, if groups were evicted) with the partials of its tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.halves import is_narrow
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.catalog.aggregate.partial_op import PartialOp
    from gscope.queries.expressions.expressions import Value

NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT})
INTEGERS = frozenset({GsqlType.INT})
ORDERED = frozenset(GsqlType) - {GsqlType.NULL}
FIXED_SIZE = ORDERED - {GsqlType.STRING}

Argument = Callable[[Sequence[Expression]], Expression | None]
"""What a partial folds, made of the arguments of a call; None for tuples."""


def first_argument(arguments: Sequence[Expression]) -> Expression | None:
    """The argument itself; None for ``*``."""
    return arguments[0] if arguments else None


def second_argument(arguments: Sequence[Expression]) -> Expression | None:
    """The order of an aggregate that looks at it."""
    return arguments[1]


def tuples(_: Sequence[Expression]) -> Expression | None:
    """Nothing: each tuple counts, whatever the argument is."""
    return None


@dataclass(frozen=True, slots=True)
class PartialRule:
    """One partial of an aggregate: the fold, and of what."""

    op: PartialOp
    argument: Argument = first_argument


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that an aggregate takes behind its argument.

    Attributes:
        name: for messages.
        objection: what is wrong with a value of that type, "" if nothing is.
    """

    name: str
    type: GsqlType
    objection: Callable[[Any], str]


def _itself(arguments: Sequence[Expression]) -> Expression:
    return arguments[0]


def _always(_: Sequence[Expression]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class AggregateEntry:
    """A built-in aggregate.

    The arguments of a call are the value, the constants, then what ``is_ordered`` or ``knows_type`` add.

    Attributes:
        name: as in queries and in ``AggregateCall.function``.
        argument_types: what its argument may be.
        result: None for the argument's type.
        evaluate: the argument's values of a whole group (``True`` for each tuple of ``count(*)``, pairs
            (value, order) if it ``is_ordered``), then the constants → result: the meaning that all ways
            of computing must share.
        partials: what the LFTA computes.
        finish: partials, merged, in the order of ``rules`` → result. For ``joins_key``: a list of
            (joined value, *its partials), any value any number of times, then the constants → result.
        lfta_types: the types of argument that an LFTA folds exactly (additions of FLOAT are not: their
            order would show).
        doc: one sentence that defines it, for ``gscope schema --functions`` and the reference.
        error: for an approximate one: by how much it may err.
        constants: what it takes behind the argument.
        takes_star: whether it may be called without an argument.
        is_never_null: otherwise the result is NULL when no argument was anything else.
        makes_null: whether the result may be NULL although no argument is.
        joins_key: whether ``joined`` becomes part of the LFTA's group key.
        joined: what that is, an expression over the arguments.
        is_ordered: whether a call's arguments end in the order of the input's tuples.
        knows_type: whether they end in the name of the argument's type.
        narrow: fewer partials that do for arguments that ``is_narrow``; () if there are none.
        fits: whether partials are exact for such arguments.
        survives_sampling: whether a uniform sample of the tuples estimates it, once counts and sums are
            scaled up.
        is_running: whether it keeps its state across epochs.
    """

    name: str
    argument_types: frozenset[GsqlType]
    result: GsqlType | None
    evaluate: Callable[..., Value]
    partials: tuple[PartialRule, ...]
    finish: Callable[..., Value]
    lfta_types: frozenset[GsqlType]
    doc: str
    error: str = ""
    constants: tuple[Constant, ...] = ()
    takes_star: bool = False
    is_never_null: bool = False
    makes_null: bool = False
    joins_key: bool = False
    joined: Callable[[Sequence[Expression]], Expression] = _itself
    is_ordered: bool = False
    knows_type: bool = False
    narrow: tuple[PartialRule, ...] = ()
    fits: Callable[[Sequence[Expression]], bool] = _always
    survives_sampling: bool = False
    is_running: bool = False

    def result_type(self, arguments: Sequence[Expression]) -> GsqlType:
        """The type of a call's result."""
        return arguments[0].type if self.result is None else self.result

    def rules(self, arguments: Sequence[Expression]) -> tuple[PartialRule, ...]:
        """The partials of a call."""
        return self.narrow if self.narrow and is_narrow(arguments[0]) else self.partials

    def is_nullable(self, arguments: Sequence[Expression]) -> bool:
        """Whether a call can be NULL; a group is never empty."""
        if self.is_never_null:
            return False
        return self.makes_null or any(a.is_nullable for a in arguments[:1])

    def is_splittable(self, arguments: Sequence[Expression]) -> bool:
        """Whether an LFTA can compute the partials, given that it can compute the arguments."""
        return all(a.type in self.lfta_types for a in arguments[:1]) and self.fits(arguments)


def constants_of(arguments: Sequence[Expression]) -> tuple[Literal, ...]:
    """The constants among a call's arguments: those behind the value that are literals."""
    return tuple(a for a in arguments[1:] if isinstance(a, Literal))


def present(values: Sequence[Any]) -> list[Any]:
    """The values that are not NULL."""
    return [value for value in values if value is not None]


def only(partials: Sequence[Any]) -> Value:
    """The one partial there is."""
    value: Value = partials[0]
    return value
