"""What a merge has to fold for each aggregate, and how the aggregate follows from that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.running.halves import as_floats, joined_halves
from gscope.engine.spark.tasks import value_folds
from gscope.engine.spark.tasks.columns import INTEGERS, flat, is_column, is_of_text
from gscope.engine.spark.tasks.group_folds import BITS
from gscope.queries.catalog.aggregate.halves import high_half, low_half
from gscope.queries.catalog.aggregate.moments import MOMENTS_BY_NAME
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import Aggregate

LIST = "list"
"""The fold that lists the values of a group, NULL among them."""

DISTINCT = "#distinct"
REPEATED = "#repeated"
"""Columns of a merge besides its folds: the number of values, and of tuples that had one."""

Fold = tuple[Expression, str]
"""An expression, and the fold of its values: one of Arrow or of ``OWN_FOLDS``."""

_EXTREMES = {"min": "min", "max": "max", "bool_or": "max", "bool_and": "min"}
_OF_PARTIALS = {"count": "sum", "sum": "sum", **_EXTREMES, **{b: b for b in BITS}}
_OF_FLOATS = {"min": "least", "max": "greatest", "sum": "float_sum"}
"""The fold that merges the one partial of an aggregate, or computes the aggregate from rows."""

_COMPARED = (*INTEGERS, GsqlType.IP, GsqlType.BOOL)
"""The types whose values Arrow compares as the catalog does."""

_DISTINGUISHED = (*INTEGERS, GsqlType.IP, GsqlType.STRING)
"""The types of values whose number is counted; equal floats may have different bits."""

_ROWS_THEMSELVES = Column("", GsqlType.NULL, is_nullable=False)
"""The column that ``count_all`` folds."""


@dataclass(frozen=True, slots=True)
class MergedAggregate:
    """How an aggregate follows from the columns of a merge.

    Attributes:
        name: the column that it fills.
        final: the entry of ``_FINALS`` or ``_HALVES`` that computes it; "" if its one source is it.
        sources: the columns of the merge that it is computed from.
        constants: what ``final`` takes before them.
    """

    name: str
    final: str
    sources: tuple[str, ...]
    constants: tuple[Any, ...] = ()

    def of(self, columns: Sequence[pa.ChunkedArray]) -> tuple[pa.ChunkedArray, int]:
        """Return the aggregate from its sources, and how many sums exceed 64 bits."""
        if self.final in _HALVES:
            low, high = _HALVES[self.final](*columns)
            return joined_halves(flat(low), flat(high))
        if not self.final:
            return columns[0], 0
        return _FINALS[self.final](*self.constants, *columns), 0


@dataclass(frozen=True, slots=True)
class MergeParts:
    """What one aggregate needs of a merge, and what becomes of it; see ``MergedAggregate``.

    Attributes:
        final: see ``MergedAggregate``, as for ``sources`` and ``constants``.
        folds: the expressions to fold, each with its fold.
        distinct: the expression whose different values are counted; None if none are.
        counted: the partial count of tuples with a value of ``distinct``; None if it is not needed.
    """

    final: str
    sources: tuple[str, ...]
    folds: tuple[Fold, ...] = ()
    distinct: Expression | None = None
    counted: Expression | None = None
    constants: tuple[Any, ...] = ()

    @classmethod
    def of(cls, *folds: Fold, final: str = "", constants: tuple[Any, ...] = ()) -> MergeParts:
        """Return the parts of an aggregate that is computed from folds."""
        return cls(final, tuple(map(fold_name, folds)), folds, constants=constants)

    def merged(self, name: str) -> MergedAggregate:
        """Return the aggregate that fills the column ``name``."""
        return MergedAggregate(name, self.final, self.sources, self.constants)


def fold_name(fold: Fold) -> str:
    """Return the name of the column with the values of ``fold``."""
    return f"{fold[0]} {fold[1]}"


def merge_parts(aggregate: Aggregate, schema: Schema, *, lists_values: bool) -> MergeParts | None:
    """Return what an aggregate over rows of ``schema`` needs; None if no task computes it.

    Args:
        aggregate: the aggregate.
        schema: the schema of its input, which may be partial tuples.
        lists_values: whether different values are counted in lists of them. That takes longer, but
            any number of aggregates can do so.
    """
    if aggregate.function in ("count_distinct", "count_dups") and not lists_values:
        return _counted_values(aggregate, schema)
    listed = _of_lists(aggregate, schema)
    if listed is not None:
        return listed
    return _of_partials(aggregate, schema) if aggregate.partials else _of_rows(aggregate)


def _of_partials(aggregate: Aggregate, schema: Schema) -> MergeParts | None:
    partials = [_partial(name, schema) for name in aggregate.partials]
    if aggregate.arguments or any(partial.type not in _COMPARED for partial in partials):
        return None
    sums = [(partial, "sum") for partial in partials]
    if aggregate.function in MOMENTS_BY_NAME:
        return MergeParts.of(*sums, final="moment", constants=(aggregate.function,))
    if aggregate.function == "avg":
        return MergeParts.of(*sums, final="average")
    if aggregate.can_wrap and len(sums) > 1:
        return MergeParts.of(*sums, final="sum")
    fold = _OF_PARTIALS.get(aggregate.function)
    if fold is None or len(partials) != 1 or aggregate.type not in _COMPARED:
        return None
    return MergeParts.of((partials[0], fold))


def _of_rows(aggregate: Aggregate) -> MergeParts | None:
    if aggregate.function == "count" and not aggregate.arguments:
        return MergeParts.of((_ROWS_THEMSELVES, "count_all"))
    if len(aggregate.arguments) != 1 or not is_column(aggregate.arguments[0]):
        return None
    (value,) = aggregate.arguments
    if aggregate.function == "count":
        return MergeParts.of((value, "count"))
    if aggregate.function in _EXTREMES and value.type in _COMPARED:
        return MergeParts.of((value, _EXTREMES[aggregate.function]))
    is_float = value.type is GsqlType.FLOAT
    if not is_float and value.type not in INTEGERS:
        return None
    if aggregate.function in MOMENTS_BY_NAME:
        return MergeParts.of((value, aggregate.function))
    folds = _OF_FLOATS if is_float else _OF_PARTIALS
    if aggregate.can_wrap:
        return MergeParts.of(*_halves(value), final="sum") if aggregate.function == "sum" else None
    if aggregate.function == "avg":
        sums = ((value, folds["sum"]),) if is_float else _halves(value)
        return MergeParts.of(*sums, (value, "count"), final="average")
    fold = folds.get(aggregate.function)
    return None if fold is None else MergeParts.of((value, fold))


def _halves(value: Expression) -> tuple[Fold, ...]:
    return (low_half((value,)), "sum"), (high_half((value,)), "sum")


def _counted_values(aggregate: Aggregate, schema: Schema) -> MergeParts | None:
    value = aggregate.arguments[0]
    if not (isinstance(value, Column) or is_of_text(value)) or value.type not in _DISTINGUISHED:
        return None
    if aggregate.function == "count_distinct":
        return MergeParts("", (DISTINCT,), distinct=value)
    if not aggregate.partials:
        return None
    counted = _partial(aggregate.partials[0], schema)
    return MergeParts("repeated", (REPEATED, DISTINCT), distinct=value, counted=counted)


def _of_lists(aggregate: Aggregate, schema: Schema) -> MergeParts | None:
    """Return what an aggregate of ``value_folds`` needs.

    That is lists of values, then of their partials.
    """
    known = _LISTED.get(aggregate.function)
    if known is None or not aggregate.arguments:
        return None
    final, constants_of = known
    value, *further = aggregate.arguments
    orders = [each for each in further if not isinstance(each, Literal)]
    partials = [_partial(name, schema) for name in aggregate.partials]
    if final == "estimate" and not partials:
        # Only the kernel computes hashes of values for many rows.
        return None
    # Of floats that are equal, like 0.0 and -0.0, the tuples' order would decide.
    is_ordered = final in ("first", "last", "changes")
    if is_ordered and (value.type is GsqlType.FLOAT or not (orders or partials)):
        return None
    listed = [value, *partials] if partials else [value, *orders]
    if not all(map(is_column, listed)):
        return None
    return MergeParts.of(
        *((each, LIST) for each in listed), final=final, constants=constants_of(aggregate)
    )


def _partial(name: str, schema: Schema) -> Column:
    return Column(name, schema[name].type, is_nullable=True)


def _constant(aggregate: Aggregate) -> Any:
    constant = aggregate.arguments[1]
    assert isinstance(constant, Literal)
    return constant.value


_LISTED: dict[str, tuple[str, Callable[[Aggregate], tuple[Any, ...]]]] = {
    "count_distinct": ("distinct", lambda _: ()),
    "count_dups": ("repeated values", lambda _: ()),
    "sum_distinct": ("sum of distinct", lambda _: ()),
    "avg_distinct": ("average of distinct", lambda _: ()),
    "quantile": ("quantile", lambda aggregate: (_constant(aggregate),)),
    "median": ("quantile", lambda _: (0.5,)),
    "first": ("first", lambda _: ()),
    "last": ("last", lambda _: ()),
    "count_diff": ("changes", lambda _: ()),
    "approx_top_k": ("most frequent", lambda a: (_constant(a), a.arguments[0].type)),
    "approx_count_distinct": ("estimate", lambda _: ()),
}
"""Aggregates that are computed from lists of values: their finals, and what these take first."""


def _average(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    # Without values there is no total.
    *sums, count = columns
    if len(sums) == 1:
        total = sums[0].cast(pa.float64(), safe=False)
    else:
        is_null = sums[0].is_null().to_numpy(zero_copy_only=False)
        low, high = (part.fill_null(0).to_numpy() for part in sums)
        total = pa.chunked_array([pa.array(as_floats(low, high), mask=is_null)])
    return pc.divide(total, count.cast(pa.float64(), safe=False))


def _moment(function: str, *sums: pa.ChunkedArray) -> pa.Array:
    groups = zip(*(column.to_pylist() for column in sums), strict=True)
    return pa.array(map(MOMENTS_BY_NAME[function].of_partials, groups), pa.float64())


def _duplicates(present: pa.ChunkedArray, distinct: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.subtract(present, distinct), 0)


_HALVES: dict[str, Callable[..., tuple[pa.ChunkedArray, pa.ChunkedArray]]] = {
    "sum": lambda low, high: (low, high),
    "sum of distinct": value_folds.distinct_halves,
}
"""What gives the halves of sums that may exceed 64 bits."""

_FINALS: dict[str, Callable[..., pa.ChunkedArray]] = {
    "average": _average,
    "moment": _moment,
    "repeated": _duplicates,
    "distinct": value_folds.distinct_count,
    "repeated values": value_folds.repeated_count,
    "average of distinct": value_folds.distinct_average,
    "quantile": value_folds.quantile,
    "first": value_folds.first,
    "last": value_folds.last,
    "changes": value_folds.changes,
    "most frequent": value_folds.most_frequent,
    "estimate": value_folds.estimated_count,
}
"""How an aggregate is computed from constants and merged columns."""
