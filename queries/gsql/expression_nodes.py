"""Syntax nodes of expressions: literals, names, operators, calls."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from gscope.queries.gsql.node import Node
from gscope.records import dataclass


class LiteralKind(Enum):
    """How a literal was written, and with it the Python type of its value."""

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
class LiteralSyntax(Node):
    """A constant; a sign before a number is a `Unary` around it."""

    value: LiteralValue
    kind: LiteralKind


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column by name: ``len``, ``S.len``, ``inner.srcIP``, ``S.inner.srcIP``."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterReference(Node):
    """``$name``: a value given when the query starts, declared in PARAM."""

    name: str


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """``#NAME#``: the value of an entry of the query's DEFINE block."""

    name: str


@dataclass(frozen=True, slots=True)
class Property(Node):
    """``@name``: a property of the interface that a packet came from."""

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
    CONCATENATE = "||"
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
    """Two operands and the operator between them, which gives the node its position."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function, predicate or aggregate with its arguments.

    Attributes:
        name: as written; only the catalog knows which of the three it is.
        args: empty for ``f()`` and ``count(*)``.
        star: whether it is ``count(*)``.
        distinct: whether it is ``count(DISTINCT x)``.
        bracketed: whether it is ``p[a, b]``, the spelling of predicates.
        superaggregate: whether it is ``sum$(x)``, over the supergroup instead of the group.
        filter: the condition of ``sum(x) FILTER (WHERE condition)``, None without one.
    """

    name: str
    args: tuple[Expression, ...]
    star: bool = False
    distinct: bool = False
    bracketed: bool = False
    superaggregate: bool = False
    filter: Expression | None = None


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


@dataclass(frozen=True, slots=True)
class IsTruth(Node):
    """``operand IS [NOT] TRUE`` or ``IS [NOT] FALSE``."""

    operand: Expression
    truth: bool
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Node):
    """``left IS [NOT] DISTINCT FROM right``: NULL equals NULL and nothing else."""

    left: Expression
    right: Expression
    negated: bool = False


Expression: TypeAlias = (
    LiteralSyntax
    | Name
    | ParameterReference
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
    | IsTruth
    | IsDistinct
)
