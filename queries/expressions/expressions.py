"""Typed expressions, which mean the same to every back end: LFTA kernel, interpreter, Spark.

Operators are functions like any other; ``catalog/functions.py`` lists each with its types and
facts. After analysis the arguments of a call have exactly the types that its entry there lists:
every conversion is a call of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.expressions.types import GsqlType

Value = bool | int | float | bytes | None
"""A Python value of a GSQL type; see ``GsqlType`` for the type of each."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; ``value`` is None for NULL."""

    value: Value
    type: GsqlType

    @property
    def is_nullable(self) -> bool:
        """Whether the value can be NULL."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class PacketField:
    """A field read from the packet, under its name in ``capture/packet/fields.py``."""

    name: str
    type: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the operator's input; ``input`` numbers the inputs where there are several."""

    name: str
    type: GsqlType
    is_nullable: bool
    input: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to arguments; ``function`` names its catalog entry."""

    function: str
    arguments: tuple[Expression, ...]
    type: GsqlType
    is_nullable: bool


Expression = Literal | PacketField | Column | Call


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """An expression and the name of the column that it fills."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call that is not an expression, such as one of an aggregate, and its column.

    Attributes:
        name: the column that holds the result.
        function: what is called.
        arguments: the arguments, constants among them.
        type: the type of the result.
        is_nullable: whether the result may be NULL.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...]
    type: GsqlType
    is_nullable: bool


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its parts, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)
