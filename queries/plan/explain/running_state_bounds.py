"""The bound of the state of groups that live across epochs: each of them closes in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING, value_of_nothing
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, walk
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value
    from gscope.queries.plan.program import RunningNode


class _Unknown:
    """A value that is not known before the query runs."""


_UNKNOWN = _Unknown()


def running_state_bound(node: RunningNode) -> str:
    """Return what bounds the state of ``node``, or the warning that nothing does."""
    parts = [f"one row of state for each live group; it closes when {show(node.closing)}"]
    if any(a.function == DISTINCT_VALUES for a in node.aggregates):
        parts.append("each row holds the set of values that its group has seen")
    parts.extend(
        f"and {aggregate.constants[0]!r} epochs of {aggregate.name}"
        for aggregate in node.running
        if RUNNING[aggregate.function].moves_when_idle
    )
    if len(node.keys) > 1 and not idle_groups_close(node):
        parts.append(
            "WARNING: nothing bounds the state, since a group without tuples never closes: "
            "add OR count(*) = 0 to CLOSING_WHEN"
        )
    return "; ".join(parts)


def idle_groups_close(node: RunningNode) -> bool:
    """Return whether CLOSING_WHEN can become true for a group that gets no more tuples.

    One of its alternatives must depend on a value that changes while a group is idle (a plain
    aggregate, a moving one, the epoch), and not be false or NULL with plain aggregates of no
    tuples.
    """
    empty = {
        a.name: value_of_nothing(a.function, a.arguments)
        for a in node.aggregates
        if a.function in AGGREGATES
    }
    moving = {a.name for a in node.running if RUNNING[a.function].moves_when_idle}
    changing = {*empty, *moving, node.epoch}
    for alternative in _alternatives(node.closing):
        read = {part.name for part in walk(alternative) if isinstance(part, Column)}
        is_constant = not read
        if (read & changing or is_constant) and _value(alternative, empty) in (True, _UNKNOWN):
            return True
    return False


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
