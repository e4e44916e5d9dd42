"""Operators of the text → canonical functions, by the types of their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.conversions import as_string, convert, predicate, unify_compared
from gscope.queries.analysis.typing.intervals import interval
from gscope.queries.analysis.typing.named_values import read_flag_mask
from gscope.queries.analysis.typing.networks import split_networks
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import BinaryOperator, UnaryOperator

if TYPE_CHECKING:
    from gscope.errors import Position

_BOOL, _INT, _FLOAT = GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT
_STRING = GsqlType.STRING
_IP, _TIMESTAMP, _INTERVAL = GsqlType.IP, GsqlType.TIMESTAMP, GsqlType.INTERVAL

_LOGIC = {BinaryOperator.AND: "and", BinaryOperator.OR: "or"}
_COMPARISONS = {
    BinaryOperator.EQUAL: "eq",
    BinaryOperator.NOT_EQUAL: "ne",
    BinaryOperator.LESS: "lt",
    BinaryOperator.LESS_EQUAL: "le",
    BinaryOperator.GREATER: "gt",
    BinaryOperator.GREATER_EQUAL: "ge",
}
_BITS = {
    BinaryOperator.BIT_AND: "bit_and",
    BinaryOperator.BIT_OR: "bit_or",
    BinaryOperator.SHIFT_LEFT: "shl",
    BinaryOperator.SHIFT_RIGHT: "shr",
}
_SHIFTS = (BinaryOperator.SHIFT_LEFT, BinaryOperator.SHIFT_RIGHT)
_ARITHMETIC = {
    BinaryOperator.ADD: "add",
    BinaryOperator.SUBTRACT: "sub",
    BinaryOperator.MULTIPLY: "mul",
    BinaryOperator.MODULO: "mod",
}
_DIVISIONS = frozenset({BinaryOperator.DIVIDE, BinaryOperator.INTEGER_DIVIDE})
_TIMES: dict[tuple[BinaryOperator, GsqlType, GsqlType], str] = {
    (BinaryOperator.SUBTRACT, _TIMESTAMP, _TIMESTAMP): "ts_diff",
    (BinaryOperator.ADD, _TIMESTAMP, _INTERVAL): "ts_add",
    (BinaryOperator.SUBTRACT, _TIMESTAMP, _INTERVAL): "ts_sub",
    (BinaryOperator.DIVIDE, _TIMESTAMP, _INTERVAL): "ts_idiv",
    (BinaryOperator.INTEGER_DIVIDE, _TIMESTAMP, _INTERVAL): "ts_idiv",
    (BinaryOperator.BIT_AND, _IP, _INT): "ip_mask",
}
_COMMUTING = frozenset({BinaryOperator.ADD, BinaryOperator.BIT_AND})


def binary(
    operator: BinaryOperator, left: Expression, right: Expression, position: Position
) -> Expression:
    """Return ``left operator right``.

    Raises:
        TypeMismatchError: the operator does not apply to these types.
    """
    if operator in _LOGIC:
        where = f"as an operand of {operator.value}"
        return apply(
            _LOGIC[operator], *(predicate(side, position, where) for side in (left, right))
        )
    network = _in_network(operator, left, right, position)
    if network is not None:
        return network
    if operator in _COMPARISONS:
        return apply(_COMPARISONS[operator], *unify_compared((left, right), position))
    if operator is BinaryOperator.CONCATENATE:
        return _concatenate(left, right, position)
    if _INTERVAL in (left.type, right.type) and _TIMESTAMP not in (left.type, right.type):
        return interval(operator, left, right, position)
    if (
        operator in _COMMUTING
        and left.type in (_INTERVAL, _INT)
        and right.type in (_TIMESTAMP, _IP)
    ):
        left, right = right, left
    special = _TIMES.get((operator, left.type, right.type))
    if special is not None:
        return apply(special, left, right)
    if operator is BinaryOperator.BIT_AND:
        left, right = read_flag_mask((left, right), position)
    left, right = (
        _numeric(left, operator.value, position),
        _numeric(right, operator.value, position),
    )
    if operator in _BITS:
        left, right = (_integer(side, operator, position) for side in (left, right))
        if operator in _SHIFTS:
            _check_shift(right, position)
        return apply(_BITS[operator], left, right)
    if operator in _DIVISIONS:
        return _divide(operator, left, right, position)
    if operator is BinaryOperator.SUBTRACT and _is_remainder_of(left, right):
        # x - x % n is n times the quotient, exactly, and so it is ordered like x.
        step = right.arguments[1] if isinstance(right, Call) else right
        return apply("mul_int", apply("idiv_int", left, step), step)
    if _FLOAT in (left.type, right.type):
        sides = (convert(side, _FLOAT, position) for side in (left, right))
        return apply(f"{_ARITHMETIC[operator]}_float", *sides)
    return apply(f"{_ARITHMETIC[operator]}_int", left, right)


def ratio(left: Expression, right: Expression, position: Position) -> Expression:
    """Return ``left / right`` with its fraction, even if both are INT and the divisor is constant.

    Raises:
        TypeMismatchError: a side is not a number, nor a time divided by an interval.
    """
    if left.type is _TIMESTAMP:
        return binary(BinaryOperator.DIVIDE, left, right, position)
    numbers = (_numeric(side, BinaryOperator.DIVIDE.value, position) for side in (left, right))
    return apply("div_float", *(convert(side, _FLOAT, position) for side in numbers))


def unary(operator: UnaryOperator, operand: Expression, position: Position) -> Expression:
    """Return ``operator operand``.

    Raises:
        TypeMismatchError: the operator does not apply to this type.
    """
    if operator is UnaryOperator.NOT:
        return apply("not", predicate(operand, position, "after NOT"))
    operand = _numeric(operand, operator.value, position)
    if operator is UnaryOperator.PLUS:
        return operand
    if operator is UnaryOperator.INVERT:
        return apply("bit_not", convert(operand, _INT, position, "after ~"))
    return apply("neg_float" if operand.type is _FLOAT else "neg_int", operand)


def _in_network(
    operator: BinaryOperator, left: Expression, right: Expression, position: Position
) -> Expression | None:
    """Return ``ip = '10.0.0.0/8'`` as a test of the network; None for any other comparison.

    No address is equal to a network, so the comparison can mean nothing else.
    """
    if operator not in (BinaryOperator.EQUAL, BinaryOperator.NOT_EQUAL):
        return None
    for address, network in ((left, right), (right, left)):
        others, tests = split_networks(address, (network,), position)
        if tests and not others:
            return apply("not", *tests) if operator is BinaryOperator.NOT_EQUAL else tests[0]
    return None


def _concatenate(left: Expression, right: Expression, position: Position) -> Expression:
    if _STRING not in (left.type, right.type):
        message = f"|| joins texts, not {left.type.value} and {right.type.value}"
        remedy = "between conditions write OR; STRING(x) || STRING(y) joins the texts of others"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return apply("concat", as_string(left, position), as_string(right, position))


def _is_remainder_of(value: Expression, remainder: Expression) -> bool:
    """Return whether ``remainder`` is that of ``value`` by a positive constant."""
    match remainder:
        case Call("mod_int", (dividend, Literal(int(divisor)))):
            return dividend == value and divisor > 0
    return False


def _divide(
    operator: BinaryOperator, left: Expression, right: Expression, position: Position
) -> Expression:
    """Return a quotient: integer by integer constant and DIV truncate, any other is FLOAT."""
    are_integers = left.type is _INT and right.type is _INT
    truncates = operator is BinaryOperator.INTEGER_DIVIDE
    if are_integers and (truncates or isinstance(right, Literal)):
        return apply("idiv_int", left, right)
    ratio = apply("div_float", *(convert(side, _FLOAT, position) for side in (left, right)))
    return apply("float_to_int", ratio) if truncates else ratio


def _numeric(expression: Expression, operator: str, position: Position) -> Expression:
    if expression.type in (_INT, _FLOAT):
        return expression
    if expression.type in (_BOOL, GsqlType.NULL):
        return convert(expression, _INT, position)
    message = f"{operator} does not work on {expression.type.value}"
    raise TypeMismatchError(message, position=position, remedy=_HINTS.get(expression.type, ""))


def _integer(expression: Expression, operator: BinaryOperator, position: Position) -> Expression:
    return convert(expression, _INT, position, f"as an operand of {operator.value}")


def _check_shift(count: Expression, position: Position) -> None:
    value = count.value if isinstance(count, Literal) else None
    if isinstance(value, int) and not 0 <= value < 64:
        message = f"invalid shift: expected 0 to 63 bits, got {value}"
        raise TypeMismatchError(message, position=position, remedy="an INT has 64 bits")


_HINTS = {
    _TIMESTAMP: (
        "timestamp / INTERVAL '60 sec' and timestamp + INTERVAL '1 sec' work; "
        "time counts whole seconds: time/60"
    ),
    _INTERVAL: "add an interval to a timestamp, or divide a timestamp by it",
    _IP: "ip & 0xFFFFFF00 masks, prefix(ip, 24) is the readable way, INT(ip) is the IPv4 value",
    GsqlType.STRING: "INT(x) reads a number from text",
}
