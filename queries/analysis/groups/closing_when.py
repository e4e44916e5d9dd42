"""CLOSING_WHEN: running aggregates, and groups that live across epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TemporalError, TypeMismatchError
from gscope.queries.analysis.typing.aggregate_calls import counted, order_of, type_arguments
from gscope.queries.catalog.running import RUNNING, RUNNING_FORMS
from gscope.queries.catalog.scalar.clock_units import SECOND_NS
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import AggregateCall, GroupBy, RunningGroupBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.errors import Position
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node

_ADD_CLAUSE = "add CLOSING_WHEN count(*) = 0, which lets a group live until an epoch without tuples"


def running_function(name: str, *, is_running: bool) -> str | None:
    """Return the running aggregate that ``name`` calls; None if that is a plain one, or none.

    Args:
        name: as written in the query.
        is_running: whether the query has CLOSING_WHEN, which makes ``first`` and ``last`` running
            aggregates.
    """
    lower = name.lower()
    if is_running and lower in RUNNING_FORMS:
        return RUNNING_FORMS[lower]
    return lower if lower in RUNNING else None


def type_running_call(
    node: nodes.FunctionCall, function: str, typer: Typer, source: Node, *, is_running: bool
) -> tuple[Expression, ...]:
    """Return the arguments of a call of a running aggregate: value, order if it has one, constants.

    Args:
        node: the call.
        function: the running aggregate, from ``running_function``.
        typer: types the arguments.
        source: the input of the grouping.
        is_running: whether the query has CLOSING_WHEN.

    Raises:
        TemporalError: the query has no CLOSING_WHEN.
        GsqlError: the arguments are invalid.
    """
    entry = RUNNING[function]
    if not is_running:
        message = f"{node.name} runs across epochs, but no CLOSING_WHEN says when its groups close"
        raise TemporalError(message, position=node.position, remedy=_ADD_CLAUSE)
    if node.distinct:
        message = f"{node.name} does not take DISTINCT"
        raise TypeMismatchError(message, position=node.position)
    if entry.sees_end and node.filter is not None:
        message = f"{node.name} takes no FILTER: it reads no tuples"
        raise TypeMismatchError(message, position=node.filter.position)
    if not node.args and entry.takes_star:
        return counted(node, typer)
    value, constants = type_arguments(node, entry, typer)
    order = order_of(source) if entry.is_ordered else ()
    return (value, *order, *constants)


def running_call(name: str, function: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    """Return the call of a running aggregate as the column ``name``."""
    entry = RUNNING[function]
    kind = entry.result_type(arguments)
    return AggregateCall(name, function, arguments, kind, not entry.is_never_null)


def running_group(
    group: GroupBy, closing: Expression, keys: Sequence[ColumnSchema], position: Position
) -> RunningGroupBy:
    """Return ``group`` as a grouping whose groups live until ``closing`` holds.

    Args:
        group: the grouping, running aggregates among its own.
        closing: the condition, over the columns of the groups.
        keys: the schemas of the keys over the input of the grouping.
        position: the place of GROUP BY in the text.

    Raises:
        TemporalError: a second term is temporal, or the temporal term skips values.
    """
    others = [k.name for k in keys if k.ordering.is_temporal and k.name != group.epoch]
    if others:
        message = f"with CLOSING_WHEN one group-by term is temporal: {group.epoch}, not {others[0]}"
        remedy = f"compute {others[0]} from {group.epoch} in SELECT, or write non_temporal(…)"
        raise TemporalError(message, position=position, remedy=remedy)
    epoch = next(k for k in keys if k.name == group.epoch)
    step = epoch.ordering.step
    if step != 1:
        how = f"in steps of {step}" if step else "in uneven steps"
        message = f"{group.epoch} moves {how}, so epochs cannot be closed one after the other"
        remedy = _step_remedy(epoch)
        raise TemporalError(message, position=position, remedy=remedy)
    return RunningGroupBy(
        group.input, group.keys, group.epoch, group.aggregates, closing, group.schema
    )


def _step_remedy(epoch: ColumnSchema) -> str:
    """Return how to write a term that moves in other steps than 1.

    Written so, it moves in steps of 1.
    """
    step = epoch.ordering.step
    if not step:
        return "group by a part of time: minute(time)"
    if epoch.type is GsqlType.TIMESTAMP:
        length = f"{step // SECOND_NS} sec" if step % SECOND_NS == 0 else f"{step} ns"
        return f"group by time_bucket('{length}', {epoch.name})"
    return f"group by {epoch.name}/{step}"
