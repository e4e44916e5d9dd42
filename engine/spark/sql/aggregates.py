"""Aggregates as Spark SQL text: over plain rows, and over the partials of an LFTA.

Both give the same bits, whatever the order of rows: integer sums wrap at 64 bits, and those that
may wrap are added exactly first, so that they can be counted; an average is one division of two
exact integers, never a running double; FLOAT values are added in ascending order. Where SQL has no
text for an aggregate, its values are gathered here and finished by the catalog's own code
(``engine/spark/sql/finishers.py``). Values gathered with ``collect_list`` are in memory at once,
but only those of the groups that a task works on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import SPARK_TYPES, column_leaf, hash_text, to_sql
from gscope.engine.spark.sql.finishers import finisher_name
from gscope.engine.spark.sql.user_folds import fold_sql
from gscope.errors import EngineError
from gscope.queries.catalog.aggregate.estimates import BUCKET_BITS
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.plan.program import Aggregate


@dataclass(frozen=True, slots=True)
class _Call:
    """An aggregate of a query with the texts of its arguments and partials."""

    aggregate: Aggregate
    arguments: Sequence[str]
    partials: Sequence[str]
    query: str

    @property
    def value(self) -> str:
        """The text of the value; adding 0.0 turns -0.0 into 0.0."""
        return f"({self.arguments[0]} + 0.0D)" if self.is_float else self.arguments[0]

    @property
    def is_float(self) -> bool:
        """Whether values are FLOAT."""
        return self.aggregate.arguments[0].type is GsqlType.FLOAT

    @property
    def where_present(self) -> str:
        """The clause that leaves out tuples without a value."""
        return f"FILTER (WHERE {self.arguments[0]} IS NOT NULL)"

    def finished(self, *inputs: str) -> str:
        """Return the call of the finisher."""
        return f"{finisher_name(self.aggregate)}({', '.join(inputs)})"

    def counted_sum(self, *inputs: str) -> str:
        """Return the call of the finisher of a sum that may wrap, which counts it for the query."""
        name = Literal(self.query.encode(), GsqlType.STRING)
        return self.finished(*inputs, to_sql(name, column_leaf))


Text = str | Callable[[_Call], str]
"""A template (``{n}``: the n-th partial column, ``{an}``: the n-th argument), or a function."""

_DECIMAL = "cast({} AS DECIMAL(38, 0))"


def _exact_sum(text: str) -> str:
    """Return a sum that does not wrap."""
    return f"sum({_DECIMAL.format(text)})"


def _moments_of_rows(call: _Call) -> str:
    x = call.arguments[0]
    if call.is_float:
        return call.finished(f"collect_list({x})")
    # x² = high²·2⁶⁴ + 2·high·low·2³² + low², each term exact
    high, low = f"shiftright({x}, 32)", f"({x} & 4294967295L)"
    across = _DECIMAL.format(f"{high} * {low}")
    return call.finished(
        f"count({x})",
        _exact_sum(x),
        f"sum(cast({low} AS DECIMAL(19, 0)) * cast({low} AS DECIMAL(19, 0)))",
        f"sum({across} + {across})",
        _exact_sum(f"{high} * {high}"),
    )


def _moments_of_partials(call: _Call) -> str:
    count, total, low, high = call.partials
    sums = (_exact_sum(total), _exact_sum(low), _exact_sum(high))
    return call.finished(f"sum({count})", *sums, _DECIMAL.format(0))


def _sum_of_rows(call: _Call) -> str:
    x = call.arguments[0]
    if call.aggregate.can_wrap:
        return call.counted_sum(*_sums_of_halves(x))
    if not call.is_float:
        return f"sum({x})"
    nothing = "cast(NULL AS DOUBLE)"
    return (
        f"aggregate(array_sort(collect_list({call.value})), {nothing}, "
        "(s, x) -> if(s IS NULL, x, s + x))"
    )


def _sum_of_partials(call: _Call) -> str:
    sums = [f"sum({partial})" for partial in call.partials]
    return call.counted_sum(*sums) if call.aggregate.can_wrap else sums[0]


def _sum_of_distinct(call: _Call) -> str:
    x = call.arguments[0]
    if call.aggregate.can_wrap:
        return call.counted_sum(f"sum(DISTINCT {_DECIMAL.format(x)})")
    return f"sum(DISTINCT {x})"


def _sums_of_halves(x: str) -> tuple[str, str]:
    """Return the sums of lower and upper halves; see ``queries/catalog/aggregate/halves.py``."""
    return f"sum({x} & 4294967295L)", f"sum(shiftright({x}, 32))"


def _average_of_rows(call: _Call) -> str:
    x = call.arguments[0]
    if call.is_float:
        total = _sum_of_rows(call)
    else:
        total = _exact_total(*_sums_of_halves(x))
    return f"(cast({total} AS DOUBLE) / cast(count({x}) AS DOUBLE))"


def _average_of_partials(call: _Call) -> str:
    *sums, count = call.partials
    texts = [f"sum({each})" for each in sums]
    total = texts[0] if len(texts) == 1 else _exact_total(*texts)
    return f"(cast({total} AS DOUBLE) / cast(sum({count}) AS DOUBLE))"


def _exact_total(low: str, high: str) -> str:
    """Return the exact sum as a decimal, from the sums of lower and upper halves."""
    lower, upper = _DECIMAL.format(low), _DECIMAL.format(high)
    return f"({upper} * 4294967296BD + {lower})"


def _extreme_of_rows(fold: str) -> Callable[[_Call], str]:
    return lambda call: f"{fold}({call.value})"


def _end_of_rows(fold: str) -> Callable[[_Call], str]:
    def text(call: _Call) -> str:
        order = ", ".join(f"'o{n}', {part}" for n, part in enumerate(call.arguments[1:]))
        struct = f"named_struct({order}, 'x', {call.value})"
        return f"({fold}({struct}) {call.where_present}).x"

    return text


def _end_of_partials(fold: str) -> Callable[[_Call], str]:
    def text(call: _Call) -> str:
        struct = f"named_struct('o', {call.partials[0]}, 'x', {call.value})"
        return f"({fold}({struct}) {call.where_present}).x"

    return text


def _changes(call: _Call) -> str:
    order = ", ".join(f"'o{n}', {part}" for n, part in enumerate(call.arguments[1:]))
    rows = f"collect_list(named_struct({order}, 'x', {call.value})) {call.where_present}"
    nothing = f"cast(NULL AS {SPARK_TYPES[call.aggregate.arguments[0].type]})"
    return (
        f"aggregate(array_sort({rows}), named_struct('n', 0L, 'x', {nothing}), "
        "(s, r) -> named_struct('n', s.n + if(s.x <=> r.x, 0L, 1L), 'x', r.x), s -> s.n)"
    )


def _quantile(part: str, *, is_counted: bool) -> Callable[[_Call], str]:
    def text(call: _Call) -> str:
        frequency = f", {call.partials[0]}" if is_counted else ""
        wanted = part.format(*call.arguments)
        return f"(percentile({call.value}, {wanted}{frequency}) + 0.0D)"

    return text


def _top(*, is_counted: bool) -> Callable[[_Call], str]:
    def text(call: _Call) -> str:
        count = call.partials[0] if is_counted else "1L"
        pairs = f"collect_list(named_struct('x', {call.value}, 'n', {count}))"
        return call.finished(pairs, *call.arguments[1:])

    return text


def _sketch_of_rows(call: _Call) -> str:
    return call.finished(f"collect_set({hash_text(call.aggregate.arguments[0].type, call.value)})")


def _sketch_of_partials(call: _Call) -> str:
    hashes = f"shiftleft({call.partials[0]}, {BUCKET_BITS}) | {call.arguments[0]}"
    return call.finished(f"collect_list({hashes})")


_SHARED: dict[str, Text] = {
    "count_distinct": "count(DISTINCT {a0})",
    "sum_distinct": _sum_of_distinct,
    "avg_distinct": "(cast(sum(DISTINCT cast({a0} AS DECIMAL(38, 0))) AS DOUBLE)"
    " / cast(count(DISTINCT cast({a0} AS DECIMAL(38, 0))) AS DOUBLE))",
}

FROM_PARTIALS: dict[str, Text] = {
    **_SHARED,
    "count": "sum({0})",
    "sum": _sum_of_partials,
    "min": "min({0})",
    "max": "max({0})",
    "avg": _average_of_partials,
    "or_aggr": "bit_or({0})",
    "and_aggr": "bit_and({0})",
    "xor_aggr": "bit_xor({0})",
    "bool_or": "max({0})",
    "bool_and": "min({0})",
    "count_dups": "coalesce(sum({0}) FILTER (WHERE {a0} IS NOT NULL) - count(DISTINCT {a0}), 0L)",
    "quantile": _quantile("{1}", is_counted=True),
    "median": _quantile("0.5D", is_counted=True),
    "approx_top_k": _top(is_counted=True),
    "approx_count_distinct": _sketch_of_partials,
    "first": _end_of_partials("min"),
    "last": _end_of_partials("max"),
    **dict.fromkeys(("var", "var_pop", "stddev", "stddev_pop"), _moments_of_partials),
}

FROM_ROWS: dict[str, Text] = {
    **_SHARED,
    "count": "count({a0})",
    "sum": _sum_of_rows,
    "min": _extreme_of_rows("min"),
    "max": _extreme_of_rows("max"),
    "avg": _average_of_rows,
    "or_aggr": "bit_or({a0})",
    "and_aggr": "bit_and({a0})",
    "xor_aggr": "bit_xor({a0})",
    "bool_or": "max({a0})",
    "bool_and": "min({a0})",
    "count_dups": "(count({a0}) - count(DISTINCT {a0}))",
    "quantile": _quantile("{1}", is_counted=False),
    "median": _quantile("0.5D", is_counted=False),
    "approx_top_k": _top(is_counted=False),
    "approx_count_distinct": _sketch_of_rows,
    "first": _end_of_rows("min"),
    "last": _end_of_rows("max"),
    "count_diff": _changes,
    **dict.fromkeys(("var", "var_pop", "stddev", "stddev_pop"), _moments_of_rows),
}


def aggregate_sql(
    aggregate: Aggregate,
    arguments: Sequence[str],
    partial: Callable[[str], str],
    query: str = "",
) -> str:
    """Return the Spark SQL text of ``aggregate``.

    Args:
        aggregate: the aggregate to lower.
        arguments: the texts of its arguments.
        partial: returns the text of a partial column; unused over plain rows.
        query: the name under which sums that exceed 64 bits are counted.

    Raises:
        EngineError: the aggregate has no high-level half here.
    """
    table = FROM_PARTIALS if aggregate.partials else FROM_ROWS
    text = table.get(aggregate.function)
    if text is None:
        folded = fold_sql(aggregate.function, arguments[0])
        if folded is not None:
            return folded
        message = f"the HFTA job has no aggregate {aggregate.function!r}"
        raise EngineError(message)
    partials = [partial(name) for name in aggregate.partials]
    if not isinstance(text, str):
        return text(_Call(aggregate, arguments, partials, query))
    texts = {f"a{index}": argument for index, argument in enumerate(arguments)}
    texts.setdefault("a0", "1")
    return text.format(*partials, **texts)
