"""Syntax nodes of FROM: inputs with their windows, and how they are joined."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.gsql.expression_nodes import Definition, LiteralSyntax, ParameterReference
from gscope.queries.gsql.node import Node
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.gsql.expression_nodes import Expression, Name
    from gscope.queries.gsql.query_nodes import Body

Extent: TypeAlias = LiteralSyntax | ParameterReference | Definition
"""A length along the ordering field.

An INTEGER in the field's own unit, an INTERVAL, or a name whose value is given elsewhere.
"""


@dataclass(frozen=True, slots=True)
class RangeWindow(Node):
    """``[RANGE range SLIDE slide ON column]``.

    Attributes:
        range: the length of a window.
        slide: the distance between the ends of two windows; None for ``range``.
        on: the column that it slides along; None to let the input decide.
    """

    range: Extent
    slide: Extent | None
    on: Name | None = None


@dataclass(frozen=True, slots=True)
class SlicesWindow(Node):
    """``[SLICES '12 sec', '3 sec' ON column]``: lengths that repeat in turn.

    Attributes:
        slices: the lengths, at least one.
        on: as in ``RangeWindow``.
    """

    slices: tuple[Extent, ...]
    on: Name | None = None


Window: TypeAlias = RangeWindow | SlicesWindow


@dataclass(frozen=True, slots=True)
class NamedInput(Node):
    """A query or protocol by name.

    ``q``, ``TCP``, ``eth0.TCP``, ``host.eth0.TCP``, ``[set].TCP`` or ``dir/q``. At most one of
    ``interface``, ``interface_set`` and ``library`` is given; ``host`` only with ``interface``.

    Attributes:
        name: the name of the query or protocol.
        host: the host whose interface is read, None for this one.
        interface: the interface, None if none is named.
        interface_set: the set of interfaces, None if none is named.
        library: the folders before the name, joined by ``/``; None for a query of the same text.
        alias: the name that the query gives the input, None if it gives none.
        window: the window, None without one.
    """

    name: str
    host: str | None = None
    interface: str | None = None
    interface_set: str | None = None
    library: str | None = None
    alias: str | None = None
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class SubqueryInput(Node):
    """``(SELECT …) alias``."""

    body: Body
    alias: str | None = None
    window: Window | None = None


Input: TypeAlias = NamedInput | SubqueryInput


class JoinKind(Enum):
    """How two inputs are joined; the value is the canonical spelling."""

    INNER = "INNER_JOIN"
    OUTER = "OUTER_JOIN"
    LEFT_OUTER = "LEFT_OUTER_JOIN"
    RIGHT_OUTER = "RIGHT_OUTER_JOIN"
    FILTER = "FILTER_JOIN"
    WATCHLIST = "WATCHLIST_JOIN"


@dataclass(frozen=True, slots=True)
class FilterBound(Node):
    """``(column, span)`` of a FILTER_JOIN: how far back a match may be, in the column's unit."""

    column: Name
    span: Extent


@dataclass(frozen=True, slots=True)
class JoinClause(Node):
    """How one input is joined to all those before it.

    Attributes:
        kind: the kind of join.
        on: the condition behind ON, None without one.
        bound: the bound of a FILTER_JOIN, None for any other kind.
        is_sql: whether an outer join is written as in SQL (``LEFT JOIN`` between two inputs), which
            gives ON and WHERE the meanings of SQL, and not as in Gigascope (``LEFT_OUTER_JOIN``).
    """

    kind: JoinKind
    on: Expression | None = None
    bound: FilterBound | None = None
    is_sql: bool = False
