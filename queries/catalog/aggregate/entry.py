"""The catalog's entry of an aggregate.

An LFTA folds tuples into partials (``PartialOp``); the HFTA merges partials by the same fold, COUNT
by SUM, and ``finish`` computes the result. An aggregate may *join the key*: an expression over its
argument, usually the argument itself, becomes part of the group key of the LFTA, so that the HFTA
sees every value of it once for each group (or more often, if groups were evicted) with the partials
of its tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.halves import is_narrow
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.catalog.aggregate.partial_op import PartialOp
    from gscope.queries.expressions.expressions import Value

NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT})
INTEGERS = frozenset({GsqlType.INT})
ORDERED = frozenset(GsqlType) - {GsqlType.NULL}
FIXED_SIZE = ORDERED - {GsqlType.STRING}

Argument = Callable[[Sequence[Expression]], Expression | None]
"""Returns the expression that a partial folds, from the arguments of a call; None for tuples."""


def first_argument(arguments: Sequence[Expression]) -> Expression | None:
    """Return the argument itself; None for ``*``."""
    return arguments[0] if arguments else None


def second_argument(arguments: Sequence[Expression]) -> Expression | None:
    """Return the order of an aggregate that reads it."""
    return arguments[1]


def tuples(_: Sequence[Expression]) -> Expression | None:
    """Return None: each tuple counts, whatever the argument is."""
    return None


@dataclass(frozen=True, slots=True)
class PartialRule:
    """One partial of an aggregate: the fold, and the expression that it folds."""

    op: PartialOp
    argument: Argument = first_argument


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that an aggregate takes behind its argument.

    Attributes:
        name: its name in messages.
        type: its type.
        objection: returns what is wrong with a value of that type, "" if nothing is.
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

    The arguments of a call are the value, the constants, then what ``is_ordered`` or ``knows_type``
    add.

    Attributes:
        name: the name in queries and in ``AggregateCall.function``.
        argument_types: the types that its argument may have.
        result: the type of the result; None for the argument's type.
        evaluate: computes the result from the argument's values of a whole group (``True`` for each
            tuple of ``count(*)``, pairs (value, order) if it ``is_ordered``) and the constants: the
            meaning that all ways of computing must share.
        partials: what the LFTA folds.
        finish: computes the result from the merged partials, in the order of ``rules``. For
            ``joins_key``: from a list of (joined value, *its partials), in which a value may occur
            several times, and the constants.
        lfta_types: the types of argument that an LFTA folds exactly. FLOAT is not one for
            additions, because their result depends on their order.
        doc: one sentence that defines it, for ``gscope schema --functions`` and the reference.
        error: how far an approximate result may be off; "" for an exact one.
        constants: the constants behind the argument.
        takes_star: whether it may be called without an argument.
        is_never_null: whether the result is never NULL; otherwise it is if all arguments are.
        makes_null: whether the result may be NULL although no argument is.
        joins_key: whether ``joined`` becomes part of the LFTA's group key.
        joined: returns the expression over the arguments that does.
        is_ordered: whether a call's arguments end in the order of the input's tuples.
        knows_type: whether they end in the name of the argument's type.
        narrow: fewer partials, which suffice for arguments that ``is_narrow``; () if there are
            none.
        fits: returns whether partials are exact for such arguments.
        survives_sampling: whether a uniform sample of the tuples estimates it, once counts and sums
            are scaled up.
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
        """Return the type of a call's result."""
        return arguments[0].type if self.result is None else self.result

    def rules(self, arguments: Sequence[Expression]) -> tuple[PartialRule, ...]:
        """Return the partials of a call."""
        return self.narrow if self.narrow and is_narrow(arguments[0]) else self.partials

    def is_nullable(self, arguments: Sequence[Expression]) -> bool:
        """Return whether a call can be NULL; a group is never empty."""
        if self.is_never_null:
            return False
        return self.makes_null or any(a.is_nullable for a in arguments[:1])

    def is_splittable(self, arguments: Sequence[Expression]) -> bool:
        """Return whether an LFTA can fold the partials, given that it can compute the arguments."""
        return all(a.type in self.lfta_types for a in arguments[:1]) and self.fits(arguments)

    def has_partials(self, arguments: Sequence[Expression]) -> bool:
        """Return whether partials give the result where the HFTA folds them, of any arguments.

        It folds what an LFTA does, and counts different STRINGs, which no group table holds.
        """
        is_text = all(a.type is GsqlType.STRING for a in arguments[:1])
        counts_text = self.joins_key and is_text and self.fits(arguments)
        return counts_text or self.is_splittable(arguments)


def constants_of(arguments: Sequence[Expression]) -> tuple[Literal, ...]:
    """Return the constants among a call's arguments: the literals behind the value."""
    return tuple(a for a in arguments[1:] if isinstance(a, Literal))


def present(values: Sequence[Any]) -> list[Any]:
    """Return the values that are not NULL."""
    return [value for value in values if value is not None]


def only(partials: Sequence[Any]) -> Value:
    """Return the only partial."""
    value: Value = partials[0]
    return value
