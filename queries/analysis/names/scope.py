"""What a column name stands for: a field of packets or a column of another query's result."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.names.foreign_names import (
    check_qualified,
    foreign_field,
    written_for,
)
from gscope.queries.analysis.typing.column_facts import NO_FACTS, has_aggregate, origin_of
from gscope.queries.catalog.field_names import WIRESHARK
from gscope.queries.catalog.protocols import FIELD_ALIASES
from gscope.queries.did_you_mean import DID_YOU_MEAN, closest, did_you_mean
from gscope.queries.expressions.expressions import Column, Expression, PacketField
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import CONSTANT, VARYING, Ordering
from gscope.queries.plan.logical import QueryScan, Scan
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.windows.columns import WRITTEN
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.analysis.typing.column_facts import Facts
    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node, WindowGroupBy

_INNER = "inner."


@dataclass(frozen=True, slots=True)
class Source:
    """One input of a query, open for look-up.

    For ``FROM eth0.TCP t``:

    Attributes:
        node: the plan node of the input: a scan of TCP packets on eth0.
        what: TCP: the name of the input in messages.
        qualifiers: t and TCP: the names that may precede a column.
        fields: every name that means something, also other spellings, and its expression.
        stars: the names that ``*`` stands for.
        facts: what is known of the columns of ``node``, for a query's result (see
            ``column_facts``).
        protocol: TCP, None for a query's result.
        window: the grouping by window whose result it is, if it has ``WINDOW_TIME``; else None.
    """

    node: Node
    what: str
    qualifiers: tuple[str, ...]
    fields: Mapping[str, Expression]
    stars: tuple[str, ...]
    facts: Facts = field(default_factory=dict, kw_only=True)
    protocol: Protocol | None = field(default=None, kw_only=True)
    window: WindowGroupBy | None = field(default=None, kw_only=True)

    def ordering(self, leaf: PacketField | Column) -> Ordering:
        """Return the ordering of a leaf of expressions over this input."""
        schema = self.node.schema
        return schema[leaf.name].ordering if leaf.name in schema else VARYING

    def resolve(self, name: nodes.Name) -> Expression:
        """Return the expression that ``name`` stands for.

        Raises:
            ResolveError: the input has no such column.
        """
        foreign = self._dotted(name)
        if foreign is not None:
            return foreign
        text = self.bare(name)
        found = self.find(text)
        if found is None:
            found = self.find_foreign(text)
        if found is None:
            message = f"{self.what} has no column {text}"
            known = did_you_mean(text, self.stars or self.fields, "available columns")
            written = self._written_for(".".join(name.parts)) or self._written_for(text)
            remedy = _of_window(text) or written or known or self._way_out()
            raise ResolveError(message, position=name.position, remedy=remedy)
        return found

    def find_foreign(self, text: str) -> Expression | None:
        """Return what another tool's name of a field of packets stands for, None if it is none."""
        return None if self.protocol is None else foreign_field(self.protocol, text)

    def _dotted(self, name: nodes.Name) -> Expression | None:
        """Return the field that Wireshark calls ``name``, such as ``tcp.dstport``; else None.

        Raises:
            ResolveError: the first part is the input's name and the rest one of its columns, but
                Wireshark calls another field so.
        """
        full = ".".join(name.parts)
        if self.protocol is None or len(name.parts) == 1 or full.lower() not in WIRESHARK:
            return None
        if name.parts[0] in self.qualifiers:
            check_qualified(self.protocol, name.parts[0], ".".join(name.parts[1:]), name.position)
            if self.find(".".join(name.parts[1:])) is not None:
                return None
        return self.find_foreign(full)

    def _written_for(self, text: str) -> str:
        return "" if self.protocol is None else written_for(self.protocol, text)

    def rewrite(self, expression: Expression) -> Expression:
        """Return what an expression over this input stands for, itself unless a join differs."""
        return expression

    def origin(self, expression: Expression) -> Expression:
        """Return ``expression`` with the expressions that its columns were computed from."""
        return origin_of(expression, (self.facts,))

    def has_aggregate(self, expression: Expression) -> bool:
        """Return whether a column in ``expression`` is the result of another query's aggregate."""
        return has_aggregate(expression, (self.facts,))

    def _way_out(self) -> str:
        """Return the remedy for a name that resembles none of a protocol's many columns."""
        if not isinstance(self.node, Scan):
            return ""
        return (
            f"`gscope schema {self.node.protocol}` lists its columns; "
            "a name of your own is given with AS, such as GROUP BY time/60 AS tb"
        )

    def star(self, star: nodes.Star) -> list[tuple[str, Expression]]:
        """Return the names and meanings that ``*`` stands for.

        Raises:
            ResolveError: the qualifier is not one of this input.
        """
        if star.qualifier is not None and star.qualifier not in self.qualifiers:
            message = f"no input is called {star.qualifier}"
            remedy = f"the input is {self.qualifiers[0]}"
            raise ResolveError(message, position=star.position, remedy=remedy)
        return [(name, self.fields[name]) for name in self.stars]

    def bare(self, name: nodes.Name) -> str:
        """Return the name without its qualifier.

        Raises:
            ResolveError: the qualifier is not one of this input.
        """
        parts = name.parts
        if len(parts) > 1 and parts[0] in self.qualifiers:
            return ".".join(parts[1:])
        text = ".".join(parts)
        if len(parts) > 1 and f"{parts[0]}." != _INNER:
            message = f"no input is called {parts[0]}"
            known = did_you_mean(parts[0], self.qualifiers, "available inputs")
            remedy = self._written_for(text) or known
            raise ResolveError(message, position=name.position, remedy=remedy)
        return text

    def find(self, text: str) -> Expression | None:
        """Return what a name without qualifier stands for, None if it is unknown.

        It is looked up as written, then by its other spellings, then in another case.
        """
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
    """Return the packets of a protocol on some interfaces, open for look-up."""
    schema = protocol.schema
    if len(interfaces) != 1:
        # What is constant on each interface differs between them.
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
    return Source(node, protocol.name, qualifiers, fields, schema.names, protocol=protocol)


def open_query(
    name: str,
    schema: Schema,
    qualifiers: tuple[str, ...],
    facts: Facts = NO_FACTS,
    window: WindowGroupBy | None = None,
) -> Source:
    """Return the result of another query, open for look-up.

    Args:
        name: the query.
        schema: its columns; hidden ones have no names.
        qualifiers: the names that may precede a column.
        facts: what is known of its columns.
        window: the grouping by window whose result it is, for a window over it.
    """
    shown = visible(schema)
    fields: dict[str, Expression] = {c.name: _column(c) for c in shown.columns}
    scan = QueryScan(name, schema)
    return Source(scan, name, qualifiers, fields, shown.names, facts=facts, window=window)


def _of_window(text: str) -> str:
    """Return the remedy for a column of a window, misspelt or without one; "" for other names."""
    if text.lower() not in WRITTEN:
        close = closest(text.lower(), WRITTEN, cutoff=0.8)
        return "" if close is None else f"{DID_YOU_MEAN}{close}?"
    return f"a window has {text}: write FROM TCP [RANGE '1 min' SLIDE '10 sec']"


def _column(column: ColumnSchema) -> Column:
    return Column(column.name, column.type, column.is_nullable)


def _canonical(name: str) -> str:
    if name.startswith(_INNER):
        return _INNER + _canonical(name[len(_INNER) :])
    return FIELD_ALIASES.get(name, name)
