"""Declared orders: the user's promise that the values of a field of packets move one way.

``increasing(x)``, ``decreasing(x)`` and ``banded(x, b)`` are ``x`` itself. The promise is enforced
where packets are read: a packet that breaks the order, or has no ``x``, is left out and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter
from gscope.queries.expressions.expressions import Call, Literal
from gscope.queries.expressions.types import DECREASING, INCREASING, Direction, GsqlType, Ordering

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, Value


def _not_negative(value: Value) -> str:
    if isinstance(value, int) and value >= 0:
        return ""
    return f"invalid band: expected 0 or more, got {value!r}"


_ANY = Parameter(None)
_BAND = Parameter(GsqlType.INT, is_literal=True, objection=_not_negative)

ORDERS = {
    name: FunctionEntry(
        name,
        parameters,
        None,
        lambda value, _band=0: value,
        is_never_null=True,
        # Only output columns of a selection can have them, because the selection enforces them.
        is_lfta_safe=False,
    )
    for name, parameters in (
        ("increasing", (_ANY,)),
        ("decreasing", (_ANY,)),
        ("banded", (_ANY, _BAND)),
    )
}


def declared_ordering(expression: Expression) -> Ordering | None:
    """Return the order that ``expression`` declares; None if it declares none."""
    match expression:
        case Call("increasing"):
            return INCREASING
        case Call("decreasing"):
            return DECREASING
        case Call("banded", (_, Literal(int(band)))):
            return Ordering(Direction.INCREASING, band)
    return None
