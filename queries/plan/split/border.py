"""The border between LFTA and HFTA, at which expressions are cut.

``interface`` is constant in a stream, so no LFTA ever computes with it: a predicate over it alone
chooses the interfaces at planning time, and everything else reads it as a column above the border.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call as plain_call
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.temporal import ordering_of
from gscope.queries.catalog.safety import is_lfta_output, is_lfta_safe
from gscope.queries.catalog.scalar.lookups import LOOKUPS
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.schema import ColumnSchema, free_name
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTERFACE = "interface"


def reads_interface(expression: Expression) -> bool:
    """Return whether ``expression`` reads the name of the interface."""
    return any(map(_is_interface, walk(expression)))


def reads_packet(expression: Expression) -> bool:
    """Return whether ``expression`` reads any field but the name of the interface."""
    return any(isinstance(p, PacketField) and p.name != INTERFACE for p in walk(expression))


def is_low(expression: Expression) -> bool:
    """Return whether an LFTA can compute ``expression``."""
    return not reads_interface(expression) and is_lfta_safe(expression)


def is_low_key(expression: Expression) -> bool:
    """Return whether an LFTA can group by ``expression``: its table holds values of fixed size."""
    return is_low(expression) and expression.type is not GsqlType.STRING


def can_group_by(term: Expression) -> bool:
    """Return whether groups of an LFTA have one value of ``term``: a key, or the interface.

    A value that is looked up is that of the groups of its arguments, of which the node above the
    border combines those that have the same value.
    """
    if is_low_key(term) or _is_interface(term):
        return True
    return (
        isinstance(term, Call)
        and any(isinstance(part, Call) and part.function in LOOKUPS for part in walk(term))
        and all(isinstance(a, Literal) or can_group_by(a) for a in term.arguments)
    )


def _is_interface(expression: Expression) -> bool:
    return isinstance(expression, PacketField) and expression.name == INTERFACE


def choose_interfaces(
    interfaces: Sequence[str], predicates: Sequence[Expression]
) -> tuple[tuple[str, ...], tuple[Expression, ...]]:
    """Return the interfaces that the predicates allow, and the predicates still to be tested.

    Predicates over ``interface`` alone choose the interfaces.
    """
    static = [p for p in predicates if reads_interface(p) and not reads_packet(p)]
    others = tuple(p for p in predicates if p not in static)
    chosen = tuple(n for n in interfaces if all(_admits(p, n) for p in static))
    return chosen, others


def _admits(predicate: Expression, interface: str) -> bool:
    return evaluate(predicate, lambda _: interface.encode()) is True


@dataclass(slots=True)
class Border:
    """The columns that an LFTA ships, collected while the expressions above are rewritten.

    Attributes:
        shipped: the name of the column for each expression that the LFTA computes.
        has_interface: whether an expression above reads ``interface``.
    """

    shipped: dict[Expression, str] = field(default_factory=dict)
    has_interface: bool = False

    def lift(self, expression: Expression, name: str = "") -> Expression:
        """Return ``expression`` over shipped columns: its greatest low parts are computed low.

        Args:
            expression: an expression over packet fields.
            name: the name of the column if the whole expression is low.
        """
        if isinstance(expression, Literal):
            return expression
        if _is_interface(expression):
            self.has_interface = True
            return Column(INTERFACE, expression.type, is_nullable=False)
        if is_lfta_output(expression) and not reads_interface(expression):
            return self.ship(expression, name)
        assert isinstance(expression, Call), expression
        arguments = tuple(self.lift(a) for a in _cut(expression))
        return Call(expression.function, arguments, expression.type, expression.is_nullable)

    def ship(self, expression: Expression, name: str = "") -> Column:
        """Let the LFTA compute ``expression``, once, and return the column that holds it."""
        if expression not in self.shipped:
            if not name:
                name = "c"
                if isinstance(expression, PacketField):
                    name = expression.name.replace(".", "_")
            self.shipped[expression] = free_name(name, {*self.shipped.values(), INTERFACE})
        return Column(self.shipped[expression], expression.type, expression.is_nullable)

    @property
    def columns(self) -> tuple[NamedExpression, ...]:
        """The shipped columns, in the order in which they were first needed.

        If nothing else is shipped it is the time, because rows without columns cannot be counted.
        """
        if not self.shipped and not self.has_interface:
            self.ship(PacketField("time", GsqlType.INT, is_nullable=False))
        return tuple(NamedExpression(name, e) for e, name in self.shipped.items())


def declarations(expressions: Iterable[Expression]) -> tuple[Call, ...]:
    """Return the orders that are declared in ``expressions``, each once."""
    parts = (part for expression in expressions for part in walk(expression))
    return tuple(
        dict.fromkeys(
            part for part in parts if isinstance(part, Call) and declared_ordering(part) is not None
        )
    )


def _cut(call: Call) -> tuple[Expression, ...]:
    """Return the arguments of a call above the border, payloads cut to the bytes that it reads."""
    needed = FUNCTIONS[call.function].needs_bytes
    if needed is None:
        return call.arguments
    return tuple(
        plain_call("str_truncate", argument, Literal(needed, GsqlType.INT))
        if isinstance(argument, PacketField) and argument.type is GsqlType.STRING
        else argument
        for argument in call.arguments
    )


def column_schema(named: NamedExpression) -> ColumnSchema:
    """Return the schema of a column computed from packet fields, its ordering inferred."""
    e = named.expression
    return ColumnSchema(named.name, e.type, e.is_nullable, ordering_of(e))
