"""Watermarks as times: when the epoch of a watermark begins, if packet times determine it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.plan.logical import first_side
from gscope.queries.plan.packet_columns import PacketColumns, is_of_time, over_packets
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.trees import by_name
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Column, Expression, PacketField, Value
    from gscope.queries.plan.program import HftaNode, Input, Program

_LATEST_NS = 1 << 62
"""The end of the search for a time: in the year 2116."""

_FIELDS: dict[str, Callable[[int], int]] = {
    "time": lambda time_ns: time_ns // 1_000_000_000,
    "timestamp": lambda time_ns: time_ns,
    "time_ns": lambda time_ns: time_ns,
}


class EventTimes:
    """The times of the watermarks of a program's operators."""

    def __init__(self, program: Program) -> None:
        self._columns = PacketColumns(program)
        self._clocks: dict[str, _Clock] = {}
        for node in program.nodes:
            epoch = self._epoch(node)
            if epoch is not None and is_of_time(epoch):
                self._clocks[node.query] = _Clock(epoch)

    def of(self, query: str, watermark: Bound) -> int | None:
        """Return when the epoch ``watermark`` of an operator begins, nanoseconds since 1970.

        None if that does not follow from packet times.
        """
        clock = self._clocks.get(query)
        if clock is None or not math.isfinite(watermark):
            return None
        return clock.time_of(math.ceil(watermark))

    def has_epochs(self, query: str) -> bool:
        """Return whether packet times determine the epochs of an operator."""
        return query in self._clocks

    def epoch_at(self, query: str, time_ns: int) -> int | None:
        """Return the epoch of an operator to which a time belongs; None as for ``of``."""
        clock = self._clocks.get(query)
        return None if clock is None else clock.value(time_ns)

    def time_of(self, source: Input, column: str, value: int) -> int | None:
        """Return when a column of ``source`` reaches ``value``, nanoseconds since 1970.

        None if the column is not an increasing function of packet times.
        """
        expression = self._columns.of(source).get(column)
        if expression is None or not is_of_time(expression):
            return None
        return _Clock(expression).time_of(value)

    def longest_ns(self, source: Input, column: str, steps: int) -> int | None:
        """Return the longest time, in ns, in which a column rises by at most ``steps``.

        None if the column of ``source`` is not an increasing function of packet times.
        """
        expression = self._columns.of(source).get(column)
        if expression is None or not is_of_time(expression):
            return None
        clock = _Clock(expression)
        value = clock.value(_LATEST_NS // 2)
        if value is None:
            return None
        end, begin = clock.time_of(value + 1), clock.time_of(value - steps)
        return None if end is None or begin is None else end - 1 - begin

    def _epoch(self, node: HftaNode) -> Expression | None:
        """Return the epoch of an operator over packet fields; None if it has none."""
        match node:
            case AggregationNode() | RunningNode() | SampleNode():
                epoch = by_name(node.keys)[node.epoch]
            case JoinNode():
                # An interval join has the epochs of its first side.
                epoch = node.epochs[0 if node.interval is None else first_side(node.kind)]
            case MergeNode():
                return self._columns.of(node.inputs[0]).get(node.on[0])
            case TopNode() | WindowNode():
                epoch = node.epoch_expression
            case _:
                return None
        return over_packets(epoch, [self._columns.of(each) for each in node_inputs(node)])


@dataclass(slots=True)
class _Clock:
    """An epoch as an increasing function of time, and its inverse.

    Most epochs have the same length, so the inverse first tries the time that the last two
    inversions predict. It is asked for one epoch many times: watermarks rise less often than they
    are written down.
    """

    epoch: Expression
    _known: tuple[int, int] | None = None
    _length_ns: int = 0

    def time_of(self, epoch: int) -> int | None:
        known, known_ns = self._known or (0, 0)
        if self._known is not None and epoch == known:
            return known_ns
        guess_ns = known_ns + (epoch - known) * self._length_ns
        if not (self._length_ns and self._begins(epoch, guess_ns)):
            found = self._search(epoch)
            if found is None:
                return None
            guess_ns = found
            following = self._search(epoch + 1)
            self._length_ns = following - found if following is not None else 0
        self._known = epoch, guess_ns
        return guess_ns

    def _begins(self, epoch: int, time_ns: int) -> bool:
        at, before = self.value(time_ns), self.value(time_ns - 1)
        return at is not None and before is not None and before < epoch <= at

    def _search(self, epoch: int) -> int | None:
        early, late = -1, _LATEST_NS
        while early + 1 < late:
            middle = (early + late) // 2
            value = self.value(middle)
            if value is None:
                return None
            if value >= epoch:
                late = middle
            else:
                early = middle
        return late if self._begins(epoch, late) else None

    def value(self, time_ns: int) -> int | None:
        """Return the epoch of a time; None if it cannot be computed."""

        def leaf(part: PacketField | Column) -> Value:
            return _FIELDS[part.name](time_ns)

        value = evaluate(self.epoch, leaf) if 0 <= time_ns <= _LATEST_NS else None
        return value if isinstance(value, int) else None
