"""WATCHLIST: a table read from a file, which streams are joined with.

It needs no time: the state of such a join is the table itself. Tuples pass as they come, each with every row of
the table that fits, so that all orders survive.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TypeMismatchError, UnsupportedError
from gscope.queries.analysis.names.scope import Source
from gscope.queries.analysis.typing.parameters import TYPE_NAMES
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.free_name import free_name
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import QueryScan, Watchlist, WatchlistJoin
from gscope.queries.plan.trees import conjunction, of_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.joins.conditions import Conditions
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node

_FILENAME = "filename"


@dataclass(frozen=True, slots=True)
class WatchlistSource(Source):
    """A watchlist, open for look-up; ``node`` stands for its columns only."""

    watchlist: Watchlist


def define_watchlist(
    name: str, query: nodes.Query, body: nodes.Watchlist, source: str
) -> Watchlist:
    """The table that a WATCHLIST defines.

    Args:
        name: of the query.
        query: holds the DEFINE block with the name of the file.
        body: the fields.
        source: what the text is called; a relative file name is looked up beside it.

    Raises:
        ResolveError: it has no file, or a field has no type or comes twice.
    """
    entry = next((e for e in query.define if e.name.lower() == _FILENAME), None)
    if entry is None or not isinstance(entry.value.value, str) or not entry.value.value:
        message = f"the watchlist {name} has no file"
        remedy = f"add {_FILENAME} 'list.csv'; to its DEFINE block"
        raise ResolveError(message, position=body.position, remedy=remedy)
    columns: dict[str, ColumnSchema] = {}
    for field in body.fields:
        kind = TYPE_NAMES.get(field.type_name.upper())
        if kind is None:
            message = f"there is no type {field.type_name}"
            remedy = did_you_mean(field.type_name, TYPE_NAMES, "types are")
            raise ResolveError(message, position=field.position, remedy=remedy)
        if field.name in columns:
            message = f"two fields are called {field.name}"
            raise ResolveError(message, position=field.position, remedy="give one another name")
        # an empty text is a text, anything else that is empty is NULL
        columns[field.name] = ColumnSchema(field.name, kind, kind is not GsqlType.STRING)
    if not columns:
        message = f"the watchlist {name} has no fields"
        remedy = "write FIELDS { IP address; }"
        raise ResolveError(message, position=body.position, remedy=remedy)
    path = (Path(source).parent / entry.value.value).absolute()
    return Watchlist(name, str(path), Schema(tuple(columns.values())))


def open_watchlist(watchlist: Watchlist, qualifiers: tuple[str, ...]) -> WatchlistSource:
    """A watchlist as an input of a query."""
    schema = watchlist.schema
    fields: dict[str, Expression] = {
        c.name: Column(c.name, c.type, c.is_nullable) for c in schema.columns
    }
    node = QueryScan(watchlist.name, schema)
    return WatchlistSource(node, watchlist.name, qualifiers, fields, schema.names, watchlist)


def check_streams(inputs: Sequence[nodes.Input], sources: Sequence[Source]) -> None:
    """A query has a stream to read; its watchlists stand behind it.

    Raises:
        TypeMismatchError: it begins with a watchlist.
    """
    if isinstance(sources[0], WatchlistSource):
        message = f"{sources[0].what} is a watchlist, not a stream"
        remedy = f"write the stream first, and join it: FROM TCP, {sources[0].what} WHERE …"
        raise TypeMismatchError(message, position=inputs[0].position, remedy=remedy)


def check_kind(join: nodes.Join, source: Source, position: nodes.Node) -> None:
    """WATCHLIST_JOIN is with a watchlist, and with one there is no other but the plain join.

    Raises:
        TypeMismatchError: a stream stands where a watchlist should.
        UnsupportedError: an outer join with a watchlist.
    """
    if not isinstance(source, WatchlistSource):
        if join.kind is JoinKind.WATCHLIST:
            message = f"{source.what} is a stream, not a watchlist"
            raise TypeMismatchError(message, position=position.position, remedy="write INNER_JOIN")
    elif join.kind not in (JoinKind.INNER, JoinKind.WATCHLIST):
        message = f"this version does not run {join.kind.value} with a watchlist"
        raise UnsupportedError(message, position=position.position, remedy="write WATCHLIST_JOIN")


def watchlist_join(
    input: Node,  # noqa: A002  # as the field of the node is called
    watchlist: Watchlist,
    conditions: Conditions,
    filters: Sequence[Expression],
    label: str,
) -> tuple[WatchlistJoin, dict[str, str]]:
    """The tuples of ``input``, each with every row of the watchlist that fits.

    Args:
        input: its columns come first, under their names.
        watchlist: the table.
        conditions: of the join; a temporal equality is a key as any other.
        filters: conditions on the watchlist alone, over its columns.
        label: what the query calls the watchlist.

    Returns:
        The node, and for each field of the watchlist the column that it is in.
    """
    columns: list[NamedExpression] = []
    schema: list[ColumnSchema] = []
    for c in input.schema.columns:
        columns.append(NamedExpression(c.name, Column(c.name, c.type, c.is_nullable)))
        schema.append(c)
    names = {}
    for c in watchlist.schema.columns:
        taken = {each.name for each in schema}
        name = free_name(c.name if c.name not in taken else f"{label}_{c.name}", taken)
        columns.append(NamedExpression(name, Column(c.name, c.type, c.is_nullable, 1)))
        schema.append(ColumnSchema(name, c.type, c.is_nullable))
        names[c.name] = name
    residual = conjunction([*conditions.residual, *(of_input(e, 1) for e in filters)])
    node = WatchlistJoin(
        input=input,
        watchlist=watchlist,
        keys=conditions.equalities,
        residual=residual,
        columns=tuple(columns),
        schema=Schema(tuple(schema)),
    )
    return node, names
