"""Smaller variants of a set of queries; what no longer compiles is dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.syntax import Expression, Group, Join, Named, Query, Select

if TYPE_CHECKING:
    from collections.abc import Iterator

Queries = tuple[Query, ...]


def simpler_queries(queries: Queries) -> Iterator[Queries]:
    """``queries`` with one of them simpler by one step; the last one first."""
    for number in reversed(range(len(queries))):
        for simpler in _simpler_query(queries[number]):
            yield _put(queries, queries[number], simpler)


def _put(queries: Queries, old: Query, new: Query) -> Queries:
    """The set with a query replaced, also where others read it."""
    changed: dict[str, Query] = {}
    for query in queries:
        if query.name == old.name:
            changed[query.name] = new
        else:
            changed[query.name] = query.reading(changed)
    return tuple(changed.values())


def _simpler_query(query: Query) -> Iterator[Query]:
    if not isinstance(query, Select | Group):
        return
    if query.order or query.limit:
        yield replace(query, order=(), limit=None)
    if query.where is not None:
        yield replace(query, where=None)
    if isinstance(query, Group) and query.having is not None:
        yield replace(query, having=None)
    for number in range(len(query.columns)):
        if len(query.columns) > 1:
            rest = query.columns[:number] + query.columns[number + 1 :]
            fields = query.fields[:number] + query.fields[number + 1 :]
            yield replace(query, columns=rest, fields=fields)
    if isinstance(query, Group):
        for number in range(len(query.keys)):
            if number != query.epoch:
                rest = query.keys[:number] + query.keys[number + 1 :]
                epoch = query.epoch
                if epoch is not None:
                    epoch -= number < epoch
                yield replace(query, keys=rest, epoch=epoch)
        for keys in _simpler_columns(query.keys):
            yield replace(query, keys=keys)
    for columns in _simpler_columns(query.columns):
        yield replace(query, columns=columns)
    if isinstance(query.source, Join):
        join = query.source
        for number in range(len(join.conditions)):
            others = join.conditions[:number] + join.conditions[number + 1 :]
            yield replace(query, source=replace(join, conditions=others))
        for number in range(1, len(join.equalities)):
            fewer = join.equalities[:number] + join.equalities[number + 1 :]
            yield replace(query, source=replace(join, equalities=fewer))
    if query.where is not None:
        for where in _simpler_expression(query.where):
            yield replace(query, where=where)
    if isinstance(query, Group) and query.having is not None:
        for having in _simpler_expression(query.having):
            yield replace(query, having=having)


def _simpler_columns(columns: tuple[Named, ...]) -> Iterator[tuple[Named, ...]]:
    for number, column in enumerate(columns):
        for simpler in _simpler_expression(column.expression):
            yield (*columns[:number], Named(column.name, simpler), *columns[number + 1 :])


def _simpler_expression(e: Expression) -> Iterator[Expression]:
    """Parts of the same type in place of the whole, outermost first.

    Then simpler parts in place.
    """
    if e.op in ("key", "column", "literal"):
        return
    for argument in e.arguments:
        if argument.type is e.type and e.op != "aggregate":
            yield argument
    for number, argument in enumerate(e.arguments):
        for simpler in _simpler_expression(argument):
            parts = (*e.arguments[:number], simpler, *e.arguments[number + 1 :])
            yield replace(e, arguments=parts)
