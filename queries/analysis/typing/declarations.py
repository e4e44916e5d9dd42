"""Orders that the user declares: where they are allowed, and where they have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.safety import is_lfta_safe
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import Call, Expression, PacketField, walk
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.errors import Position

_ORDERED_TYPES = (GsqlType.INT, GsqlType.TIMESTAMP)


def check_declaration(call: Expression, name: str, position: Position) -> None:
    """Refuse a declared order of anything but fields of packets, where it is enforced.

    Raises:
        TypeMismatchError: the order is of another expression.
    """
    if not isinstance(call, Call):
        message = f"{name} declares the order of a field, not of a constant"
        raise TypeMismatchError(message, position=position)
    what = call.arguments[0]
    if what.type not in _ORDERED_TYPES:
        message = f"{name} takes INT or TIMESTAMP, not {what.type.value}"
        raise TypeMismatchError(message, position=position)
    is_of_packets = any(isinstance(part, PacketField) for part in walk(what))
    if not is_of_packets or not is_lfta_safe(what):
        message = (
            f"{name} declares the order of fields of packets, which is enforced at the interface"
        )
        remedy = "declare it in the query that reads the protocol"
        raise TypeMismatchError(message, position=position, remedy=remedy)


def undeclared(expression: Expression) -> Expression:
    """Return ``expression`` without declarations of order: a condition tests plain values."""
    if not any(declared_ordering(part) is not None for part in walk(expression)):
        return expression
    assert isinstance(expression, Call)
    if declared_ordering(expression) is not None:
        return undeclared(expression.arguments[0])
    return apply(expression.function, *(undeclared(a) for a in expression.arguments))
