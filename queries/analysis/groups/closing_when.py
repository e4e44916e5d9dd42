"""CLOSING_WHEN: running aggregates, and groups that live across epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TemporalError, TypeMismatchError
from gscope.queries.analysis.typing.aggregate_calls import order_of, type_arguments
from gscope.queries.catalog.running import RUNNING, RUNNING_FORMS
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
    """The running aggregate that ``name`` calls, None if it is a plain one or none at all.

    Args:
        name: as written.
        is_running: whether the query has CLOSING_WHEN; ``first`` and ``last`` are running ones then.
    """
    lower = name.lower()
    if is_running and lower in RUNNING_FORMS:
        return RUNNING_FORMS[lower]
    return lower if lower in RUNNING else None


def type_running_call(
    node: nodes.FunctionCall, function: str, typer: Typer, source: Node, *, is_running: bool
) -> tuple[Expression, ...]:
    """The arguments of a call of the running aggregate ``function``: value, order if it has one, constants.

    Args:
        node: the call.
        function: of ``running_function``.
        typer: types arguments.
        source: what is aggregated.
        is_running: whether the query has CLOSING_WHEN.

    Raises:
        TemporalError: there is no CLOSING_WHEN.
        GsqlError: the arguments do not fit.
    """
    entry = RUNNING[function]
    if not is_running:
        message = f"{node.name} runs across epochs, but nothing says when its group closes"
        raise TemporalError(message, position=node.position, remedy=_ADD_CLAUSE)
    if node.distinct:
        message = f"{node.name} does not take DISTINCT"
        raise TypeMismatchError(message, position=node.position)
    if not node.args and entry.takes_star:
        return ()
    value, constants = type_arguments(node, entry, typer)
    order = order_of(source) if entry.is_ordered else ()
    return (value, *order, *constants)


def running_call(name: str, function: str, arguments: tuple[Expression, ...]) -> AggregateCall:
    """The call of a running aggregate under the column name ``name``."""
    entry = RUNNING[function]
    kind = entry.result_type(arguments)
    return AggregateCall(name, function, arguments, kind, not entry.is_never_null)


def running_group(
    group: GroupBy, closing: Expression, keys: Sequence[ColumnSchema], position: Position
) -> RunningGroupBy:
    """``group`` as one whose groups live until ``closing`` holds.

    Args:
        group: with running aggregates among its own.
        closing: over its columns.
        keys: the schemas of its keys as its input gives them.
        position: of GROUP BY.

    Raises:
        TemporalError: there is a second temporal term, or the one there is skips values.
    """
    others = [k.name for k in keys if k.ordering.is_temporal and k.name != group.epoch]
    if others:
        message = f"with CLOSING_WHEN one group-by term is temporal: {group.epoch}, not {others[0]}"
        remedy = f"compute {others[0]} from {group.epoch} in SELECT, or write non_temporal(…)"
        raise TemporalError(message, position=position, remedy=remedy)
    step = next(k.ordering.step for k in keys if k.name == group.epoch)
    if step != 1:
        how = f"in steps of {step}" if step else "in uneven steps"
        message = f"{group.epoch} moves {how}, so that no epoch after another can be ended"
        remedy = (
            f"group by {group.epoch}/{step}" if step else "group by a part of time: time/60 as tb"
        )
        raise TemporalError(message, position=position, remedy=remedy)
    return RunningGroupBy(
        group.input, group.keys, group.epoch, group.aggregates, closing, group.schema
    )
