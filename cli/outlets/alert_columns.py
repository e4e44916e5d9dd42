"""The columns that an alert reads: the epoch, the key and the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.order_column import OrderColumn
from gscope.errors import UsageError
from gscope.queries.did_you_mean import closest
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.group_columns import group_columns
from gscope.queries.plan.row_order import visible
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema, Schema
    from gscope.queries.gsql.alerts.rule import AlertRule
    from gscope.queries.plan.program import Program

EVENT_COLUMNS = ("alert", "event", "epoch", "value", "epochs")
"""The columns of an event beside those of the key."""

_EPOCH_TYPES = (GsqlType.INT, GsqlType.TIMESTAMP)
_VALUE_TYPES = (GsqlType.INT, GsqlType.FLOAT)


@dataclass(frozen=True, slots=True)
class AlertColumns:
    """Where an alert finds what it judges.

    Attributes:
        epoch: the first temporal column.
        falls: whether its values decrease.
        step: the difference between one epoch and the next, in seconds and the like for INT and in
            nanoseconds for TIMESTAMP; 0 if it is not known, because the column is not a time.
        is_time: whether the column is a TIMESTAMP.
        keys: the columns that form the key.
        value: the column that conditions compare; "" for none.
    """

    epoch: str
    falls: bool
    step: int
    is_time: bool
    keys: tuple[str, ...]
    value: str


def alert_columns(rule: AlertRule, program: Program) -> AlertColumns:
    """Return the columns of ``rule`` in the results of ``program``.

    Raises:
        UsageError: there is no such result or column, or a column has another type than expected.
    """
    results = [query for query, _ in program.results]
    if rule.query not in results:
        wanted = closest(rule.query, results)
        hint = f"did you mean {wanted}?" if wanted else f"the results are {', '.join(results)}"
        message = f"alert {rule.name}: there is no result {rule.query}; {hint}"
        raise UsageError(message)
    schema = visible(program.schema(rule.query))
    order = AnswerOrder.of(program, rule.query)
    if not order.temporal or OrderColumn(order.temporal[0]).name not in schema:
        message = (
            f"alert {rule.name}: expected rows in the order of a column of time, and {rule.query}"
            " has none; select one, such as time/60 AS tb, and group by it"
        )
        raise UsageError(message)
    first = OrderColumn(order.temporal[0])
    epoch = _column(rule, schema, first.name, _EPOCH_TYPES)
    value = ""
    if rule.raises is not None:
        value = _column(rule, schema, rule.raises.column, _VALUE_TYPES).name
    keys = _keys(rule, program, schema)
    for name in keys:
        if name in EVENT_COLUMNS:
            message = (
                f"alert {rule.name}: events have a column {name} of their own; give that of"
                f" {rule.query} another name with AS"
            )
            raise UsageError(message)
    is_time = epoch.type is GsqlType.TIMESTAMP
    step = 0
    if epoch.clock is not None:
        step = epoch.clock.grain_ns // (1 if is_time else epoch.clock.unit_ns)
    return AlertColumns(epoch.name, first.falls, step, is_time, keys, value)


def _column(
    rule: AlertRule, schema: Schema, name: str, types: tuple[GsqlType, ...] = ()
) -> ColumnSchema:
    if name not in schema:
        wanted = closest(name, schema.names)
        hint = f"did you mean {wanted}?" if wanted else f"it has {', '.join(schema.names)}"
        message = f"alert {rule.name}: {rule.query} has no column {name}; {hint}"
        raise UsageError(message)
    column = schema[name]
    if types and column.type not in types:
        expected = " or ".join(each.value for each in types)
        message = f"alert {rule.name}: expected {name} as {expected}, got {column.type.value}"
        raise UsageError(message)
    return column


def _keys(rule: AlertRule, program: Program, schema: Schema) -> tuple[str, ...]:
    """Return the columns of BY, otherwise those by which the query groups, except times."""
    if rule.by:
        return tuple(dict.fromkeys(_column(rule, schema, name).name for name in rule.by))
    groups = group_columns(program, dict(program.results)[rule.query], has_computed=True)
    if groups is None:
        example = next((c.name for c in schema.columns if c.type not in _VALUE_TYPES), "srcIP")
        message = (
            f"alert {rule.name}: no grouping gives the rows of {rule.query}, so that its key is not"
            f" known; name the columns of the key, as in 'by {example}'"
        )
        raise UsageError(message)
    temporal = {column.name for column in schema.temporal}
    return tuple(name for name in schema.names if name in groups and name not in temporal)
