"""Needed bounds: backtracking from rows that wait to the promises that would release them.

An operator with rows that it may not read yet is blocked by the ports whose bound is too low. Such
a port is fed by a stream of the log, or by an upstream query, which is blocked by its own ports in
turn. The functions are pure: they read ports and bounds and change nothing. After Bai, Thakkar,
Wang, Zaniolo: Optimizing Timestamp Management in Data Stream Management Systems (ICDE 2007), where
a source answers with its current time; here the demand names the bound that is needed, so one
answer is enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.bounds import NOTHING, bound_of, bounds_by_name
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.expressions.types import Direction
from gscope.queries.plan.program import MergeNode
from gscope.queries.plan.trees import by_name, map_expression
from gscope.queries.plan.unbounded_search import first_reached
from gscope.queries.plan.whole_input import is_whole_input
from gscope.queries.streams.messages import promised_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.engine.operators.base import Operator
    from gscope.engine.watermarks.bounds import Bound, Known
    from gscope.engine.watermarks.ports import Port
    from gscope.queries.expressions.expressions import Expression

Promises = dict[str, dict[str, int]]
"""For each stream, the bounds that it would have to promise, by the name of the promise.

{} where the bound cannot be computed: any progress may help.
"""


def needed_promises(operators: Mapping[str, Operator]) -> Promises:
    """Return what streams would have to promise to release rows that wait at ``operators``.

    For each operator (by query), these are the rows of its first epoch. Streams that block no
    operator are not included.
    """
    search = _Search(operators)
    for operator in operators.values():
        if isinstance(operator, EpochOperator) and not _waits_for_the_end(operator):
            goal = operator.goal()
            if math.isfinite(goal):
                search.behind(operator, goal)
    return search.found


class _Search:
    """One backtracking search."""

    def __init__(self, operators: Mapping[str, Operator]) -> None:
        self.found: Promises = {}
        self._operators = operators

    def behind(self, operator: EpochOperator, goal: Bound) -> None:
        """Find the streams that keep the watermark of ``operator`` below ``goal``."""
        for side in operator.sides:
            assert side.epoch is not None
            for port in side.ports.values():
                self._at(port, side.epoch, goal + side.epoch_range.last + operator.slack)

    def _at(self, port: Port, expression: Expression, goal: Bound) -> None:
        """Find the streams that keep the bound of ``expression`` at ``port`` below ``goal``."""
        if port.bound(expression) >= goal:
            return
        promise = _promise(port, expression, goal)
        if port.name not in self._operators:
            bounds = self.found.setdefault(port.name, {})
            if promise is not None:
                name, bound = promise
                bounds[name] = max(bound, bounds.get(name, bound))
        elif promise is None:
            self._anything(self._operators[port.name])
        else:
            self._upstream(self._operators[port.name], *promise)

    def _upstream(self, operator: Operator, name: str, goal: int) -> None:
        """Find the streams that keep ``operator`` from promising ``goal``."""
        expression = _output(operator, name)
        if not isinstance(operator, EpochOperator):
            for side in operator.sides:
                for port in side.ports.values():
                    self._at(port, expression, goal)
            return

        def at(watermark: int) -> Known:
            return lambda part: operator.bound_at(part, watermark)

        own = operator.distance(expression)
        watermark = _least(expression, at, goal, operator.watermark) if own is None else goal - own
        if watermark is None:
            self._anything(operator)
        else:
            self.behind(operator, watermark)

    def _anything(self, operator: Operator) -> None:
        """Ask all streams below ``operator`` for any bound."""
        if _waits_for_the_end(operator):
            return
        for side in operator.sides:
            for port in side.ports.values():
                if port.has_ended:
                    continue
                if port.name in self._operators:
                    self._anything(self._operators[port.name])
                else:
                    self.found.setdefault(port.name, {})


def _waits_for_the_end(operator: Operator) -> bool:
    """Return whether only the end of its input releases rows of ``operator``."""
    return any(is_whole_input(side.epoch) for side in operator.sides)


def _promise(port: Port, expression: Expression, goal: Bound) -> tuple[str, int] | None:
    """Return the name and the least bound of a promise that brings ``expression`` to ``goal``.

    None if no single promise at ``port`` does.
    """
    columns = {part.name for part in walk(expression) if isinstance(part, Column)}
    if len(columns) != 1 or not math.isfinite(goal):
        return None
    (column,) = columns
    name = f"-{column}" if f"-{column}" in port.bounds else column
    if isinstance(expression, Column) and name == column:
        return name, math.ceil(goal)
    bound = _least(
        expression, lambda at: bounds_by_name({name: at}), goal, port.bounds.get(name, NOTHING)
    )
    return None if bound is None else (name, bound)


def _least(
    expression: Expression, known: Callable[[int], Known], goal: Bound, begin: Bound
) -> int | None:
    """Return the least n from ``begin`` on with which ``expression`` reaches ``goal``.

    None if there is none, or ``begin`` is infinite.
    """
    if not math.isfinite(begin):
        return None

    return first_reached(lambda n: bound_of(expression, known(n)) >= goal, math.ceil(begin))


def _output(operator: Operator, name: str) -> Expression:
    """Return what the promise ``name`` bounds, over the columns of the operator's inputs."""
    column = next(c for c in operator.node.schema.temporal if promised_name(c) == name)
    if isinstance(operator.node, MergeNode):
        return next(side.epoch for side in operator.sides if side.epoch is not None)
    expression = by_name(operator.node.columns)[column.name]
    if isinstance(operator, EpochOperator) and operator.keys:
        keys = by_name(operator.keys)
        expression = map_expression(
            expression,
            lambda part: keys.get(part.name, part) if isinstance(part, Column) else part,
        )
    is_falling = column.ordering.direction is Direction.DECREASING
    return call("neg_int", expression) if is_falling else expression
