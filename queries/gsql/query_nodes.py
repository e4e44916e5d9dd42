"""Queries, protocol definitions, and the file that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.gsql.node import Node

if TYPE_CHECKING:
    from gscope.queries.gsql.expression_nodes import Expression, LiteralSyntax, Name
    from gscope.queries.gsql.input_nodes import Extent, Input, JoinClause


@dataclass(frozen=True, slots=True)
class OutputItem(Node):
    """``expression [AS name]`` of a select list."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Star(Node):
    """``*`` or ``qualifier.*`` of a select list."""

    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class GroupTerm(Node):
    """``expression [AS name]`` of a GROUP BY or SUPERGROUP."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A SELECT with all its clauses.

    Attributes:
        inputs: at least one.
        joins: ``joins[i]`` joins ``inputs[i + 1]`` to what stands before it, so there is one fewer than inputs. A kind written
            before FROM holds for all of them; a comma is an INNER join without a condition of its own.
    """

    outputs: tuple[OutputItem | Star, ...]
    inputs: tuple[Input, ...]
    joins: tuple[JoinClause, ...] = ()
    distinct: bool = False
    where: Expression | None = None
    group_by: tuple[GroupTerm, ...] = ()
    supergroup: tuple[GroupTerm, ...] = ()
    having: Expression | None = None
    cleaning_when: Expression | None = None
    cleaning_by: Expression | None = None
    closing_when: Expression | None = None


@dataclass(frozen=True, slots=True)
class MergeQuery(Node):
    """``MERGE a.t : b.t [SLACK n] FROM a, b``: as many columns as inputs, at least two, in any order."""

    columns: tuple[Name, ...]
    inputs: tuple[Input, ...]
    slack: Extent | None = None


@dataclass(frozen=True, slots=True)
class WatchField(Node):
    """One column of a watchlist; the name of its type as written."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True)
class WatchlistQuery(Node):
    """``WATCHLIST FIELDS { type name; … }``: a table read from the file its DEFINE names."""

    fields: tuple[WatchField, ...]


@dataclass(frozen=True, slots=True)
class WithBinding(Node):
    """``name AS (query)``."""

    name: str
    body: Body


@dataclass(frozen=True, slots=True)
class With(Node):
    """``WITH name AS (query), … query``: each binding is seen by the later ones and by the body."""

    bindings: tuple[WithBinding, ...]
    body: Body


Body: TypeAlias = Select | MergeQuery | WatchlistQuery | With


@dataclass(frozen=True, slots=True)
class DefineEntry(Node):
    """``name value;`` of a DEFINE block; a bare word as the value is a STRING, and a number may be negative."""

    name: str
    value: LiteralSyntax


@dataclass(frozen=True, slots=True)
class ParamEntry(Node):
    """``name type;`` of a PARAM block; the name of the type as written."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A query with its DEFINE and PARAM blocks; it stands where its name is given, else where its body starts.

    Attributes:
        name: from ``query_name 'x';`` or ``Query x:``; None if the text gives none.
        define: the other entries of DEFINE (``visibility``, and the user's own).
    """

    name: str | None
    body: Body
    define: tuple[DefineEntry, ...] = ()
    params: tuple[ParamEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtocolFieldDefinition(Node):
    """``name = expression;`` over the fields of the parent and the fields above it."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class ProtocolDefinition(Node):
    """``PROTOCOL name (parent) [WHERE condition] { field = expression; … }``: the parent's packets that satisfy it."""

    name: str
    parent: str
    where: Expression | None
    fields: tuple[ProtocolFieldDefinition, ...]


@dataclass(frozen=True, slots=True)
class File(Node):
    """Everything one text holds, in its order.

    Attributes:
        source: what the text is called in reports.
        text: the whole text, for the marked line of an error.
    """

    items: tuple[Query | ProtocolDefinition, ...]
    source: str = field(default="query", compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries of the file."""
        return tuple(item for item in self.items if isinstance(item, Query))

    @property
    def protocols(self) -> tuple[ProtocolDefinition, ...]:
        """The protocol definitions of the file."""
        return tuple(item for item in self.items if isinstance(item, ProtocolDefinition))
