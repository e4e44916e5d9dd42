"""The final half of each epoch's aggregation where it is simple: LFTA partials merged with numpy.

From partial tuples it makes exactly the rows that Spark makes by the SQL text of
``engine/operators/running.py``. For a step of some ten thousand tuples, Spark takes longer to plan
than numpy to answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.halves import joined_halves
from gscope.engine.running.spark_hash import spark_hash
from gscope.engine.storage.counts import Counts
from gscope.queries.catalog.running import DISTINCT_VALUES
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.streams.texts import as_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Aggregate, RunningNode

    Array = NDArray[Any]

_INTEGERS = (GsqlType.INT, GsqlType.MAC, GsqlType.TIMESTAMP, GsqlType.INTERVAL)
_KEYS = (*_INTEGERS, GsqlType.IP, GsqlType.STRING)
_FOLDS: dict[str, tuple[np.ufunc, int]] = {
    "count": (np.add, 0),
    "sum": (np.add, 0),
    "min": (np.minimum, MAX_INT),
    "max": (np.maximum, MIN_INT),
    "or_aggr": (np.bitwise_or, 0),
    "and_aggr": (np.bitwise_and, -1),
    "xor_aggr": (np.bitwise_xor, 0),
}
"""How the only partial of an aggregate merges, and the neutral value of the merge."""

_ENDS = {"first": _FOLDS["min"], "last": _FOLDS["max"]}
"""How the partial that orders values chooses among them, and breaks ties."""


def is_reducible(node: RunningNode) -> bool:
    """Return whether ``reduce_epochs`` supports ``node``: plain keys, integers, no filter.

    Texts may be keys, but deal no groups to tasks.
    """
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    keys_fit = not epoch.is_nullable and all(
        isinstance(key.expression, Column) and key.expression.type in _KEYS for key in node.keys
    )
    keys_fit &= all(key.type is not GsqlType.STRING for key in dealing_keys(node))
    return keys_fit and node.predicate is None and all(map(_is_mergeable, node.aggregates))


def needed_columns(node: RunningNode) -> list[str]:
    """Return the columns of the input that ``reduce_epochs`` reads."""
    keys = [key.expression for key in node.keys]
    functions = (DISTINCT_VALUES, *_ENDS)
    joined = [a.arguments[0] for a in node.aggregates if a.function in functions]
    names = [e.name for e in (*keys, *joined) if isinstance(e, Column)]
    return list(dict.fromkeys([*names, *(p for a in node.aggregates for p in a.partials)]))


def dealing_keys(node: RunningNode) -> list[Expression]:
    """Return the keys whose hash deals groups to tasks: addresses, or else all but the epoch."""
    others = [key.expression for key in node.keys if key.name != node.epoch]
    return [key for key in others if key.type is GsqlType.IP] or others


def part_of(node: RunningNode, tuples: pa.Table, tasks: int, part: int) -> pa.Table:
    """Return those of ``tuples`` whose group belongs to one task; see ``reduce_epochs``."""
    others = dealing_keys(node)
    keys = [_column(tuples, e.name) for e in others if isinstance(e, Column)]
    return tuples.filter(pa.array(_dealt(keys, tuples.num_rows, tasks) == part))


def reduce_epochs(
    node: RunningNode, tuples: pa.Table, tasks: int, counts: Counts | None = None
) -> pa.Table:
    """Return one row for each epoch and group of partial tuples.

    Args:
        node: a running aggregation that ``is_reducible``.
        tuples: the tuples of an LFTA, as its segments hold them.
        tasks: the number of tasks that share the groups in large steps.
        counts: receives the number of sums that exceed 64 bits; None to drop it.
    """
    counts = counts or Counts()
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    others = [key.expression for key in node.keys if key.name != node.epoch]
    columns = {name: _column(tuples, name) for name in needed_columns(node)}
    keys: dict[Expression, pa.Array] = {
        e: columns[e.name] for e in (epoch, *others) if isinstance(e, Column)
    }
    groups = _Groups.of([keys[key] for key in (epoch, *others)])
    first = pa.array(groups.order[groups.starts])
    leaders = {key: column.take(first) for key, column in keys.items()}
    made = {"e": leaders[epoch]}
    made |= {f"k{number}": _as_spark(leaders[key]) for number, key in enumerate(others)}
    for number, aggregate in enumerate(node.aggregates):
        if aggregate.can_wrap:
            halves = (_folded("sum", columns[name], groups) for name in aggregate.partials)
            made[f"a{number}"], wrapped = joined_halves(*halves)
            counts.add_wrapped_sums(node.query, wrapped)
        else:
            made[f"a{number}"] = _merged(aggregate, columns, groups)
    dealing = [leaders[key] for key in dealing_keys(node)]
    made["kb"] = pa.array(_dealt(dealing, len(first), tasks))
    return pa.table(made)


def _column(tuples: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece, as 64-bit integers where a segment stores 32 bits."""
    column = tuples[name].combine_chunks()
    return column.cast(pa.int64()) if pa.types.is_int32(column.type) else column


def _dealt(keys: list[pa.Array], rows: int, tasks: int) -> Array:
    hashed = spark_hash(keys, rows) if keys else np.zeros(rows, np.int32)
    dealt: Array = np.mod(hashed, np.int32(tasks))
    return dealt


@dataclass(frozen=True, slots=True)
class _Groups:
    """The places of rows, group after group, and where among them each group begins."""

    order: Array
    starts: Array

    @classmethod
    def of(cls, keys: list[pa.Array]) -> _Groups:
        """Return the groups of rows with equal keys, at least one; NULL equals NULL."""
        # Where keys are numbers in a dictionary, these are as good as its values.
        columns = [key.indices if pa.types.is_dictionary(key.type) else key for key in keys]
        names = [str(number) for number in range(len(columns))]
        rows = pa.array(np.arange(len(keys[0]), dtype=np.int32))
        table = pa.table([*columns, rows], names=[*names, "row"])
        # Half the time of numbering the groups and sorting by the numbers.
        grouped = table.group_by(names, use_threads=False).aggregate([("row", "list")])
        places = grouped["row_list"].combine_chunks()
        return cls(places.flatten().to_numpy(), places.offsets.to_numpy()[:-1])

    def fold(self, values: Array, rule: np.ufunc) -> Array:
        if not len(self.starts):
            return values[:0]
        folded: Array = rule.reduceat(values[self.order], self.starts)
        return folded


def _is_mergeable(aggregate: Aggregate) -> bool:
    if aggregate.function == DISTINCT_VALUES:
        (argument,) = aggregate.arguments
        kinds = (*_INTEGERS, GsqlType.IP)
        return isinstance(argument, Column) and argument.type in kinds
    if aggregate.function in _ENDS:
        value = aggregate.arguments[0]
        return isinstance(value, Column) and value.type in _INTEGERS and bool(aggregate.partials)
    if aggregate.function not in _FOLDS or not aggregate.partials:
        return False
    return aggregate.type in _INTEGERS and not aggregate.arguments


def _as_spark(column: pa.Array) -> pa.Array:
    """Return a column in the type in which Spark emits it; addresses and texts have others."""
    if pa.types.is_binary(column.type):
        return as_text(column)
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


def _merged(aggregate: Aggregate, columns: dict[str, pa.Array], groups: _Groups) -> pa.Array:
    if aggregate.function == DISTINCT_VALUES:
        (argument,) = aggregate.arguments
        assert isinstance(argument, Column)
        return _lists(columns[argument.name], groups)
    (partial,) = aggregate.partials
    column = columns[partial]
    if aggregate.function in _ENDS:
        value = aggregate.arguments[0]
        assert isinstance(value, Column)
        return _end(columns[value.name], column, groups, *_ENDS[aggregate.function])
    return _folded(aggregate.function, column, groups)


def _folded(function: str, column: pa.Array, groups: _Groups) -> pa.Array:
    rule, nothing = _FOLDS[function]
    with np.errstate(all="ignore"):
        if not column.null_count:
            return pa.array(groups.fold(column.to_numpy(), rule))
        folded = groups.fold(column.fill_null(nothing).to_numpy(), rule)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(folded, mask=~groups.fold(valid, np.logical_or))


def _end(
    column: pa.Array, order: pa.Array, groups: _Groups, rule: np.ufunc, nothing: int
) -> pa.Array:
    """Return, for each group, the non-NULL value whose order (then value) is at the end."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    orders = np.where(valid, order.fill_null(_FOLDS["max"][1]).to_numpy(), nothing)
    ends = groups.fold(orders, rule)
    of_row = np.empty_like(orders)
    of_row[groups.order] = np.repeat(ends, np.diff(np.append(groups.starts, len(orders))))
    is_end = valid & (orders == of_row)
    folded = groups.fold(np.where(is_end, column.fill_null(0).to_numpy(), nothing), rule)
    return pa.array(folded, mask=~groups.fold(valid, np.logical_or))


def _lists(column: pa.Array, groups: _Groups) -> pa.Array:
    """Return the non-NULL values of each group, with repetitions."""
    ordered = column.take(pa.array(groups.order))
    valid = ordered.is_valid().to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(valid)])
    ends = np.append(groups.starts, len(ordered))
    offsets = pa.array(before[ends].astype(np.int32))
    return pa.ListArray.from_arrays(offsets, _as_spark(ordered.drop_null()))
