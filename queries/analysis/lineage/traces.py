"""Where the value of a column comes from, for each stream of packets below it.

``Values`` of a column are, for some of the streams below, the expression over packet fields that
has the column's value in every packet that contributes to a row. A column of one side of a join is
traced to the other side through the pairs that the join equates.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    PacketField,
    walk,
)
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
from gscope.queries.plan.trees import by_name, inputs_of, substitute
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Values
    from gscope.queries.expressions.expressions import NamedExpression

MAX_PARTS = 500
"""The most parts of a value: columns that use each other twice make 2ⁿ."""

MISSING: dict[JoinKind, frozenset[int]] = {
    JoinKind.INNER: frozenset(),
    JoinKind.LEFT_OUTER: frozenset({1}),
    JoinKind.RIGHT_OUTER: frozenset({0}),
    JoinKind.OUTER: frozenset({0, 1}),
}
"""The sides of a join that a row may lack."""


@dataclass(slots=True)
class Traces:
    """The values of the columns of the nodes of a tree, each computed once."""

    _columns: dict[TreeNode, dict[str, Values]]

    def __init__(self) -> None:
        self._columns = {}

    def columns(self, tree: TreeNode) -> dict[str, Values]:
        """Return the values of the output columns of a node, by name."""
        if tree not in self._columns:
            self._columns[tree] = self._traced(tree)
        return self._columns[tree]

    def values(self, expression: Expression, inputs: Sequence[TreeNode]) -> Values:
        """Return the values of an expression over the columns of ``inputs``.

        They are those on the streams from which all its columns come.
        """
        if any(isinstance(part, PacketField) for part in walk(expression)):
            (packets,) = inputs
            return dict.fromkeys(packets.streams, expression)
        columns = [part for part in walk(expression) if isinstance(part, Column)]
        if not columns:
            return {}
        known = [self.columns(inputs[c.input]).get(c.name, {}) for c in columns]
        found: Values = {
            stream: _substituted(
                expression, {c: values[stream] for c, values in zip(columns, known, strict=True)}
            )
            for stream in known[0]
            if all(stream in values for values in known)
        }
        above_join = self._above_join(expression, inputs)
        if len(above_join) > len(found):
            found = above_join
        return {stream: value for stream, value in found.items() if _is_small(value)}

    def _above_join(self, expression: Expression, inputs: Sequence[TreeNode]) -> Values:
        """Return the values of an expression that a join equates as a whole: ``srcPort & 15``."""
        tree = inputs[0]
        while isinstance(tree.node, Filter | QueryScan) and tree.inputs:
            (tree,) = tree.inputs
        if len(inputs) > 1 or not isinstance(tree.node, Join):
            return {}
        return self._of_join(substitute(expression, by_name(tree.node.columns)), tree)

    def pairs(self, tree: TreeNode) -> list[Values]:
        """Return the values of the pairs that a join equates, of those traced to all streams."""
        join = tree.node
        assert isinstance(join, Join)
        found = (self._of_both(pair, tree) for pair in join.keys)
        return [values for values in found if set(values) == set(tree.streams)]

    def _traced(self, tree: TreeNode) -> dict[str, Values]:
        node = tree.node
        match node:
            case Scan():
                return {
                    c.name: {tree.stream: PacketField(c.name, c.type, c.is_nullable)}
                    for c in node.schema.columns
                }
            case QueryScan() if not tree.inputs:
                return {
                    c.name: {tree.stream: Column(c.name, c.type, c.is_nullable)}
                    for c in node.schema.columns
                }
            case QueryScan() | Filter():
                return self.columns(tree.inputs[0])
            case Project(columns=columns):
                return self._of_named(columns, tree)
            case GroupBy() | RunningGroupBy() | WindowGroupBy() | SampleGroupBy():
                return self._of_named(node.keys, tree)
            case Merge():
                return self._of_merge(tree)
            case Join():
                return {c.name: self._of_join(c.expression, tree) for c in node.columns}
            case WatchlistJoin():
                return {c.name: self._of_watchlist(c.expression, tree) for c in node.columns}
            case _:
                assert_never(node)

    def _of_named(self, named: Sequence[NamedExpression], tree: TreeNode) -> dict[str, Values]:
        return {each.name: self.values(each.expression, tree.inputs) for each in named}

    def _of_merge(self, tree: TreeNode) -> dict[str, Values]:
        return {
            name: _agreed(
                (self.columns(each)[each.node.schema.names[place]], each.streams)
                for each in tree.inputs
            )
            for place, name in enumerate(tree.node.schema.names)
        }

    def _of_join(self, expression: Expression, tree: TreeNode) -> Values:
        join = tree.node
        assert isinstance(join, Join)
        match expression:
            case Call("coalesce", (one, other)) if _are_equal(one, other, join):
                return self._of_both((one, other), tree)
        sides = inputs_of(expression)
        if len(sides) != 1:
            return {}
        (side,) = sides
        twin = None
        if side not in MISSING[join.kind]:
            twin = _rewritten(expression, [_ordered(pair, side) for pair in _equated(join)])
        return self._of_both((expression,) if twin is None else (expression, twin), tree)

    def _of_both(self, sides: Iterable[Expression], tree: TreeNode) -> Values:
        """Return the values of equal expressions over both sides of a join, or over only one."""
        known: dict[int, Values] = {}
        for expression in sides:
            for side in inputs_of(expression):
                known[side] = self.values(expression, tree.inputs)
        return _agreed((known.get(n, {}), each.streams) for n, each in enumerate(tree.inputs))

    def _of_watchlist(self, expression: Expression, tree: TreeNode) -> Values:
        join = tree.node
        assert isinstance(join, WatchlistJoin)
        if 1 in inputs_of(expression):
            pairs = [(table, stream) for stream, table in join.keys]
            rewritten = _rewritten(expression, pairs, side=1)
            return {} if rewritten is None else self.values(rewritten, tree.inputs)
        return self.values(expression, tree.inputs)


def can_be_missing(expression: Expression, join: Join) -> bool:
    """Return whether a column is NULL, or that of the other side, where a row has no partner."""
    match expression:
        case Call("coalesce", (one, other)) if _are_equal(one, other, join):
            return False
    return bool(inputs_of(expression) & MISSING[join.kind])


def _are_equal(one: Expression, other: Expression, join: Join) -> bool:
    pairs = {(_plain(left), _plain(right)) for left, right in _equated(join)}
    return (_plain(one), _plain(other)) in pairs or (_plain(other), _plain(one)) in pairs


def _is_small(expression: Expression) -> bool:
    return next(islice(walk(expression), MAX_PARTS, None), None) is None


def _equated(join: Join) -> list[tuple[Expression, Expression]]:
    """Return the pairs of expressions that are equal in every pair of rows, epochs among them."""
    return [*join.keys, *([join.epochs] if join.interval is None else [])]


def _ordered(pair: tuple[Expression, Expression], side: int) -> tuple[Expression, Expression]:
    return pair if side == 0 else (pair[1], pair[0])


def _rewritten(
    expression: Expression, pairs: Sequence[tuple[Expression, Expression]], side: int | None = None
) -> Expression | None:
    """Return ``expression`` with the first of each pair replaced by the second.

    Args:
        expression: an expression over columns.
        pairs: equal expressions.
        side: the side of which no column may remain; None for the only side of ``expression``.

    Returns:
        The expression, or None if columns of the side remain.
    """
    replaced = {_plain(old): new for old, new in pairs}

    def change(part: Expression) -> Expression | None:
        if _plain(part) in replaced:
            return replaced[_plain(part)]
        match part:
            case Literal():
                return part
            case Column(input=number):
                return part if side is not None and number != side else None
            case Call():
                arguments = [change(argument) for argument in part.arguments]
                if any(argument is None for argument in arguments):
                    return None
                return _rebuilt(part, [a for a in arguments if a is not None])
        return None

    return change(expression)


def _substituted(expression: Expression, columns: Mapping[Expression, Expression]) -> Expression:
    match expression:
        case Column():
            return columns[expression]
        case Call():
            return _rebuilt(expression, [_substituted(a, columns) for a in expression.arguments])
    return expression


def _rebuilt(call: Call, arguments: Sequence[Expression]) -> Call:
    """Return a call with other arguments, which may be NULL where the old ones could not."""
    entry = FUNCTIONS[call.function]
    return Call(call.function, tuple(arguments), call.type, entry.is_nullable(arguments))


def _agreed(inputs: Iterable[tuple[Values, Sequence[str]]]) -> Values:
    """Return the values on the streams of several inputs.

    Packets of one stream come through all inputs that have it. If they are not known to have one
    value in all of them, none is returned for the stream.
    """
    found: dict[str, set[Expression | None]] = {}
    for values, streams in inputs:
        for stream in streams:
            found.setdefault(stream, set()).add(values.get(stream))
    return {
        stream: value
        for stream, (value, *others) in found.items()
        if value is not None and not others
    }


def _plain(expression: Expression) -> Expression:
    """Return ``expression`` without what it says about NULL, so that equal ones can be found."""
    match expression:
        case Column(name, kind, _, number):
            return Column(name, kind, is_nullable=False, input=number)
        case Call(function, arguments, kind, _):
            return Call(function, tuple(map(_plain, arguments)), kind, is_nullable=False)
    return expression
