"""WATCHLIST: a table in a file, and the input that it is to the queries that name it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TypeMismatchError
from gscope.queries.analysis.names.scope import Source
from gscope.queries.analysis.typing.parameters import TYPE_NAMES
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import QueryScan, Watchlist
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes

_FILENAME = "filename"


@dataclass(frozen=True, slots=True)
class WatchlistSource(Source):
    """A watchlist, open for look-up; ``node`` stands for its columns only.

    Attributes:
        watchlist: the table.
    """

    watchlist: Watchlist


def define_watchlist(
    name: str, query: nodes.Query, body: nodes.WatchlistQuery, source: str
) -> Watchlist:
    """Return the table that a WATCHLIST defines.

    Args:
        name: the name of the query.
        query: the query, with the name of the file in its DEFINE block.
        body: the fields.
        source: the name of the query file; a relative path is resolved against its folder.

    Raises:
        ResolveError: the file is missing, or a field has an unknown type or a name twice.
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
            message = f"unknown type {field.type_name}"
            remedy = did_you_mean(field.type_name, TYPE_NAMES, "available types")
            raise ResolveError(message, position=field.position, remedy=remedy)
        if field.name in columns:
            message = f"two fields are called {field.name}"
            raise ResolveError(message, position=field.position, remedy="give one another name")
        # An empty cell is an empty text in a STRING column and NULL in any other.
        columns[field.name] = ColumnSchema(field.name, kind, kind is not GsqlType.STRING)
    if not columns:
        message = f"the watchlist {name} has no fields"
        remedy = "write FIELDS { IP address; }"
        raise ResolveError(message, position=body.position, remedy=remedy)
    path = (Path(source).parent / entry.value.value).absolute()
    return Watchlist(name, str(path), Schema(tuple(columns.values())))


def open_watchlist(watchlist: Watchlist, qualifiers: tuple[str, ...]) -> WatchlistSource:
    """Return a watchlist as an input of a query."""
    schema = watchlist.schema
    fields: dict[str, Expression] = {
        c.name: Column(c.name, c.type, c.is_nullable) for c in schema.columns
    }
    node = QueryScan(watchlist.name, schema)
    return WatchlistSource(node, watchlist.name, qualifiers, fields, schema.names, watchlist)


def check_streams(inputs: Sequence[nodes.Input], sources: Sequence[Source]) -> None:
    """Refuse a query whose first input is a watchlist.

    Raises:
        TypeMismatchError: the query begins with a watchlist.
    """
    if isinstance(sources[0], WatchlistSource):
        message = f"{sources[0].what} is a watchlist, not a stream"
        remedy = f"write the stream first, and join it: FROM TCP, {sources[0].what} WHERE …"
        raise TypeMismatchError(message, position=inputs[0].position, remedy=remedy)
