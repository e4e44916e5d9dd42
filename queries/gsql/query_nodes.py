"""Syntax nodes of queries and protocol definitions, and of the file that holds them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.gsql.node import Node
from gscope.records import dataclass

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
class OrderTerm(Node):
    """``expression [ASC|DESC] [NULLS FIRST|LAST]`` of an ORDER BY; NULL comes last by default."""

    expression: Expression
    is_descending: bool = False
    has_nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A SELECT with all its clauses.

    Attributes:
        inputs: the inputs, at least one.
        joins: the joins, one fewer than inputs: ``joins[i]`` joins ``inputs[i + 1]`` to those
            before it. A kind written before FROM holds for all of them; a comma is an INNER join
            without a condition of its own.
        sample_by: the terms of SAMPLE BY.
        is_not_sampled: whether it says NOT SAMPLED.
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
    order_by: tuple[OrderTerm, ...] = ()
    limit: Extent | None = None
    sample_by: tuple[Expression, ...] = ()
    is_not_sampled: bool = False


@dataclass(frozen=True, slots=True)
class MergeQuery(Node):
    """``MERGE a.t : b.t [SLACK n] FROM a, b``, or the same as ``SELECT … UNION ALL SELECT …``.

    Attributes:
        columns: one column for each input, in any order; () for UNION ALL, where the analysis
            chooses them.
        inputs: at least two; those of UNION ALL are subqueries.
        slack: by how much a row may be late.
        sample_by: the terms of SAMPLE BY, over the columns of the union.
        is_not_sampled: whether it says NOT SAMPLED.
    """

    columns: tuple[Name, ...]
    inputs: tuple[Input, ...]
    slack: Extent | None = None
    sample_by: tuple[Expression, ...] = ()
    is_not_sampled: bool = False


@dataclass(frozen=True, slots=True)
class WatchField(Node):
    """One column of a watchlist, with the name of its type as written."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True)
class WatchlistQuery(Node):
    """``WATCHLIST FIELDS { type name; … }``: a table read from the file that DEFINE names."""

    fields: tuple[WatchField, ...]


@dataclass(frozen=True, slots=True)
class WithBinding(Node):
    """``name AS (query)``."""

    name: str
    body: Body


@dataclass(frozen=True, slots=True)
class With(Node):
    """``WITH name AS (query), … query``: the later bindings and the body see each binding."""

    bindings: tuple[WithBinding, ...]
    body: Body


Body: TypeAlias = Select | MergeQuery | WatchlistQuery | With


@dataclass(frozen=True, slots=True)
class DefineEntry(Node):
    """``name value;`` of a DEFINE block.

    A bare word as the value is a STRING, and a number may be negative.
    """

    name: str
    value: LiteralSyntax


@dataclass(frozen=True, slots=True)
class ParamEntry(Node):
    """``name type;`` of a PARAM block, with the name of the type as written."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A query with its DEFINE and PARAM blocks; its position is that of its name, else of its body.

    Attributes:
        name: from ``query_name 'x';`` or ``Query x:``; None if the text gives none.
        body: the SELECT, MERGE, WATCHLIST or WITH.
        define: the other entries of DEFINE (``visibility``, and the user's own).
        params: the entries of PARAM.
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
    """``PROTOCOL name (parent) [WHERE condition] { field = expression; … }``.

    Its packets are those of the parent that satisfy the condition.
    """

    name: str
    parent: str
    where: Expression | None
    fields: tuple[ProtocolFieldDefinition, ...]


@dataclass(frozen=True, slots=True)
class File(Node):
    """The contents of one text, in order.

    Attributes:
        items: queries and protocol definitions.
        source: the name of the text in messages.
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
