"""Conversions of constants: a result of NULL can only be a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import text_of
from gscope.queries.analysis.typing.named_values import right_form
from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.gsql import nodes

_TO_NUMBER = frozenset({"int", "uint", "ushort", "llong", "ullong", "float", "ipv4", "to_int"})
_CASTS = _TO_NUMBER | {"bool", "string", "strtoip", "timestamp", "timeval"}


def check_cast(
    node: nodes.FunctionCall, arguments: Sequence[Expression], result: Expression
) -> None:
    """Refuse a conversion of constants that gives NULL.

    Raises:
        TypeMismatchError: the result is NULL although none of the constants is.
    """
    name = node.name.lower()
    if name not in _CASTS or not isinstance(result, Literal) or result.value is not None:
        return
    constants = [a for a in arguments if isinstance(a, Literal) and a.value is not None]
    if not constants or len(constants) < len(arguments):
        return
    message = f"{node.name} of {_shown(constants[0])} is NULL"
    raise TypeMismatchError(message, position=node.position, remedy=_remedy(name, constants[0]))


def _shown(constant: Literal) -> str:
    match constant.type:
        case GsqlType.STRING:
            return repr(text_of(constant))
        case GsqlType.IP:
            return format_ip(int(constant.value or 0))
    return str(constant.value)


def _remedy(name: str, constant: Literal) -> str:
    if constant.type is GsqlType.IP:
        return (
            "only an IPv4 address has a number; compare the address itself: srcIP = '2001:db8::1'"
        )
    if constant.type is not GsqlType.STRING:
        return ""
    if name == "strtoip":
        return "write an address such as '10.0.0.1'; for networks write in_net[ip, '10.0.0.0/8']"
    text = text_of(constant)
    return f"{text!r} is not a number of 64 bits; {right_form(text)}"
