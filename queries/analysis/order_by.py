"""ORDER BY and LIMIT: the columns that order the rows of an epoch, and how many are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TemporalError, TypeMismatchError
from gscope.queries.analysis.names.output_columns import OutputColumns
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.did_you_mean import DID_YOU_MEAN, did_you_mean
from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    Literal,
    NamedExpression,
    walk,
)
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.plan.row_order import MAX_LIMIT, ORDER, Order, SortKey
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.expressions.expressions import PacketField
    from gscope.queries.expressions.types import Ordering

    OrderingOf = Callable[[PacketField | Column], Ordering]

_KEY = "$by"


@dataclass(frozen=True, slots=True)
class OrderedColumns:
    """The columns of a SELECT with ORDER BY, hidden ones among them.

    For ``SELECT tb, srcIP … ORDER BY sum(len) DESC, srcIP``:

    Attributes:
        columns: tb, srcIP and ``$by1 := sum_len``.
        keys: ``$by1`` descending, srcIP; with the term of each.
    """

    columns: tuple[NamedExpression, ...]
    keys: tuple[tuple[SortKey, nodes.OrderTerm], ...] = ()

    def expression(self, name: str) -> Expression:
        """Return the expression of the column ``name``."""
        return next(c.expression for c in self.columns if c.name == name)


def order_columns(
    body: nodes.Select, columns: Sequence[NamedExpression], typer: Typer
) -> OrderedColumns:
    """Return the columns of ``body`` and those that ORDER BY adds.

    Args:
        body: the SELECT.
        columns: its columns.
        typer: types expressions over what its columns are computed from.

    Raises:
        GsqlError: a term is wrong.
    """
    outputs = OutputColumns(columns)
    added: list[NamedExpression] = []
    keys: dict[str, tuple[SortKey, nodes.OrderTerm]] = {}
    for term in body.order_by:
        column = _output(term, outputs, typer)
        if isinstance(column, Expression):
            known = (c for c in (*columns, *added) if c.expression == column)
            new = NamedExpression(f"{_KEY}{len(added) + 1}", column)
            column = next(known, new)
            if column is new:
                added.append(new)
        key = SortKey(column.name, term.is_descending, term.has_nulls_first)
        keys.setdefault(key.name, (key, term))
    return OrderedColumns((*columns, *added), tuple(keys.values()))


def _output(
    term: nodes.OrderTerm, outputs: OutputColumns, typer: Typer
) -> NamedExpression | Expression:
    """Return the column of SELECT that a term stands for, or the expression that it is."""
    found = outputs.at(term.expression) or outputs.find(term.expression)
    if found is not None:
        return found

    def known(node: nodes.Expression) -> Expression | None:
        column = outputs.find(node)
        return typer.known(node) if column is None else column.expression

    try:
        expression = replace(typer, known=known).type(term.expression)
    except ResolveError as error:
        if isinstance(term.expression, nodes.Name):
            close = did_you_mean(".".join(term.expression.parts), outputs.names)
            if close.startswith(DID_YOU_MEAN):
                error.remedy = close
        raise
    if isinstance(expression, Literal):
        message = "a constant orders nothing"
        remedy = "write a column, an expression, or the position of a column, such as 2"
        raise TypeMismatchError(message, position=term.position, remedy=remedy)
    return expression


def refuse_aggregate(node: nodes.FunctionCall) -> Expression:
    """Refuse an aggregate in ORDER BY of a query that does not group.

    Raises:
        TypeMismatchError: always.
    """
    message = f"aggregate {node.name} orders groups, but the query does not group"
    raise TypeMismatchError(message, position=node.position, remedy="add GROUP BY")


def refuse_other(name: nodes.Name) -> Expression:
    """Refuse a column in ORDER BY of SELECT DISTINCT that SELECT does not compute.

    Raises:
        ResolveError: always.
    """
    message = f"{'.'.join(name.parts)} is not a column of SELECT DISTINCT"
    remedy = "add it to SELECT: equal rows may differ in it, so it cannot order them"
    raise ResolveError(message, position=name.position, remedy=remedy)


def limit_of(body: nodes.Select, substitutes: Substitutes) -> int | None:
    """Return the number of rows that LIMIT keeps; None without LIMIT.

    Raises:
        GsqlError: it is not a number of rows.
    """
    if body.limit is None:
        return None
    value = substitutes.constant(body.limit)
    if value.type is not GsqlType.INT or not isinstance(value.value, int):
        message = f"LIMIT takes a number of rows, not {value.type.value}"
        raise TypeMismatchError(message, position=body.limit.position, remedy="write LIMIT 10")
    if not 1 <= value.value <= MAX_LIMIT:
        message = f"invalid LIMIT: expected 1 to {MAX_LIMIT:,} rows, got {value.value}"
        remedy = "leave LIMIT out to keep all rows" if value.value > 0 else ""
        raise TypeMismatchError(message, position=body.limit.position, remedy=remedy)
    return value.value


def order_of_groups(
    ordered: OrderedColumns,
    limit: int | None,
    epoch: Column | None,
    shown: Expression | None,
    ordering: OrderingOf,
) -> tuple[tuple[NamedExpression, ...], Order | None]:
    """Return the columns of a grouping, with one that shows the epoch, and the order of its rows.

    Args:
        ordered: its columns.
        limit: how many rows of each epoch are kept.
        epoch: the key that closes groups; None if the whole input is one epoch.
        shown: the group-by term of that key as the query wrote it, over the columns of the groups;
            each epoch has one value of it.
        ordering: returns the ordering of a column of the groups.

    Raises:
        TemporalError: ORDER BY contradicts the order in which epochs end.
    """
    columns = ordered.columns
    if epoch is None:
        keys = tuple(key for key, _ in ordered.keys)
        return columns, Order(keys, limit) if keys or limit is not None else None
    keys = tuple(
        key for key, term in ordered.keys if not _is_epoch(ordered, key, term, {epoch}, ordering)
    )
    if not keys and limit is None:
        return columns, None
    showing = (c for c in columns if c.expression in (epoch, shown))
    name = next((c.name for c in showing if column_schema(c, ordering).ordering.is_temporal), None)
    if name is None:
        columns = (NamedExpression(ORDER, epoch), *columns)
    return columns, Order(keys, limit, name or ORDER)


def order_of_windows(
    ordered: OrderedColumns, limit: int | None, window: tuple[Column, Column], ordering: OrderingOf
) -> tuple[tuple[NamedExpression, ...], Order | None]:
    """Return the columns of groups by window, with one that shows it, and the order of its rows.

    Rows are emitted window by window, so one column always shows the window, if only to delivery.

    Args:
        ordered: the columns of the query.
        limit: how many rows of each window are kept.
        window: the columns with the start and the end of a window.
        ordering: returns the ordering of a column of the groups.

    Raises:
        TemporalError: ORDER BY contradicts the order in which windows end.
    """
    keys = tuple(
        key
        for key, term in ordered.keys
        if not _is_epoch(ordered, key, term, set(window), ordering)
    )
    columns = ordered.columns
    name = next((c.name for c in columns if c.expression in window), None)
    if name is None:
        name, columns = ORDER, (NamedExpression(ORDER, window[1]), *columns)
    return columns, Order(keys, limit, name) if keys or limit is not None else None


def order_of_selection(
    ordered: OrderedColumns, limit: int | None, ordering: OrderingOf, *, is_unbounded: bool
) -> tuple[tuple[NamedExpression, ...], Order | None]:
    """Return the columns of a selection, with one that shows its order, and the order of its rows.

    A selection that is ordered by its time alone keeps the order that it has, so that its rows need
    not wait for the end of the input.

    Args:
        ordered: its columns.
        limit: how many rows are kept.
        ordering: returns the ordering of a leaf.
        is_unbounded: whether the input never ends.

    Raises:
        TemporalError: only the end of the input could complete the answer, and it never ends.
    """
    columns = ordered.columns
    if not ordered.keys:
        head = Order((), limit, is_selection=True)
        return columns, None if limit is None else head
    first, term = ordered.keys[0]
    clock = ordered.expression(first.name)
    found = column_schema(NamedExpression(first.name, clock), ordering).ordering
    is_by_time = found.direction is Direction.INCREASING and not found.band
    if is_by_time and not first.is_descending and len(ordered.keys) == 1:
        columns = tuple(c for c in columns if not c.name.startswith(_KEY))
        leading = next((c for c in columns if _increases(c, ordering)), None)
        if leading is None or leading.expression != clock:
            columns = (NamedExpression(ORDER, clock), *columns)
        return columns, None if limit is None else Order((), limit, is_selection=True)
    if is_unbounded:
        message = "the input never ends, so its rows can only be ordered by their time"
        remedy = (
            "group by an epoch, such as time/60 as tb, to order the rows of each epoch, or bound "
            "the run with --duration or -c, so that it answers at the end"
        )
        raise TemporalError(message, position=term.position, remedy=remedy)
    return columns, Order(tuple(key for key, _ in ordered.keys), limit, is_selection=True)


def _is_epoch(
    ordered: OrderedColumns,
    key: SortKey,
    term: nodes.OrderTerm,
    epoch: Collection[Expression],
    ordering: OrderingOf,
) -> bool:
    """Return whether a key depends on the epoch alone, and so does not order the rows of an epoch.

    Args:
        ordered: the columns of the query.
        key: the key.
        term: its syntax.
        epoch: the columns of which each is one value an epoch.
        ordering: returns the ordering of a column of the groups.

    Raises:
        TemporalError: it is the first, and contradicts the order in which epochs end.
    """
    expression = ordered.expression(key.name)
    columns = {part for part in walk(expression) if isinstance(part, Column)}
    if not columns or not columns.issubset(epoch):
        return False
    direction = column_schema(NamedExpression(key.name, expression), ordering).ordering.direction
    against = Direction.INCREASING if key.is_descending else Direction.DECREASING
    if direction is against and key is ordered.keys[0][0]:
        text = print_expression(term.expression)
        message = f"rows are emitted when their epoch ends, so {text} cannot be in the other order"
        remedy = f"leave {text} out of ORDER BY, which orders the rows of each epoch"
        raise TemporalError(message, position=term.position, remedy=remedy)
    return True


def _increases(column: NamedExpression, ordering: OrderingOf) -> bool:
    found = column_schema(column, ordering).ordering
    return found.direction is Direction.INCREASING
