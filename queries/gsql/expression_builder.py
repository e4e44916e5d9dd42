# ruff: noqa: D102 - the methods are the rules of grammar.lark
"""Rules of the grammar for expressions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lark import Token, Transformer, v_args

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql import nodes
from gscope.queries.gsql.casts import cast_function
from gscope.queries.gsql.constants_list import read_list
from gscope.queries.gsql.literals import read_literal
from gscope.queries.gsql.scanner import span, token_position

if TYPE_CHECKING:
    from gscope.queries.gsql.nodes import Expression

MAX_NAME_PARTS = 4
_OTHER_CASTS = frozenset({"TRY_CAST", "SAFE_CAST"})

_CONTINUOUS = frozenset({"percentile_cont", "quantile_cont"})
"""Names in SQL of ``quantile``, which interpolates between neighbours."""

_UNARY = {
    "NOT": nodes.UnaryOperator.NOT,
    "BANG": nodes.UnaryOperator.NOT,
    "MINUS": nodes.UnaryOperator.NEGATE,
    "PLUS": nodes.UnaryOperator.PLUS,
    "TILDE": nodes.UnaryOperator.INVERT,
}
_BINARY = {operator.value: operator for operator in nodes.BinaryOperator} | {
    "!=": nodes.BinaryOperator.NOT_EQUAL
}


@v_args(inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """The actions for the rules of expressions."""

    def binary(self, left: Expression, operator: Token, right: Expression) -> nodes.Binary:
        return nodes.Binary(
            _BINARY[operator.upper()], left, right, position=token_position(operator)
        )

    def unary(self, operator: Token, operand: Expression) -> nodes.Unary:
        return nodes.Unary(_UNARY[operator.type], operand, position=token_position(operator))

    def in_list(
        self,
        operand: Expression,
        negation: Token | None,
        word: Token,
        choices: tuple[Expression, ...],
    ) -> nodes.InList:
        return nodes.InList(operand, choices, negation is not None, position=token_position(word))

    def in_constants(
        self, operand: Expression, negation: Token | None, word: Token, constants: Token
    ) -> nodes.InList:
        choices = tuple(read_list(constants, token_position(constants)))
        return nodes.InList(operand, choices, negation is not None, position=token_position(word))

    def between(
        self,
        operand: Expression,
        negation: Token | None,
        word: Token,
        low: Expression,
        high: Expression,
    ) -> nodes.Between:
        return nodes.Between(
            operand, low, high, negation is not None, position=token_position(word)
        )

    def like(
        self, operand: Expression, negation: Token | None, word: Token, pattern: Expression
    ) -> nodes.Like:
        return nodes.Like(operand, pattern, negation is not None, position=token_position(word))

    def ilike(
        self, operand: Expression, negation: Token | None, word: Token, pattern: Expression
    ) -> nodes.Like:
        low = nodes.FunctionCall("lower", (operand,), position=operand.position)
        low_pattern = nodes.FunctionCall("lower", (pattern,), position=pattern.position)
        return nodes.Like(low, low_pattern, negation is not None, position=token_position(word))

    def is_null(
        self, operand: Expression, word: Token, negation: Token | None, _null: Token
    ) -> nodes.IsNull:
        return nodes.IsNull(operand, negation is not None, position=token_position(word))

    def is_truth(
        self, operand: Expression, word: Token, negation: Token | None, truth: Token
    ) -> nodes.IsTruth:
        is_true = truth.type == "TRUE"
        return nodes.IsTruth(operand, is_true, negation is not None, position=token_position(word))

    def is_distinct(
        self,
        left: Expression,
        word: Token,
        negation: Token | None,
        _distinct: Token,
        right: Expression,
    ) -> nodes.IsDistinct:
        return nodes.IsDistinct(left, right, negation is not None, position=token_position(word))

    def cast(
        self, name: Token, operand: Expression, type_name: Token, length: Token | None
    ) -> nodes.FunctionCall:
        if name.upper() != "CAST":
            message = f"{name} takes no AS"
            remedy = (
                f"write CAST(x AS {type_name}), which gives NULL where the value does not fit"
                if name.upper() in _OTHER_CASTS
                else "write a comma"
            )
            raise GsqlSyntaxError(message, position=token_position(name), remedy=remedy)
        return _call(cast_function(type_name, has_length=length is not None), (operand,))

    def postfix_cast(
        self, operand: Expression, _colons: Token, type_name: Token, length: Token | None
    ) -> nodes.FunctionCall:
        return _call(cast_function(type_name, has_length=length is not None), (operand,))

    def within_group(
        self, call: nodes.FunctionCall, word: Token, value: Expression, direction: Token | None
    ) -> nodes.FunctionCall:
        name = call.name.lower()
        if name not in _CONTINUOUS or len(call.args) != 1:
            message = f"{call.name} does not take WITHIN GROUP"
            remedy = (
                "percentile_cont(0.95) WITHIN GROUP (ORDER BY len) does; "
                "the most frequent values are approx_top_k(destPort, 10)"
            )
            raise GsqlSyntaxError(message, position=token_position(word), remedy=remedy)
        if direction is not None and direction.type == "DESC":
            message = f"{call.name} orders its values upwards"
            remedy = "leave DESC out, and write percentile_cont(0.05) for percentile_cont(0.95)"
            raise GsqlSyntaxError(message, position=token_position(direction), remedy=remedy)
        return replace(call, name="quantile", args=(value, *call.args))

    def column(self, name: Token) -> nodes.Name:
        return nodes.Name((str(name),), position=token_position(name))

    def longer_column(self, front: nodes.Name, name: Token) -> nodes.Name:
        if len(front.parts) == MAX_NAME_PARTS:
            message = f"a name has at most {MAX_NAME_PARTS} parts"
            raise GsqlSyntaxError(message, position=token_position(name))
        return nodes.Name((*front.parts, str(name)), position=span(front.position, name))

    def call(self, name: Token, *parts: Any) -> nodes.FunctionCall:
        distinct, arguments = parts[-2:]
        return _call(name, arguments, distinct=distinct is not None)

    def empty_call(self, name: Token, *_: Token) -> nodes.FunctionCall:
        return _call(name, ())

    def filtered_call(
        self, call: nodes.FunctionCall, _filter: Token, condition: Expression
    ) -> nodes.FunctionCall:
        return replace(call, filter=condition)

    def star_call(self, name: Token, *_: Token) -> nodes.FunctionCall:
        return _call(name, (), star=True)

    def predicate(
        self, name: Token, _bracket: Token, arguments: tuple[Expression, ...]
    ) -> nodes.FunctionCall:
        return _call(name, arguments, bracketed=True)

    def empty_predicate(self, name: Token, _bracket: Token) -> nodes.FunctionCall:
        return _call(name, (), bracketed=True)

    def arguments(self, *arguments: Expression) -> tuple[Expression, ...]:
        return arguments

    def case(self, word: Token, operand: Expression | None, *parts: Any) -> nodes.Case:
        *branches, otherwise = parts
        return nodes.Case(operand, tuple(branches), otherwise, position=token_position(word))

    def case_branch(
        self, word: Token, condition: Expression, result: Expression
    ) -> nodes.CaseBranch:
        return nodes.CaseBranch(condition, result, position=token_position(word))

    def parameter(self, name: Token) -> nodes.ParameterReference:
        return nodes.ParameterReference(str(name), position=token_position(name))

    def definition(self, name: Token) -> nodes.Definition:
        return nodes.Definition(str(name), position=token_position(name))

    def property(self, name: Token) -> nodes.Property:
        return nodes.Property(str(name), position=token_position(name))

    def literal(self, token: Token) -> nodes.LiteralSyntax:
        return read_literal(token.type, str(token), token_position(token))


def _call(
    name: Token,
    arguments: tuple[Expression, ...],
    *,
    star: bool = False,
    distinct: bool = False,
    bracketed: bool = False,
) -> nodes.FunctionCall:
    return nodes.FunctionCall(
        str(name),
        arguments,
        star=star,
        distinct=distinct,
        bracketed=bracketed,
        superaggregate=name.type == "SUPERAGGREGATE",
        position=token_position(name),
    )
