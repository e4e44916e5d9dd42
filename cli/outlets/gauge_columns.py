"""The columns of a result as labels and gauges of Prometheus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.expressions.schema import free_name
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    MergeNode,
    QueryInput,
    RunningNode,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.schema import ClockUnit, ColumnSchema
    from gscope.queries.plan.program import Input, Program

PREFIX = "gscope_row_"

_MIN_EPOCH_NS = 1_000_000_000
"""The shortest epoch, in nanoseconds: no Prometheus scrapes more often."""

_NUMBERS = {
    GsqlType.BOOL: " (1 for true, 0 for false)",
    GsqlType.INT: "",
    GsqlType.FLOAT: "",
    GsqlType.INTERVAL: " in nanoseconds",
    GsqlType.TIMESTAMP: " in seconds since 1970",
}
"""The types that gauges can show, and what HELP says of their values."""


@dataclass(frozen=True, slots=True)
class Label:
    """A column whose text is a label.

    Attributes:
        column: its name in the result.
        name: the name of the label.
    """

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class RowGauge:
    """A column whose numbers are a metric.

    Attributes:
        column: its name in the result.
        name: the name of the metric.
        meaning: the HELP text.
        is_time: whether its values are TIMESTAMP.
    """

    column: str
    name: str
    meaning: str
    is_time: bool


@dataclass(frozen=True, slots=True)
class GaugeColumns:
    """What the columns of one result become.

    Attributes:
        query: the result.
        epoch: the column whose values are epochs.
        unit_ns: the nanoseconds that 1 of it stands for.
        step: the distance of epochs, in its unit.
        labels, gauges: the other columns, without those that are times of groups.
    """

    query: str
    epoch: str
    unit_ns: int
    step: int
    labels: tuple[Label, ...]
    gauges: tuple[RowGauge, ...]


def gauge_columns(program: Program, queries: Sequence[str]) -> tuple[GaugeColumns, ...]:
    """Return the columns of the results ``queries``; no two metrics have the same name.

    Raises:
        UsageError: there is no such result, or it has no epochs or no numbers to show.
    """
    results, taken = dict(program.results), set[str]()
    made = []
    for query in queries:
        if query not in results:
            hint = suggestion(query, results, f"the results are {', '.join(results)}")
            message = f"--metrics-of {query}: the run has no such result; {hint}"
            raise UsageError(message)
        epoch, clock = _epoch(program, query, results[query])
        aggregated = _aggregated(program, results[query])
        columns = [c for c in visible(program.schema(query)).columns if c.name != epoch]
        numbers = [c for c in columns if c.name in aggregated and c.type in _NUMBERS]
        if not numbers:
            message = (
                f"--metrics-of {query}: a metric needs a column that is a number computed by an"
                " aggregate, such as count(*)"
            )
            raise UsageError(message)
        gauges = []
        for column in numbers:
            name = free_name(PREFIX + _plain(f"{query}_{column.name}"), taken)
            taken.add(name)
            gauges.append(_gauge(query, column, name))
        made.append(
            GaugeColumns(
                query,
                epoch,
                clock.unit_ns,
                max(1, clock.grain_ns // clock.unit_ns),
                _labels([c for c in columns if c not in numbers and not _is_time(c)]),
                tuple(gauges),
            )
        )
    return tuple(made)


def _epoch(program: Program, query: str, source: Input) -> tuple[str, ClockUnit]:
    """Return the column of the epochs, and how it counts time.

    Raises:
        UsageError: there is none, its epochs are not times, or they are too short.
    """
    temporal = AnswerOrder.of(program, query).temporal
    if not isinstance(source, QueryInput) or not temporal or temporal[0].startswith("-"):
        message = (
            f"--metrics-of {query}: a metric shows the latest complete epoch, and the rows have"
            " none; group them by a time and select it, as in GROUP BY time/60 AS tb"
        )
        raise UsageError(message)
    clock = program.schema(query)[temporal[0]].clock
    if clock is None or clock.grain_ns < _MIN_EPOCH_NS:
        message = (
            f"--metrics-of {query}: {temporal[0]} must count time in epochs of at least a second,"
            " as time/60 does"
        )
        raise UsageError(message)
    return temporal[0], clock


def _is_time(column: ColumnSchema) -> bool:
    return column.clock is not None or column.type is GsqlType.TIMESTAMP


def _aggregated(program: Program, source: Input) -> frozenset[str]:
    """Return the columns of an input of nodes in which an aggregate takes part."""
    if not isinstance(source, QueryInput):
        return frozenset(partial.name for partial in program.lfta(source.lfta).partials)
    node = program.node(source.query)
    sides = [_aggregated(program, each) for each in node_inputs(node)]
    if isinstance(node, TopNode):
        return sides[0]
    if isinstance(node, MergeNode):
        inputs = [_names(program, each) for each in node.inputs]
        return frozenset(
            name
            for place, name in enumerate(node.schema.names)
            if any(names[place] in side for names, side in zip(inputs, sides, strict=True))
        )
    if isinstance(node, AggregationNode | RunningNode | WindowNode | SampleNode):
        own = {key.name for key in node.keys} | {WINDOW_START, WINDOW_END}
        return frozenset(
            each.name
            for each in node.columns
            if any(isinstance(p, Column) and p.name not in own for p in walk(each.expression))
        )
    return frozenset(
        each.name
        for each in node.columns
        if any(
            isinstance(p, Column) and p.input < len(sides) and p.name in sides[p.input]
            for p in walk(each.expression)
        )
    )


def _names(program: Program, source: Input) -> tuple[str, ...]:
    if isinstance(source, QueryInput):
        return program.schema(source.query).names
    return program.lfta(source.lfta).stream_schema.names


def _gauge(query: str, column: ColumnSchema, name: str) -> RowGauge:
    meaning = (
        f"Column {column.name} of the result {query}{_NUMBERS[column.type]}, latest complete epoch."
    )
    return RowGauge(column.name, name, meaning, column.type is GsqlType.TIMESTAMP)


def _labels(columns: Sequence[ColumnSchema]) -> tuple[Label, ...]:
    labels: list[Label] = []
    for column in columns:
        # Prometheus reserves names that begin with two underscores for itself.
        wanted = re.sub(r"^(__+|(?=[0-9]))", "_", _plain(column.name))
        labels.append(Label(column.name, free_name(wanted, {each.name for each in labels})))
    return tuple(labels)


def _plain(name: str) -> str:
    """Return ``name`` with an underscore for each character that metrics cannot have."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)
