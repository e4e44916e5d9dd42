"""The rows of an answer: the columns of sampled groups, and what SELECT makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import Vector, compute, from_arrow, to_arrow
from gscope.engine.sampling.values import numbered
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gscope.engine.sampling.values import SampleRows
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.sampling_operator import SampleNode

    Array = NDArray[Any]


def answers_of(
    rows: SampleRows, keys: pa.Table, arrays: Mapping[str, Any], groups: Array
) -> pa.Table:
    """Return the answers that a kernel has left, with the columns of the node's schema.

    Args:
        rows: the tuples that were folded.
        keys: the keys of the groups that are answered.
        arrays: the arguments of the kernel after it has run.
        groups: the numbers of these groups, in the order of the kernel's answers.
    """
    node, sampling = rows.node, rows.node.sampling
    kinds = {key.name: key.expression.type for key in node.keys}
    columns = {name: keys[name].combine_chunks() for name in keys.column_names}
    for number, each in enumerate(sampling.aggregates):
        valid = arrays[f"b{number}"][groups]
        if each.function == "count":
            valid = np.ones(len(groups), np.bool_)
        kinds[each.name] = each.type
        columns[each.name] = _decoded(rows, each, Vector(arrays[f"a{number}"][groups], valid))
    supers, selected = sampling.superaggregates, sampling.selected
    shown = [(f"out{n}", f"outn{n}", one.name, one.type) for n, one in enumerate(supers)]
    shown += [(f"sel{n}", f"seln{n}", one.name, one.type) for n, one in enumerate(selected)]
    for values, validity, name, kind in shown:
        made = Vector(arrays[values][: len(groups)], arrays[validity][: len(groups)])
        kinds[name] = kind
        columns[name] = to_arrow(made, kind)
    return _output(node, columns, kinds, len(groups))


def _decoded(rows: SampleRows, aggregate: AggregateCall, vector: Vector) -> pa.Array:
    """Return an aggregate as a column; of texts and addresses the kernel has folded ranks."""
    kind = aggregate.type
    if kind not in (GsqlType.STRING, GsqlType.IP):
        return to_arrow(vector, kind)
    (argument,) = aggregate.arguments
    assert isinstance(argument, Column)
    values = {value.name: value.expression for value in rows.node.sampling.values}
    ranks = numbered(rows, values[argument.name]).ranks
    assert ranks is not None
    return ranks.take(pa.array(vector.values, pa.int64(), mask=~vector.valid))


def _output(
    node: SampleNode, columns: Mapping[str, pa.Array], kinds: Mapping[str, GsqlType], count: int
) -> pa.Table:
    """Return the columns of SELECT, given those of groups and their types."""
    vectors: dict[str, Vector] = {}

    def leaf(name: str) -> Vector:
        if name not in vectors:
            vectors[name] = from_arrow(columns[name], kinds[name])
        return vectors[name]

    made = {}
    for column in node.columns:
        e = column.expression
        if isinstance(e, Column):
            made[column.name] = columns[e.name]
        else:
            made[column.name] = to_arrow(compute(e, leaf, count), e.type)
    return pa.table(made)
