"""The rows that logical plans of joins give, computed from what their nodes say they mean."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField, Value
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import Filter, GroupBy, Join, Node, Project, QueryScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = dict[str, Value]
_TRUE = Literal(True, GsqlType.BOOL)


def rows_of(node: Node, streams: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows of a plan over ``streams``.

    A join gives them epoch by epoch, within one in the worst order.
    """
    match node:
        case QueryScan():
            return list(streams[node.query])
        case Filter():
            rows = rows_of(node.input, streams)
            return [row for row in rows if value(node.predicate, row, {}) is True]
        case Project():
            rows = rows_of(node.input, streams)
            return [{c.name: value(c.expression, row, {}) for c in node.columns} for row in rows]
        case GroupBy():
            return _groups(node, rows_of(node.input, streams))
        case Join():
            left, right = (rows_of(each, streams) for each in node.inputs)
            return _joined(node, left, right)
        case _:
            raise AssertionError(node)


def _groups(node: GroupBy, rows: Sequence[Row]) -> list[Row]:
    groups: dict[tuple[Value, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(value(key.expression, row, {}) for key in node.keys)].append(row)
    functions = {"min": min, "max": max}
    made = []
    for key, members in groups.items():
        group = dict(zip((k.name for k in node.keys), key, strict=True))
        for call in node.aggregates:
            (argument,) = call.arguments
            found = [v for row in members if isinstance(v := value(argument, row, {}), int)]
            group[call.name] = functions[call.function](found, default=None)
        made.append(group)
    return made


def _joined(join: Join, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    by_epoch: dict[int, list[Row]] = defaultdict(list)
    matched = set()
    for one in left:
        has_match = False
        for number, other in enumerate(right):
            if _is_pair(join, one, other):
                has_match = True
                matched.add(number)
                by_epoch[_home(join, one, other)].append(_output(join, one, other))
        if not has_match and join.kind in (JoinKind.LEFT_OUTER, JoinKind.OUTER):
            by_epoch[_home(join, one, None)].append(_output(join, one, {}))
    if join.kind in (JoinKind.RIGHT_OUTER, JoinKind.OUTER):
        for number, other in enumerate(right):
            if number not in matched:
                by_epoch[_home(join, None, other)].append(_output(join, {}, other))
    return [row for _, rows in sorted(by_epoch.items()) for row in sorted(rows, key=_descending)]


def _descending(row: Row) -> list[int]:
    return [-v if isinstance(v, int) else 0 for v in row.values()]


def _is_pair(join: Join, left: Row, right: Row) -> bool:
    equal = join.keys if join.interval is not None else (join.epochs, *join.keys)
    for one, other in equal:
        first, second = value(one, left, right), value(other, left, right)
        if first is None or first != second:
            return False
    if join.interval is not None:
        distance = _epoch(join.epochs[1], left, right) - _epoch(join.epochs[0], left, right)
        is_near = join.interval.least <= distance <= join.interval.most
        assert is_near or value(join.residual or _TRUE, left, right) is not True
    return join.residual is None or value(join.residual, left, right) is True


def _home(join: Join, left: Row | None, right: Row | None) -> int:
    """The epoch that a row is answered with.

    Of a RIGHT interval join the right's, else the left's.
    """
    first = 1 if join.interval is not None and join.kind is JoinKind.RIGHT_OUTER else 0
    if (left, right)[first] is not None:
        return _epoch(join.epochs[first], left or {}, right or {})
    behind = join.interval.least if join.interval is not None else 0
    return _epoch(join.epochs[1 - first], left or {}, right or {}) - behind


def _epoch(expression: Expression, left: Row, right: Row) -> int:
    found = value(expression, left, right)
    assert isinstance(found, int)
    return found


def _output(join: Join, left: Row, right: Row) -> Row:
    return {c.name: value(c.expression, left, right) for c in join.columns}


def value(expression: Expression, left: Row, right: Row) -> Value:
    def leaf(part: PacketField | Column) -> Value:
        assert isinstance(part, Column)
        return (left, right)[part.input].get(part.name)

    return evaluate(expression, leaf)
