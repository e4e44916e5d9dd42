"""What an LFTA can compute.

Kernels know numbers and addresses. A STRING of a packet is a range of the captured bytes: an LFTA
may test, measure and ship it, but cannot make a new one.
"""

from __future__ import annotations

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.orders import ORDERS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    PacketField,
)
from gscope.queries.expressions.types import GsqlType

_TESTS = frozenset(
    {"str_match_start", "byte_match_offset", "str_exists_substr", "length", "is_null"}
)
_EQUALITY = frozenset({"eq", "ne"})


def is_lfta_safe(expression: Expression) -> bool:
    """Return whether a kernel can compute ``expression``: a predicate, key or argument."""
    return expression.type is not GsqlType.STRING and _is_computable(expression)


def is_lfta_output(expression: Expression) -> bool:
    """Return whether an LFTA selection can have ``expression`` as an output column.

    Besides what ``is_lfta_safe`` allows, these are a STRING field, its first bytes (only those are
    shipped), and expressions over fields whose order is declared.
    """
    match expression:
        case Call("str_truncate", (PacketField(), Literal())):
            return True
    if expression.type is GsqlType.STRING:
        return _is_string_leaf(expression)
    return _is_computable(expression, allows_orders=True)


def _is_computable(expression: Expression, *, allows_orders: bool = False) -> bool:
    if not isinstance(expression, Call):
        return not isinstance(expression, Column)
    is_declared = allows_orders and expression.function in ORDERS
    if not is_declared and not FUNCTIONS[expression.function].is_lfta_safe:
        return False
    strings = [a for a in expression.arguments if a.type is GsqlType.STRING]
    if strings and not _allows_strings(expression, strings):
        return False
    return all(_is_computable(a, allows_orders=allows_orders) for a in expression.arguments)


def _allows_strings(expression: Call, strings: list[Expression]) -> bool:
    if not all(_is_string_leaf(s) or isinstance(s, Literal) for s in strings):
        return False
    if expression.function == "in_table":
        return expression.arguments[0].type is not GsqlType.STRING
    if expression.function in _EQUALITY:
        return any(isinstance(s, Literal) for s in strings)
    return expression.function in _TESTS


def _is_string_leaf(expression: Expression) -> bool:
    return isinstance(expression, PacketField) and expression.type is GsqlType.STRING
