"""Expressions → canonical GSQL, with brackets only where they are needed."""

from __future__ import annotations

from functools import singledispatch

from gscope.queries.gsql import nodes
from gscope.queries.gsql.literals import write_literal
from gscope.queries.gsql.nodes import BinaryOperator, UnaryOperator

# The precedence of expressions, lowest first: the levels of the grammar.
_OR, _AND, _NOT, _COMPARISON, _BIT_OR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(
    11
)

_BINARY_LEVEL = {
    BinaryOperator.OR: _OR,
    BinaryOperator.AND: _AND,
    BinaryOperator.EQUAL: _COMPARISON,
    BinaryOperator.NOT_EQUAL: _COMPARISON,
    BinaryOperator.LESS: _COMPARISON,
    BinaryOperator.LESS_EQUAL: _COMPARISON,
    BinaryOperator.GREATER: _COMPARISON,
    BinaryOperator.GREATER_EQUAL: _COMPARISON,
    BinaryOperator.BIT_OR: _BIT_OR,
    BinaryOperator.BIT_AND: _BIT_AND,
    BinaryOperator.SHIFT_LEFT: _SHIFT,
    BinaryOperator.SHIFT_RIGHT: _SHIFT,
    BinaryOperator.ADD: _SUM,
    BinaryOperator.SUBTRACT: _SUM,
    BinaryOperator.CONCATENATE: _SUM,
    BinaryOperator.MULTIPLY: _PRODUCT,
    BinaryOperator.DIVIDE: _PRODUCT,
    BinaryOperator.MODULO: _PRODUCT,
    BinaryOperator.INTEGER_DIVIDE: _PRODUCT,
}


def print_expression(expression: nodes.Expression) -> str:
    """Return an expression as text."""
    return _print(expression)


def _level(expression: nodes.Expression) -> int:
    match expression:
        case nodes.Binary():
            return _BINARY_LEVEL[expression.operator]
        case nodes.Unary():
            return _NOT if expression.operator is UnaryOperator.NOT else _UNARY
        case nodes.InList() | nodes.Between() | nodes.Like() | nodes.IsNull():
            return _COMPARISON
        case nodes.IsTruth() | nodes.IsDistinct():
            return _COMPARISON
        case _:
            return _PRIMARY


def _at_least(level: int, expression: nodes.Expression) -> str:
    text = _print(expression)
    return text if _level(expression) >= level else f"({text})"


@singledispatch
def _print(expression: nodes.Expression) -> str:
    message = f"no expression: {expression!r}"
    raise TypeError(message)


@_print.register
def _(expression: nodes.LiteralSyntax) -> str:
    return write_literal(expression)


@_print.register
def _(expression: nodes.Name) -> str:
    return ".".join(expression.parts)


@_print.register
def _(expression: nodes.ParameterReference) -> str:
    return f"${expression.name}"


@_print.register
def _(expression: nodes.Definition) -> str:
    return f"#{expression.name}#"


@_print.register
def _(expression: nodes.Property) -> str:
    return f"@{expression.name}"


@_print.register
def _(expression: nodes.Unary) -> str:
    if expression.operator is UnaryOperator.NOT:
        return f"NOT {_at_least(_NOT, expression.operand)}"
    operand = _at_least(_UNARY, expression.operand)
    starts_comment = expression.operator is UnaryOperator.NEGATE and operand.startswith("-")
    return f"-({operand})" if starts_comment else f"{expression.operator.value}{operand}"


@_print.register
def _(expression: nodes.Binary) -> str:
    level = _BINARY_LEVEL[expression.operator]
    # Operators group to the left; comparisons do not chain at all.
    left = _at_least(level + (level == _COMPARISON), expression.left)
    right = _at_least(level + 1, expression.right)
    return f"{left} {expression.operator.value} {right}"


@_print.register
def _(expression: nodes.FunctionCall) -> str:
    arguments = (
        "*" if expression.star else ", ".join(_print(argument) for argument in expression.args)
    )
    if expression.distinct:
        arguments = f"DISTINCT {arguments}"
    name = f"{expression.name}$" if expression.superaggregate else expression.name
    call = f"{name}[{arguments}]" if expression.bracketed else f"{name}({arguments})"
    if expression.filter is None:
        return call
    return f"{call} FILTER (WHERE {_print(expression.filter)})"


@_print.register
def _(expression: nodes.Case) -> str:
    words = ["CASE"]
    if expression.operand is not None:
        words.append(_print(expression.operand))
    words += [
        f"WHEN {_print(one.condition)} THEN {_print(one.result)}" for one in expression.branches
    ]
    if expression.otherwise is not None:
        words.append(f"ELSE {_print(expression.otherwise)}")
    return " ".join([*words, "END"])


@_print.register
def _(expression: nodes.InList) -> str:
    choices = ", ".join(_print(choice) for choice in expression.choices)
    return f"{_operand(expression)} IN ({choices})"


@_print.register
def _(expression: nodes.Between) -> str:
    low, high = (_at_least(_BIT_OR, bound) for bound in (expression.low, expression.high))
    return f"{_operand(expression)} BETWEEN {low} AND {high}"


@_print.register
def _(expression: nodes.Like) -> str:
    return f"{_operand(expression)} LIKE {_at_least(_BIT_OR, expression.pattern)}"


@_print.register
def _(expression: nodes.IsNull) -> str:
    operand = _at_least(_BIT_OR, expression.operand)
    return f"{operand} IS NOT NULL" if expression.negated else f"{operand} IS NULL"


@_print.register
def _(expression: nodes.IsTruth) -> str:
    operand = _at_least(_BIT_OR, expression.operand)
    negation = "NOT " if expression.negated else ""
    return f"{operand} IS {negation}{'TRUE' if expression.truth else 'FALSE'}"


@_print.register
def _(expression: nodes.IsDistinct) -> str:
    left, right = (_at_least(_BIT_OR, side) for side in (expression.left, expression.right))
    negation = "NOT " if expression.negated else ""
    return f"{left} IS {negation}DISTINCT FROM {right}"


def _operand(expression: nodes.InList | nodes.Between | nodes.Like) -> str:
    operand = _at_least(_BIT_OR, expression.operand)
    return f"{operand} NOT" if expression.negated else operand
