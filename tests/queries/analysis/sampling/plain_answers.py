"""The rows of every node of a plan in plain loops, each with the packets that contributed to it.

It shares no code with the analysis of sampling: that a sample leaves a node whole is read off the
rows themselves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.queries.analysis.sampling.plain_times import windows_with

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.running import RUNNING
from gscope.queries.expressions.expressions import Column, Literal, PacketField
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WindowGroupBy,
)
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.logical import AggregateCall, LogicalPlan, Node

Packet = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A row, and the packets that contributed to it, each with the number of its leaf."""

    values: dict[str, Any]
    packets: frozenset[tuple[int, int]]


@dataclass
class PlainAnswers:
    """The rows of the queries of a plan over some packets.

    Attributes:
        plan: the queries.
        packets: the packets.
        keeps: whether a leaf, by its number from left to right, keeps a packet.
        scaled: for each grouping, from left to right and lower ones first, the aggregates that are
            multiplied by ``factor``.
        factor: 1/rate.
        last_epoch: the last epoch of the packets, for groups that live across epochs.
        rows: the rows of each query, once for each time that it is read.
    """

    plan: LogicalPlan
    packets: Sequence[Packet]
    keeps: Callable[[int, Packet], bool] = lambda _leaf, _packet: True
    scaled: Sequence[Sequence[str]] = ()
    factor: int = 1
    last_epoch: int = 0
    rows: list[tuple[str, list[Row]]] = field(default_factory=list)
    _leaves: int = 0
    _groupings: int = 0

    def answer(self, query: str) -> list[Row]:
        """Return the rows of a query."""
        root = next(each.root for each in self.plan.queries if each.name == query)
        rows = self._of(root)
        self.rows.append((query, rows))
        return rows

    def rows_of(self, node: Node) -> list[Row]:
        """Return the rows of a node."""
        return self._of(node)

    def _of(self, node: Node) -> list[Row]:
        match node:
            case Scan():
                return self._scanned(node)
            case QueryScan():
                return self.answer(node.query)
            case Filter():
                return [r for r in self._of(node.input) if _value(node.predicate, r) is True]
            case Project():
                return [
                    Row({c.name: _value(c.expression, row) for c in node.columns}, row.packets)
                    for row in self._of(node.input)
                ]
            case GroupBy():
                return self._grouped(node)
            case WindowGroupBy():
                return self._in_windows(node)
            case RunningGroupBy():
                return self._living(node)
            case Merge():
                names = node.schema.names
                return [
                    Row(
                        {
                            n: row.values[own]
                            for n, own in zip(names, each.schema.names, strict=True)
                        },
                        row.packets,
                    )
                    for each in node.inputs
                    for row in self._of(each)
                ]
            case Join():
                return self._joined(node)
            case _:
                raise TypeError(node)

    def _scanned(self, scan: Scan) -> list[Row]:
        leaf, self._leaves = self._leaves, self._leaves + 1
        return [
            Row(packet, frozenset({(leaf, number)}))
            for number, packet in enumerate(self.packets)
            if self.keeps(leaf, packet)
            and (
                scan.membership is None or _value(scan.membership, Row(packet, frozenset())) is True
            )
        ]

    def _grouped(self, group: GroupBy) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self._of(group.input):
            groups.setdefault(_key(group.keys, row), []).append(row)
        scaled = self._next_scaled()
        names = [key.name for key in group.keys]
        return [self._group(group, names, key, rows, scaled) for key, rows in groups.items()]

    def _in_windows(self, group: WindowGroupBy) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self._of(group.input):
            for window in windows_with(group.window, _value(group.on, row)):
                groups.setdefault((*window, *_key(group.keys, row)), []).append(row)
        scaled = self._next_scaled()
        names = [WINDOW_START, WINDOW_END, *(key.name for key in group.keys)]
        return [self._group(group, names, key, rows, scaled) for key, rows in groups.items()]

    def _living(self, group: RunningGroupBy) -> list[Row]:
        epochs = next(key for key in group.keys if key.name == group.epoch)
        keys = [key for key in group.keys if key is not epochs]
        groups: dict[tuple[Any, ...], dict[int, list[Row]]] = {}
        for row in self._of(group.input):
            rows = groups.setdefault(_key(keys, row), {})
            rows.setdefault(_value(epochs.expression, row), []).append(row)
        self._next_scaled()
        names = [group.epoch, *(key.name for key in keys)]
        found: list[Row] = []
        for group_key, rows in groups.items():
            life: list[list[Row]] = []
            for epoch in range(min(rows), self.last_epoch + 1):
                if life or epoch in rows:
                    life.append(rows.get(epoch, []))
                    values = dict(zip(names, (epoch, *group_key), strict=True))
                    values |= {call.name: _of_life(call, life) for call in group.aggregates}
                    packets = (row.packets for part in life for row in part)
                    found.append(Row(values, frozenset().union(*packets)))
                    if _value(group.closing, found[-1]) is True:
                        life = []
        return found

    def _next_scaled(self) -> Sequence[str]:
        """Return what the next grouping scales."""
        number, self._groupings = self._groupings, self._groupings + 1
        return self.scaled[number] if self.scaled else ()

    def _group(
        self,
        group: GroupBy | WindowGroupBy,
        names: Sequence[str],
        key: tuple[Any, ...],
        rows: Sequence[Row],
        scaled: Sequence[str],
    ) -> Row:
        values = dict(zip(names, key, strict=True))
        for call in group.aggregates:
            result = _aggregated(call, rows)
            is_scaled = call.name in scaled and result is not None
            values[call.name] = result * self.factor if is_scaled else result
        return Row(values, frozenset().union(*(row.packets for row in rows)))

    def _joined(self, join: Join) -> list[Row]:
        left, right = (self._of(each) for each in join.inputs)
        found = []
        alone = set(range(len(right)))
        for one in left:
            matches = [n for n, other in enumerate(right) if _matches(join, one, other)]
            alone -= set(matches)
            found += [_pair(join, one, right[n]) for n in matches]
            if not matches and join.kind in (JoinKind.LEFT_OUTER, JoinKind.OUTER):
                found.append(_pair(join, one, None))
        if join.kind in (JoinKind.RIGHT_OUTER, JoinKind.OUTER):
            found += [_pair(join, None, right[n]) for n in sorted(alone)]
        return found


def counted(rows: Sequence[Row]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return rows as a multiset of values."""
    return Counter(tuple(sorted(row.values.items(), key=lambda item: item[0])) for row in rows)


def _key(keys: Sequence[NamedExpression], row: Row) -> tuple[Any, ...]:
    return tuple(_value(each.expression, row) for each in keys)


def _arguments(call: AggregateCall, rows: Sequence[Row]) -> list[Any]:
    return [_value(call.arguments[0], row) if call.arguments else True for row in rows]


def _constants(call: AggregateCall) -> list[Any]:
    return [a.value for a in call.arguments[1:] if isinstance(a, Literal)]


def _aggregated(call: AggregateCall, rows: Sequence[Row]) -> Any:
    return AGGREGATES[call.function].evaluate(_arguments(call, rows), *_constants(call))


def _of_life(call: AggregateCall, life: Sequence[Sequence[Row]]) -> Any:
    """Return an aggregate of the last epoch, or a running one of the life of a group."""
    if call.function not in RUNNING:
        return _aggregated(call, life[-1])
    epochs = [_arguments(call, rows) for rows in life]
    return RUNNING[call.function].evaluate(epochs, *_constants(call))


def _value(expression: Expression, row: Row) -> Any:
    return evaluate(expression, lambda leaf: row.values.get(leaf.name))


def _of_pair(expression: Expression, rows: Sequence[Row | None]) -> Any:
    def leaf(column: PacketField | Column) -> Any:
        assert isinstance(column, Column)
        row = rows[column.input]
        return None if row is None else row.values[column.name]

    return evaluate(expression, leaf)


def _matches(join: Join, one: Row, other: Row) -> bool:
    pairs = (join.epochs, *join.keys) if join.interval is None else join.keys
    for left, right in pairs:
        values = _of_pair(left, (one, other)), _of_pair(right, (one, other))
        if None in values or values[0] != values[1]:
            return False
    return join.residual is None or _of_pair(join.residual, (one, other)) is True


def _pair(join: Join, one: Row | None, other: Row | None) -> Row:
    values = {c.name: _of_pair(c.expression, (one, other)) for c in join.columns}
    packets = [row.packets for row in (one, other) if row is not None]
    return Row(values, frozenset().union(*packets))


def packet_values(packet: Packet, terms: Sequence[Expression]) -> tuple[Any, ...]:
    """Return the values of terms over the fields of a packet."""
    return tuple(evaluate(term, lambda leaf: packet[leaf.name]) for term in terms)
