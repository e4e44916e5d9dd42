"""CLOSING_WHEN at the end of an epoch without tuples.

Which groups close is decided here, as far as the plan shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import RUNNING, value_of_nothing
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, walk

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value
    from gscope.queries.plan.program import RunningNode


class _Unknown:
    """A value that is not known before the query runs."""


_UNKNOWN = _Unknown()


def idle_groups_close(node: RunningNode) -> bool:
    """Return whether CLOSING_WHEN can become true for a group that gets no more tuples.

    One of its alternatives must depend on a value that changes while a group is idle (a plain
    aggregate, a moving one, the epoch), and not be false or NULL with plain aggregates of no
    tuples.
    """
    empty = _without_tuples(node)
    moving = {a.name for a in node.running if RUNNING[a.function].moves_when_idle}
    changing = {*empty, *moving, node.epoch}
    for alternative in _alternatives(node.closing):
        read = {part.name for part in walk(alternative) if isinstance(part, Column)}
        is_constant = not read
        if (read & changing or is_constant) and _value(alternative, empty) in (True, _UNKNOWN):
            return True
    return False


def closing_without_history(node: RunningNode) -> Expression | None:
    """Return the alternatives of CLOSING_WHEN that read no running aggregate.

    None if an epoch without tuples does not make one of them true, whatever the group.
    """
    running = {aggregate.name for aggregate in node.running}
    parts = [
        part
        for part in _alternatives(node.closing)
        if not any(isinstance(each, Column) and each.name in running for each in walk(part))
    ]
    empty = _without_tuples(node)
    if not any(_value(part, empty) is True for part in parts):
        return None
    return parts[0] if len(parts) == 1 else call("or", *parts)


def _without_tuples(node: RunningNode) -> dict[str, Value]:
    """Return the plain aggregates of an epoch without tuples."""
    return {
        a.name: value_of_nothing(a.function, a.arguments)
        for a in node.aggregates
        if a.function in AGGREGATES
    }


def _alternatives(closing: Expression) -> list[Expression]:
    if isinstance(closing, Call) and closing.function == "or":
        return [part for argument in closing.arguments for part in _alternatives(argument)]
    return [closing]


def _value(expression: Expression, known: dict[str, Value]) -> Value | _Unknown:
    """Return the value of ``expression`` as far as ``known`` columns determine it."""
    if isinstance(expression, Literal):
        return expression.value
    if not isinstance(expression, Call):
        return known.get(expression.name, _UNKNOWN) if isinstance(expression, Column) else _UNKNOWN
    values = [_value(argument, known) for argument in expression.arguments]
    entry = FUNCTIONS[expression.function]
    if entry.is_strict and None in values:
        return None
    if expression.function == "and" and False in values:
        return False
    if any(isinstance(value, _Unknown) for value in values):
        return _UNKNOWN
    return entry.evaluate(*values)
