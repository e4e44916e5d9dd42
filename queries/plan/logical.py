"""The logical plan: a tree of operators for each query, typed and resolved.

Leaves of expressions above a ``Scan`` are ``PacketField``, also with a ``Filter`` in between; above
every other node they are ``Column`` of the input directly below (``Column.input`` numbers the
inputs of a node that has several).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import NamedCall
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program_sampling import SamplingHint
    from gscope.queries.plan.row_order import Order
    from gscope.queries.plan.sample_columns import SampleColumn
    from gscope.queries.plan.windows.window import Window


@dataclass(frozen=True, slots=True)
class Scan:
    """The packets of a protocol on some interfaces.

    Attributes:
        protocol: the name of the protocol.
        interfaces: the interfaces that are read; () for any.
        membership: the condition that makes a packet one of the protocol; None for all packets.
        schema: the fields of the protocol.
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
class AggregateCall(NamedCall):
    """One aggregate of a grouping; ``function`` names its entry in ``catalog/aggregates.py``."""


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
    """The union of inputs with the same columns, ordered on one temporal column of each.

    Attributes:
        inputs: at least two.
        on: for each input the name of the column it is ordered on.
        slack: by how much a tuple may be late and still be merged, in the unit of that column.
        schema: the columns of the first input.
    """

    inputs: tuple[Node, ...]
    on: tuple[str, ...]
    slack: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class RunningGroupBy:
    """Groups by keys that live across epochs until ``closing`` holds (CLOSING_WHEN).

    Its columns are the keys, the epoch among them, then the aggregates. The keys other than the
    epoch identify a group. At the end of each epoch every live group emits a row.

    Attributes:
        epoch: the name of the temporal key.
        closing: the condition over the columns of keys and aggregates. True deletes the group at
            the end of an epoch; false or NULL keeps it: plain aggregates then start again, running
            ones go on.
    """

    input: Node
    keys: tuple[NamedExpression, ...]
    epoch: str
    aggregates: tuple[AggregateCall, ...]
    closing: Expression
    schema: Schema


@dataclass(frozen=True, slots=True)
class WindowGroupBy:
    """Groups by window and keys over ``[RANGE …]`` or ``[SLICES …]``.

    Its columns are ``WINDOW_START``, ``WINDOW_END`` (of ``plan/windows/columns.py``), the keys,
    then the aggregates. A window without tuples has no row.

    Attributes:
        window: the windows, in the unit of ``on``.
        on: the ordering column, over the input: an INT that never falls.
        unit_ns: the nanoseconds of a unit of ``on`` where it is the clock, so that the columns of
            the window are TIMESTAMP; None elsewhere, where they are INT in the unit of ``on``.
    """

    input: Node
    window: Window
    on: Expression
    unit_ns: int | None
    keys: tuple[NamedExpression, ...]
    aggregates: tuple[AggregateCall, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Interval:
    """How far the epoch of a join's right side may be from that of its left, in the epochs' unit.

    Attributes:
        least: the least right epoch - left epoch of a pair; below 0 if the right tuple may come
            first.
        most: the greatest right epoch - left epoch of a pair.
    """

    least: int
    most: int

    @property
    def width(self) -> int:
        """The distance between both ends."""
        return self.most - self.least


def first_side(kind: JoinKind) -> int:
    """Return the side of an interval join whose rows are answered one epoch after the other.

    A row of this side meets all its partners at once, so it is then known whether it has any.
    """
    return 1 if kind is JoinKind.RIGHT_OUTER else 0


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of tuples of two inputs with equal keys and with equal or nearby epochs.

    Expressions over one side read ``Column`` with ``input`` 0 (left) or 1 (right). Predicates on
    one side are a ``Filter`` below the join. The columns above a join are columns of its schema
    (``input`` 0).

    Attributes:
        kind: INNER, LEFT_OUTER, RIGHT_OUTER or OUTER.
        epochs: the temporal expression of each side; those of a pair are equal or within
            ``interval``, which bounds the state.
        keys: further pairs of expressions, left and right, that must be equal; NULL equals nothing.
        residual: the other conditions on a pair, over both sides; a pair that fails them does
            not match.
        columns: the columns of the result, over both sides; those of a missing side are NULL.
        interval: by how much the epochs of a pair may differ, which the residual tests too; None if
            they must be equal.
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
    """A table in a CSV file, read again when the file changes.

    Attributes:
        name: the name of its query.
        path: the absolute path of the file.
        schema: the columns, in the order of the file.
    """

    name: str
    path: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class WatchlistJoin:
    """The tuples of a stream, each with every row of a table that matches it.

    Tuples pass in the order in which they arrive. Expressions over both sides read ``Column`` with
    ``input`` 0 (the stream) or 1 (the table).

    Attributes:
        keys: pairs of expressions, of the stream and of the table, that must be equal; NULL equals
            nothing.
        residual: the other conditions, over both sides.
        columns: the columns of the result, over both sides.
    """

    input: Node
    watchlist: Watchlist
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema


Node = (
    Scan
    | QueryScan
    | Filter
    | Project
    | GroupBy
    | RunningGroupBy
    | WindowGroupBy
    | SampleGroupBy
    | Merge
    | Join
    | WatchlistJoin
)


@dataclass(frozen=True, slots=True)
class LogicalQuery:
    """A query and its plan.

    Attributes:
        is_external: whether the result is delivered even if other queries read it (``visibility
            'external'``).
        text: the query as canonical text, for explain.
        meaning: the same with the expressions of its aliases in their place; "" if it uses none.
        order: the order of the rows of ``root``, and how many of them are kept; None for the order
            of decision 28 and all rows. Its hidden columns are in ``schema``; a query that reads
            this one sees the others.
        warnings: reports on parts of it that can do nothing.
        sampling: what it says about its sampling; None if it says nothing.
        sample_columns: its columns that describe a sample.
    """

    name: str
    root: Node
    schema: Schema
    is_external: bool
    text: str
    meaning: str = ""
    order: Order | None = None
    warnings: tuple[str, ...] = ()
    sampling: SamplingHint | None = None
    sample_columns: tuple[SampleColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A query set, each query before those that read it.

    Attributes:
        interfaces: the names of all interfaces, in order; () if they are unknown.
        queries: the queries.
        saved_packets: the queries whose DEFINE has ``save_packets``, each with the file.
    """

    interfaces: tuple[str, ...]
    queries: tuple[LogicalQuery, ...]
    saved_packets: tuple[tuple[str, str], ...] = ()
