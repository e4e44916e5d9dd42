"""Syntax nodes of GSQL: what a query text says, before any name in it is known.

A node is complete on construction and never changes. Spellings that mean the same thing give the same node: the join kind
before FROM and between two inputs, ``!=`` and ``<>``, ``#NAME`` and ``#NAME#``. Positions do not count in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from gscope.errors import Position


@dataclass(frozen=True, slots=True)
class Node:
    """Anything that stands somewhere in a query text."""

    position: Position = field(compare=False, repr=False, kw_only=True)


# ------------------------------------------------------------------------------------------------ expressions


class LiteralKind(Enum):
    """What a literal was written as, and with it the Python type of its value."""

    INTEGER = "integer"  # int, 0 … 2**64 - 1; decimal, 0x… and HEX'…'
    FLOAT = "float"  # float, finite, not negative
    STRING = "string"  # str
    BOOL = "bool"  # bool
    NULL = "null"  # None
    IP = "ip"  # str, the text between the quotes of IP_VAL'…', a valid IPv4 address
    IPV6 = "ipv6"  # str, the text between the quotes of IPV6_VAL'…', a valid IPv6 address
    TIMEVAL = "timeval"  # str, the text between the quotes of TIMEVAL'…', not interpreted
    INTERVAL = "interval"  # int, nanoseconds


LiteralValue: TypeAlias = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant; a sign before a number is a `Unary` around it."""

    value: LiteralValue
    kind: LiteralKind


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column by name: ``len``, ``S.len``, ``inner.srcIP``, ``S.inner.srcIP``."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """``$name``: a value given when the query starts, declared in PARAM."""

    name: str


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """``#NAME#``: the value of an entry of the query's DEFINE block."""

    name: str


@dataclass(frozen=True, slots=True)
class Property(Node):
    """``@name``: a property of the interface a packet came from."""

    name: str


class UnaryOperator(Enum):
    """Operators before one operand; the value is the canonical spelling."""

    NOT = "NOT"  # also written !
    NEGATE = "-"
    PLUS = "+"
    INVERT = "~"


class BinaryOperator(Enum):
    """Operators between two operands; the value is the canonical spelling."""

    OR = "OR"
    AND = "AND"
    EQUAL = "="
    NOT_EQUAL = "<>"  # also written !=
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    BIT_OR = "|"
    BIT_AND = "&"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    INTEGER_DIVIDE = "DIV"


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """An operator and its operand."""

    operator: UnaryOperator
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Two operands and the operator between them, at whose place the node stands."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function, predicate or aggregate with its arguments.

    Attributes:
        name: as written; which of the three it is, only the catalog knows.
        args: empty for ``f()`` and ``count(*)``.
        star: ``count(*)``.
        distinct: ``count(DISTINCT x)``.
        bracketed: ``p[a, b]``, the spelling of predicates.
        superaggregate: ``sum$(x)``, over the supergroup instead of the group.
    """

    name: str
    args: tuple[Expression, ...]
    star: bool = False
    distinct: bool = False
    bracketed: bool = False
    superaggregate: bool = False


@dataclass(frozen=True, slots=True)
class CaseBranch(Node):
    """``WHEN condition THEN result``."""

    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Node):
    """``CASE [operand] WHEN … THEN … [ELSE otherwise] END``; at least one branch."""

    operand: Expression | None
    branches: tuple[CaseBranch, ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class InList(Node):
    """``operand [NOT] IN (choice, …)``; at least one choice."""

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``operand [NOT] BETWEEN low AND high``."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``operand [NOT] LIKE pattern``."""

    operand: Expression
    pattern: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``operand IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False


Expression: TypeAlias = (
    Literal
    | Name
    | Parameter
    | Definition
    | Property
    | Unary
    | Binary
    | FunctionCall
    | Case
    | InList
    | Between
    | Like
    | IsNull
)

# ----------------------------------------------------------------------------------------------------- inputs

Extent: TypeAlias = Literal | Parameter | Definition
"""A length along the ordering field: an INTEGER in the field's own unit, an INTERVAL, or one to be given later."""


@dataclass(frozen=True, slots=True)
class RangeWindow(Node):
    """``[RANGE range SLIDE slide]``; without SLIDE the window tumbles."""

    range: Extent
    slide: Extent | None


@dataclass(frozen=True, slots=True)
class SlicesWindow(Node):
    """``[SLICES '12 sec', '3 sec']``: lengths that repeat in turn; at least one."""

    slices: tuple[Extent, ...]


Window: TypeAlias = RangeWindow | SlicesWindow


@dataclass(frozen=True, slots=True)
class StreamInput(Node):
    """A query or protocol by name: ``q``, ``TCP``, ``eth0.TCP``, ``host.eth0.TCP``, ``[set].TCP``, ``dir/q``.

    At most one of ``interface``, ``interface_set`` and ``library`` is given; ``host`` only with ``interface``.

    Attributes:
        name: of the query or protocol.
        library: the folders before it, joined by ``/``.
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


Input: TypeAlias = StreamInput | SubqueryInput


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
    """``(column, span)`` of a FILTER_JOIN: how long, in the unit of the column, a match stays remembered."""

    column: Name
    span: Extent


@dataclass(frozen=True, slots=True)
class Join(Node):
    """How one input is joined to all those before it; ``bound`` exactly if the kind is FILTER."""

    kind: JoinKind
    on: Expression | None = None
    bound: FilterBound | None = None


# ---------------------------------------------------------------------------------------------------- queries


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
    joins: tuple[Join, ...] = ()
    distinct: bool = False
    where: Expression | None = None
    group_by: tuple[GroupTerm, ...] = ()
    supergroup: tuple[GroupTerm, ...] = ()
    having: Expression | None = None
    cleaning_when: Expression | None = None
    cleaning_by: Expression | None = None
    closing_when: Expression | None = None


@dataclass(frozen=True, slots=True)
class Merge(Node):
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
class Watchlist(Node):
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


Body: TypeAlias = Select | Merge | Watchlist | With


@dataclass(frozen=True, slots=True)
class DefineEntry(Node):
    """``name value;`` of a DEFINE block; a bare word as the value is a STRING, and a number may be negative."""

    name: str
    value: Literal


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


# -------------------------------------------------------------------------------------------------- protocols


@dataclass(frozen=True, slots=True)
class ProtocolField(Node):
    """``name = expression;`` over the fields of the parent and the fields above it."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class ProtocolDefinition(Node):
    """``PROTOCOL name (parent) [WHERE condition] { field = expression; … }``: the parent's packets that satisfy it."""

    name: str
    parent: str
    where: Expression | None
    fields: tuple[ProtocolField, ...]


# ------------------------------------------------------------------------------------------------------- file


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
