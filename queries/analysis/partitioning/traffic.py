"""How many rows each operator makes, and how long they are: from a run's counts, or by default.

Rates are rows for each packet. Where no counts are given, an operator is assumed to make a fixed
share of the rows that it reads; the shares are those of the constants below. They decide between
sets only where sets have different operators in common, and measured counts replace them.

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008), §4.2.1
(selectivity factors and sizes of tuples).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, assert_never

from gscope.queries.expressions.expressions import PacketField, walk
from gscope.queries.expressions.types import GsqlType
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
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.analysis.partitioning.operators import Operator
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall, Node

SELECTED = 1 / 3
"""The share of its rows that a predicate, or a table to match, is assumed to let through."""

GROUPS = 1 / 10
"""The groups that a grouping is assumed to make of each row."""

_WIDTHS = {GsqlType.BOOL: 1, GsqlType.IP: 16, GsqlType.STRING: 32, GsqlType.NULL: 1}
_WIDTH = 8
"""Bytes of a value of any other type."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run counted.

    Attributes:
        packets: the packets that it received.
        rows: the rows of its queries, by name.
    """

    packets: int
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that an operator makes for each packet.

    Attributes:
        number: their number.
        width: the bytes of a row.
        read: the number of rows that the operator reads.
    """

    number: float
    width: int
    read: float

    @property
    def size(self) -> float:
        """Their bytes."""
        return self.number * self.width

    def partials(self, hosts: int) -> float:
        """Return the bytes of the groups' partial rows if packets are divided evenly by chance.

        A group of k rows is on n · (1 - (1 - 1/n)^k) of n hosts on average.
        """
        if not self.number:
            return 0.0
        of_group = max(self.read / self.number, 1.0)
        missed: float = (1 - 1 / hosts) ** of_group
        return self.size * hosts * (1 - missed)

    def first(self, hosts: int) -> float:
        """Return the bytes of the first rows if each host sends as many as there are in all.

        Hosts do not send more rows than there are without the LIMIT.
        """
        return min(self.number * hosts, self.read) * self.width


def rows_of(operators: Sequence[Operator], counts: Counts | None = None) -> list[Rows]:
    """Return the rows of each operator, in order."""
    measured = {} if counts is None else _measured(operators, counts)
    made: list[Rows] = []
    for place, operator in enumerate(operators):
        inputs = [made[number] for number in operator.inputs]
        number = measured.get(place, _number(operator.node, inputs))
        read = sum(each.number for each in inputs)
        made.append(Rows(number, _width(operator.node), read))
    return made


def _measured(operators: Sequence[Operator], counts: Counts) -> dict[int, float]:
    """Return the rows of those operators whose rows were counted, by their place.

    They are the roots of queries, and what these read one row for each of their own.
    """
    found: dict[int, float] = {}
    for place, operator in enumerate(operators):
        if operator.is_root and operator.query in counts.rows:
            number = counts.rows[operator.query] / counts.packets
            below = place
            found[below] = number
            # Rows that LIMIT left out were not counted.
            while isinstance(operators[below].node, Project) and operator.order is None:
                (below,) = operators[below].inputs
                found[below] = number
    return found


def _number(node: Node, inputs: Sequence[Rows]) -> float:
    read = sum(each.number for each in inputs)
    match node:
        case Scan():
            return 1.0
        case QueryScan() | Project() | Merge():
            return read
        case Filter() | WatchlistJoin():
            return read * SELECTED
        case GroupBy() | RunningGroupBy() | SampleGroupBy():
            return read * GROUPS
        case WindowGroupBy(window=window):
            return read * GROUPS * window.overlap
        case Join(kind=kind):
            left, right = (each.number for each in inputs)
            return {
                JoinKind.INNER: min(left, right),
                JoinKind.LEFT_OUTER: left,
                JoinKind.RIGHT_OUTER: right,
                JoinKind.OUTER: max(left, right),
            }[kind]
        case _:
            assert_never(node)


def _width(node: Node) -> int:
    """Return the bytes of a row."""
    return sum(_WIDTHS.get(column.type, _WIDTH) for column in node.schema.columns)


def packet_width(reader: Node) -> int:
    """Return the bytes of the fields that a grouping reads of each packet.

    0 for another operator.
    """
    fields = {
        part
        for expression in _read(reader)
        for part in walk(expression)
        if isinstance(part, PacketField)
    }
    return sum(_WIDTHS.get(part.type, _WIDTH) for part in fields)


def _read(node: Node) -> list[Expression]:
    match node:
        case GroupBy(keys=keys, aggregates=calls) | RunningGroupBy(keys=keys, aggregates=calls):
            return [key.expression for key in keys] + _arguments(calls)
        case WindowGroupBy(keys=keys, aggregates=calls, on=on):
            return [on, *(key.expression for key in keys), *_arguments(calls)]
        case SampleGroupBy(keys=keys, sampling=sampling):
            return [key.expression for key in keys] + [v.expression for v in sampling.values]
    return []


def _arguments(calls: Sequence[AggregateCall]) -> list[Expression]:
    return [argument for call in calls for argument in call.arguments]
