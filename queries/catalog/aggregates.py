"""Every aggregate: its types, its partial and final halves, its meaning.

An LFTA folds tuples into partials (``program.PartialOp``); the HFTA merges partials by the same fold,
COUNT by SUM, and ``finish`` makes the result. An aggregate whose argument *joins the key* has no
partial of its own: the LFTA groups by the argument too and counts, so that the HFTA sees every distinct
value of it once for each group, with how often it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.program import PartialOp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.plan.expressions import Expression, Value

_NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT})
_INTEGERS = frozenset({GsqlType.INT})
_ORDERED = frozenset(GsqlType) - {GsqlType.NULL}
_FIXED_SIZE = _ORDERED - {GsqlType.STRING}


@dataclass(frozen=True, slots=True)
class PartialRule:
    """One partial of an aggregate: the fold, over the aggregate's argument or (COUNT) over tuples."""

    op: PartialOp
    has_argument: bool = True


@dataclass(frozen=True, slots=True)
class AggregateEntry:
    """A built-in aggregate.

    Attributes:
        name: as in queries and in ``AggregateCall.function``.
        argument_types: what its argument may be; () if it takes none but ``*``.
        takes_star: whether it may be called without an argument.
        result: None for the argument's type.
        is_never_null: otherwise the result is NULL when no argument was anything else.
        partials: what the LFTA computes; () if the argument joins the key.
        lfta_types: the types of argument that a partial folds exactly (additions of FLOAT are not: their
            order would show).
        joins_key: whether the argument becomes part of the LFTA's group key.
        finish: partials, merged, in the order of ``partials`` → result. For ``joins_key``: the pairs
            (value, count) of the group, each value once → result.
        evaluate: the argument's values of a whole group (``True`` for each tuple of ``count(*)``) →
            result: the meaning that all ways of computing must share.
        is_running: whether it keeps its state across epochs.
    """

    name: str
    argument_types: frozenset[GsqlType]
    result: GsqlType | None
    evaluate: Callable[[Sequence[Any]], Value]
    partials: tuple[PartialRule, ...]
    finish: Callable[[Sequence[Any]], Value]
    lfta_types: frozenset[GsqlType]
    takes_star: bool = False
    is_never_null: bool = False
    joins_key: bool = False
    is_running: bool = False

    def result_type(self, arguments: Sequence[Expression]) -> GsqlType:
        """The type of a call's result."""
        return arguments[0].type if self.result is None else self.result

    def is_nullable(self, arguments: Sequence[Expression]) -> bool:
        """Whether a call can be NULL; a group is never empty."""
        return not self.is_never_null and any(a.is_nullable for a in arguments)

    def is_splittable(self, arguments: Sequence[Expression]) -> bool:
        """Whether an LFTA can compute the partials, given that it can compute the arguments."""
        return all(argument.type in self.lfta_types for argument in arguments)


def partial_type(op: PartialOp, argument: Expression | None) -> GsqlType:
    """The type of a partial's column."""
    return GsqlType.INT if op is PartialOp.COUNT or argument is None else argument.type


def _present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _sum(values: Sequence[Any]) -> Value:
    present = _present(values)
    if not present:
        return None
    total = sum(present[1:], start=present[0])
    return wrap(total) if isinstance(total, int) else float(total)


def _average(values: Sequence[Any]) -> Value:
    present = _present(values)
    return _ratio((_sum(present), len(present)))


def _ratio(partials: Sequence[Any]) -> Value:
    total, count = partials
    return float(total) / float(count) if count else None


def _folded(fold: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Value]:
    def evaluate(values: Sequence[Any]) -> Value:
        present = _present(values)
        return reduce(fold, present) if present else None

    return evaluate


def _least(a: Any, b: Any) -> Any:
    return b if order_key(b) < order_key(a) else a


def _greatest(a: Any, b: Any) -> Any:
    return b if order_key(b) > order_key(a) else a


def _distinct(values: Sequence[Any]) -> int:
    return len({order_key(value) for value in _present(values)})


def _duplicates(values: Sequence[Any]) -> int:
    return len(_present(values)) - _distinct(values)


def _only(partials: Sequence[Any]) -> Value:
    value: Value = partials[0]
    return value


def _simple(
    name: str,
    op: PartialOp,
    types: frozenset[GsqlType],
    lfta_types: frozenset[GsqlType],
    evaluate: Callable[[Sequence[Any]], Value],
) -> AggregateEntry:
    return AggregateEntry(name, types, None, evaluate, (PartialRule(op),), _only, lfta_types)


_ENTRIES = (
    AggregateEntry(
        "count",
        _ORDERED,
        GsqlType.INT,
        lambda values: len(_present(values)),
        (PartialRule(PartialOp.COUNT),),
        _only,
        _ORDERED,
        takes_star=True,
        is_never_null=True,
    ),
    _simple("sum", PartialOp.SUM, _NUMBERS, _INTEGERS, _sum),
    _simple("min", PartialOp.MIN, _ORDERED, _FIXED_SIZE, _folded(_least)),
    _simple("max", PartialOp.MAX, _ORDERED, _FIXED_SIZE, _folded(_greatest)),
    AggregateEntry(
        "avg",
        _NUMBERS,
        GsqlType.FLOAT,
        _average,
        (PartialRule(PartialOp.SUM), PartialRule(PartialOp.COUNT)),
        _ratio,
        _INTEGERS,
    ),
    _simple("or_aggr", PartialOp.OR, _INTEGERS, _INTEGERS, _folded(or_)),
    _simple("and_aggr", PartialOp.AND, _INTEGERS, _INTEGERS, _folded(and_)),
    _simple("xor_aggr", PartialOp.XOR, _INTEGERS, _INTEGERS, _folded(xor)),
    AggregateEntry(
        "count_distinct",
        _ORDERED,
        GsqlType.INT,
        _distinct,
        (),
        lambda pairs: sum(1 for value, _ in pairs if value is not None),
        _FIXED_SIZE,
        is_never_null=True,
        joins_key=True,
    ),
    AggregateEntry(
        "count_dups",
        _ORDERED,
        GsqlType.INT,
        _duplicates,
        (),
        lambda pairs: sum(count - 1 for value, count in pairs if value is not None),
        _FIXED_SIZE,
        is_never_null=True,
        joins_key=True,
    ),
)
AGGREGATES: dict[str, AggregateEntry] = {entry.name: entry for entry in _ENTRIES}

AGGREGATES_TO_COME = frozenset(
    {
        "approx_count_distinct",
        "approx_top_k",
        "bool_and",
        "bool_or",
        "count_diff",
        "first",
        "last",
        "median",
        "quantile",
        "stddev",
        "var",
    }
)
"""Aggregates of GSQL that this version refuses by name."""
