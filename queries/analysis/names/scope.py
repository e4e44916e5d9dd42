"""What a column name stands for in a query: a field of packets or a column of another query's result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.typing.column_facts import NO_FACTS, has_aggregate, origin_of
from gscope.queries.catalog.protocols import FIELD_ALIASES
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Column, Expression, PacketField
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import CONSTANT, VARYING, Ordering
from gscope.queries.plan.logical import QueryScan, Scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.analysis.typing.column_facts import Facts
    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node

_INNER = "inner."


@dataclass(frozen=True, slots=True)
class Source:
    """One input of a query, open for look-up.

    Attributes:
        what: how messages call it.
        qualifiers: the names that may stand before a column of it.
        fields: every name that means something, and what it means.
        stars: the names that ``*`` stands for.
        facts: what is known of the columns of ``node`` that names stand for.
    """

    node: Node
    what: str
    qualifiers: tuple[str, ...]
    fields: Mapping[str, Expression]
    stars: tuple[str, ...]
    facts: Facts = field(default_factory=dict, kw_only=True)

    def ordering(self, leaf: PacketField | Column) -> Ordering:
        """The declared ordering of a leaf of expressions over this input."""
        schema = self.node.schema
        return schema[leaf.name].ordering if leaf.name in schema else VARYING

    def resolve(self, name: nodes.Name) -> Expression:
        """What ``name`` stands for.

        Raises:
            ResolveError: nothing of that name is here.
        """
        text = self.bare(name)
        found = self.find(text)
        if found is None:
            message = f"{self.what} has no column {text}"
            remedy = did_you_mean(text, self.stars or self.fields, "its columns are")
            raise ResolveError(message, position=name.position, remedy=remedy or self._way_out())
        return found

    def rewrite(self, expression: Expression) -> Expression:
        """What an expression over this input stands for: itself, unless the input knows its value."""
        return expression

    def origin(self, expression: Expression) -> Expression:
        """Return an expression over this input with what its columns are computed of in place of them."""
        return origin_of(expression, (self.facts,))

    def has_aggregate(self, expression: Expression) -> bool:
        """Return whether a column takes part in ``expression`` that an aggregate of another query made."""
        return has_aggregate(expression, (self.facts,))

    def _way_out(self) -> str:
        """What to do about a name that is like none of very many."""
        if not isinstance(self.node, Scan):
            return ""
        return (
            f"`gscope schema {self.node.protocol}` lists its columns; "
            "a name of your own is given with AS, such as GROUP BY time/60 AS tb"
        )

    def star(self, star: nodes.Star) -> list[tuple[str, Expression]]:
        """What ``*`` stands for: names and what they mean.

        Raises:
            ResolveError: its qualifier is none of this input.
        """
        if star.qualifier is not None and star.qualifier not in self.qualifiers:
            message = f"no input is called {star.qualifier}"
            remedy = f"the input is {self.qualifiers[0]}"
            raise ResolveError(message, position=star.position, remedy=remedy)
        return [(name, self.fields[name]) for name in self.stars]

    def bare(self, name: nodes.Name) -> str:
        """The name without its qualifier.

        Raises:
            ResolveError: the qualifier is none of this input.
        """
        parts = name.parts
        if len(parts) > 1 and parts[0] in self.qualifiers:
            return ".".join(parts[1:])
        text = ".".join(parts)
        if len(parts) > 1 and f"{parts[0]}." != _INNER:
            message = f"no input is called {parts[0]}"
            remedy = did_you_mean(parts[0], self.qualifiers, "inputs here")
            raise ResolveError(message, position=name.position, remedy=remedy)
        return text

    def find(self, text: str) -> Expression | None:
        """What a bare name stands for: as written, by another spelling, in another case; else None."""
        if text in self.fields:
            return self.fields[text]
        spelt = {f for f in self.fields if _canonical(f) == _canonical(text)}
        cased = {f for f in self.fields if f.lower() == text.lower()}
        for candidates in (spelt, cased):
            meanings = {self.fields[candidate] for candidate in candidates}
            if len(meanings) == 1:
                return meanings.pop()
        return None


def open_packets(
    protocol: Protocol, interfaces: tuple[str, ...], qualifiers: tuple[str, ...]
) -> Source:
    """The packets of a protocol on some interfaces."""
    schema = protocol.schema
    if len(interfaces) != 1:
        # Constant on one interface; together they take turns.
        columns = tuple(
            replace(c, ordering=VARYING) if c.ordering == CONSTANT else c for c in schema.columns
        )
        schema = Schema(columns)
    fields: dict[str, Expression] = {}
    for name in protocol.names:
        known = protocol.field(name)
        if known is not None:
            fields[name] = known.expression
    node = Scan(protocol.name, interfaces, protocol.membership, schema)
    return Source(node, protocol.name, qualifiers, fields, schema.names)


def open_query(
    name: str, schema: Schema, qualifiers: tuple[str, ...], facts: Facts = NO_FACTS
) -> Source:
    """Return the result of another query, open for look-up."""
    fields: dict[str, Expression] = {c.name: _column(c) for c in schema.columns}
    scan = QueryScan(name, schema)
    return Source(scan, name, qualifiers, fields, schema.names, facts=facts)


def _column(column: ColumnSchema) -> Column:
    return Column(column.name, column.type, column.is_nullable)


def _canonical(name: str) -> str:
    if name.startswith(_INNER):
        return _INNER + _canonical(name[len(_INNER) :])
    return FIELD_ALIASES.get(name, name)
