"""The logical plan: a tree of operators for each query, typed and resolved.

Leaves of expressions above a ``Scan`` are ``PacketField``, also with a ``Filter`` in between; above every
other node they are ``Column`` of the input directly below (``Column.input`` numbers the inputs of a node that
has several).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.queries.gsql.nodes import JoinKind

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.expressions.types import GsqlType


@dataclass(frozen=True, slots=True)
class Scan:
    """The packets of a protocol on some interfaces.

    Attributes:
        membership: what a packet must satisfy to belong to the protocol; None for all packets.
    """

    protocol: str
    interfaces: tuple[str, ...]
    membership: Expression | None
    schema: Schema


@dataclass(frozen=True, slots=True)
class QueryScan:
    """The result of another query."""

    query: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Filter:
    """Tuples for which ``predicate`` is true; NULL rejects."""

    input: Node
    predicate: Expression
    schema: Schema


@dataclass(frozen=True, slots=True)
class Project:
    """New columns computed from the input's."""

    input: Node
    columns: tuple[NamedExpression, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a ``GroupBy``: ``function`` names its entry in ``catalog/aggregates.py``."""

    name: str
    function: str
    arguments: tuple[Expression, ...]
    type: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Groups by epoch and keys; its columns are the keys, then the aggregates.

    Attributes:
        epoch: the name of the temporal key that closes groups.
    """

    input: Node
    keys: tuple[NamedExpression, ...]
    epoch: str
    aggregates: tuple[AggregateCall, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Merge:
    """The union of inputs of like schema, ordered on one temporal column each."""

    inputs: tuple[Node, ...]
    on: tuple[str, ...]
    slack: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class RunningGroupBy:
    """Groups by keys that live across epochs until ``closing`` holds (CLOSING_WHEN).

    Its columns are the keys, the epoch among them, then the aggregates. Groups are told apart by the
    keys without the temporal ones. At the end of each epoch every live group gives a row.

    Attributes:
        epoch: the name of the temporal key.
        closing: over the columns of keys and aggregates; true drops the group at the end of an epoch,
            false or NULL keeps it: plain aggregates then begin anew, running ones go on.
    """

    input: Node
    keys: tuple[NamedExpression, ...]
    epoch: str
    aggregates: tuple[AggregateCall, ...]
    closing: Expression
    schema: Schema


@dataclass(frozen=True, slots=True)
class Interval:
    """How far the epoch of a join's right side may be from that of its left, in the epochs' unit.

    Attributes:
        least: the smallest value of right epoch - left epoch in a pair; below 0 where the right tuple
            may come first.
        most: the largest.
    """

    least: int
    most: int

    @property
    def width(self) -> int:
        """The distance between the two ends."""
        return self.most - self.least


def first_side(kind: JoinKind) -> int:
    """The side of an interval join whose rows are answered one epoch after the other.

    A row of it meets all its partners at once, so it is also known then whether it has any.
    """
    return 1 if kind is JoinKind.RIGHT_OUTER else 0


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of tuples of two inputs with equal keys, and with equal epochs or epochs in an interval.

    Expressions of one side read ``Column`` with ``input`` 0 (left) or 1 (right). Predicates of one side
    are a ``Filter`` below the join. The columns above a join are columns of its schema (``input`` 0).

    Attributes:
        kind: INNER, LEFT_OUTER, RIGHT_OUTER or OUTER.
        epochs: the temporal expression of either side; pairs have them equal or within ``interval``,
            which bounds the state.
        keys: further expressions that must be equal, left and right; NULL equals nothing.
        residual: what else a pair must satisfy, over both sides; a pair it does not satisfy is no match.
        columns: of the result, over both sides; a side that is missing reads as NULL.
        interval: where the epochs of a pair may differ, by how much; the residual tests it too. None
            where they are equal.
    """

    kind: JoinKind
    inputs: tuple[Node, Node]
    epochs: tuple[Expression, Expression]
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Watchlist:
    """A table in a CSV file, its fields in the order of the schema; read again when it changes."""

    name: str
    path: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class WatchlistJoin:
    """The tuples of a stream, each with every row of a table that fits; they pass as they come.

    Expressions over both read ``Column`` with ``input`` 0 (the stream) or 1 (the table).

    Attributes:
        keys: what must be equal, of the stream and of the table; NULL equals nothing.
        residual: what else must hold, over both.
        columns: of the result, over both.
    """

    input: Node
    watchlist: Watchlist
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema


Node = Scan | QueryScan | Filter | Project | GroupBy | RunningGroupBy | Merge | Join | WatchlistJoin


@dataclass(frozen=True, slots=True)
class LogicalQuery:
    """A query and its plan.

    Attributes:
        is_external: marked ``visibility 'external'``: delivered even when other queries read it.
        text: the query as printed, for explain.
    """

    name: str
    root: Node
    schema: Schema
    is_external: bool
    text: str


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A query set, queries before those who read them."""

    interfaces: tuple[str, ...]
    queries: tuple[LogicalQuery, ...]
