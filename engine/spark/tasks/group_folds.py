"""Folds of columns by groups: those of Arrow, and those that Arrow lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.spark.tasks.columns import flat
from gscope.queries.catalog.aggregate.moments import MOMENTS_BY_NAME
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable

BITS: dict[str, tuple[np.ufunc, int]] = {
    "or_aggr": (np.bitwise_or, 0),
    "and_aggr": (np.bitwise_and, -1),
    "xor_aggr": (np.bitwise_xor, 0),
}
"""Folds of bits, each with its neutral element."""


def fold_groups(table: pa.Table, keys: list[str], folds: dict[str, tuple[str, str]]) -> pa.Table:
    """Return one row for each group.

    Args:
        table: the rows.
        keys: the columns that distinguish groups; NULL equals NULL.
        folds: the column and the fold of each result, by the result's name: a fold of Arrow,
            ``count_all`` of any column, or one of ``OWN_FOLDS``.
    """
    ordered = [column for column, fold in folds.values() if fold == "float_sum"]
    if ordered:
        # FLOAT values are added in ascending order.
        table = table.take(pc.sort_indices(table, sort_keys=[(ordered[0], "ascending")]))
    asked = dict.fromkeys((column, _ARROW.get(fold, fold)) for column, fold in folds.values())
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [
            ([] if fold == "count_all" else column, fold, _OPTIONS.get(fold))
            for column, fold in asked
        ]
    )
    columns = {key: grouped[key] for key in keys}
    for name, (column, fold) in folds.items():
        arrow = _ARROW.get(fold, fold)
        folded = grouped[arrow if fold == "count_all" else f"{column}_{arrow}"]
        columns[name] = OWN_FOLDS[fold](flat(folded)) if fold in OWN_FOLDS else folded
    return pa.table(columns)


def _of_lists(fold: Callable[[Any], float | None]) -> Callable[[pa.ListArray], pa.Array]:
    """Return a fold in Python over the values of each group."""

    def folded_lists(lists: pa.ListArray) -> pa.Array:
        groups = ([x for x in each if x is not None] for each in lists.to_pylist())
        return pa.array([fold(group) for group in groups], pa.float64())

    return folded_lists


def _of_bits(rule: np.ufunc, nothing: int) -> Callable[[pa.ListArray], pa.Array]:
    def folded_lists(lists: pa.ListArray) -> pa.Array:
        values, starts = lists.flatten(), lists.offsets.to_numpy()[:-1] - lists.offsets[0].as_py()
        if not len(starts):
            return pa.array([], pa.int64())
        known = values.fill_null(nothing).cast(pa.int64()).to_numpy()
        folded = rule.reduceat(known, starts)
        if not values.null_count:
            return pa.array(folded)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        return pa.array(folded, mask=~np.logical_or.reduceat(valid, starts))

    return folded_lists


def _end_of_floats(rule: np.ufunc) -> Callable[[pa.ListArray], pa.Array]:
    """Return the fold to the least or greatest value; NaN exceeds all numbers, -0.0 is 0.0."""

    def folded_lists(lists: pa.ListArray) -> pa.Array:
        values = lists.flatten()
        numbers = values.fill_null(0.0).to_numpy() + 0.0
        ordered = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        ordered = np.where(ordered < 0, ordered ^ _ALL_BUT_SIGN, ordered)
        ranks = pa.ListArray.from_arrays(
            lists.offsets,
            pa.array(ordered, mask=values.is_null().to_numpy(zero_copy_only=False)),
        )
        limit = _ALL_BUT_SIGN if rule is np.minimum else ~_ALL_BUT_SIGN
        ends = _of_bits(rule, int(limit))(ranks)
        found = ends.fill_null(0).to_numpy()
        found = np.where(found < 0, found ^ _ALL_BUT_SIGN, found).view(np.float64)
        return pa.array(found, mask=ends.is_null().to_numpy(zero_copy_only=False))

    return folded_lists


_ALL_BUT_SIGN = np.int64(MAX_INT)

OWN_FOLDS: dict[str, Callable[[pa.ListArray], pa.Array]] = {
    **{name: _of_bits(*rule) for name, rule in BITS.items()},
    **{name: _of_lists(moment.of_values) for name, moment in MOMENTS_BY_NAME.items()},
    "least": _end_of_floats(np.minimum),
    "greatest": _end_of_floats(np.maximum),
    "float_sum": lambda sums: sums,
}
"""Folds that Arrow lacks, of the lists of values or of the closest fold that it has."""

_ARROW = {**dict.fromkeys(OWN_FOLDS, "list"), "float_sum": "sum"}
"""The folds of Arrow that these need."""

_OPTIONS: dict[str, pc.FunctionOptions] = {
    "count": pc.CountOptions(mode="only_valid"),
    **dict.fromkeys(("sum", "min", "max"), pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)),
}
