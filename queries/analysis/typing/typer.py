"""Typing: syntax of an expression → typed expression, with every conversion as a call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gscope.errors import ResolveError, TypeMismatchError, UnsupportedError
from gscope.queries.analysis.typing import operators
from gscope.queries.analysis.typing.calls import scalar_builder
from gscope.queries.analysis.typing.casts import check_cast
from gscope.queries.analysis.typing.constants import apply, from_literal
from gscope.queries.analysis.typing.conversions import convert, predicate, unify, unify_compared
from gscope.queries.analysis.typing.networks import like_address, split_networks
from gscope.queries.analysis.typing.time_calls import (
    PACKET_TIME,
    ROUNDING,
    check_unit,
    takes_packet_time,
)
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.field_names import either_field
from gscope.queries.catalog.running import RUNNING
from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.catalog.scalar.tables import MOST_CHOICES, pack_table
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk
from gscope.queries.gsql.nodes import BinaryOperator
from gscope.queries.plan.sample_columns import describes_sample
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.analysis.typing.parameters import Substitutes


_OF_EITHER = {BinaryOperator.EQUAL: "or", BinaryOperator.NOT_EQUAL: "and"}
"""Comparisons with a name of two fields, and how those with each of them are joined."""

_TIMES = ("timestamp", "timeval", "to_timestamp")
"""Casts whose argument is in nanoseconds."""


SAMPLE_RATE = "sample_rate"
"""The column of every query with the rate at which its packets are sampled."""


def is_aggregate(node: nodes.FunctionCall) -> bool:
    """Return whether a call is one of an aggregate; ``sum$(x)`` is not."""
    name = node.name.lower()
    return not node.superaggregate and (name in AGGREGATES or name in RUNNING)


def is_sampling_call(node: nodes.FunctionCall) -> bool:
    """Return whether a call is one of a superaggregate or of a stateful function."""
    return node.superaggregate or node.name.lower() in STATEFUL


class Scope(Protocol):
    """What typing needs of an input: the meaning of its names and of its columns."""

    def resolve(self, name: nodes.Name) -> Expression:
        """Return the expression that ``name`` stands for, or raise ResolveError."""
        ...

    def rewrite(self, expression: Expression) -> Expression:
        """Return what a typed expression over the input stands for, usually itself."""
        ...

    def origin(self, expression: Expression) -> Expression:
        """Return ``expression`` with the expressions that its columns were computed from."""
        ...

    def has_aggregate(self, expression: Expression) -> bool:
        """Return whether a column in ``expression`` is the result of an aggregate."""
        ...


def _refuse_sampling(node: nodes.FunctionCall, typer: Typer) -> Expression:  # noqa: ARG001
    name = f"{node.name}$" if node.superaggregate else node.name
    message = f"{name} belongs to the sampling operator and is not allowed here"
    remedy = "call it in a query of one input with GROUP BY, outside of terms and of ORDER BY"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Typer:
    """The typing of expressions in one clause of a query.

    In HAVING of ``SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb HAVING count(*) > $n``:

    Attributes:
        name: returns what a column name stands for: for ``tb``, the key.
        substitutes: the value of ``$n``.
        aggregate: returns what an aggregate stands for: for ``count(*)``, the column of the groups;
            it raises where aggregates are not allowed.
        known: returns the expression that a whole piece of syntax stands for: for ``time/60``, the
            key; None if it has no such meaning.
        meaning: returns an expression with the expressions that its columns were computed from.
        rewrite: returns what a typed expression stands for, usually itself.
        has_aggregate: returns whether a column in an expression is the result of an aggregate.
        sampled: returns what a superaggregate or a call of a stateful function stands for, given
            this typer; it raises outside the sampling operator.
        of_sample: returns the column that describes a sample for which a name stands, if it has no
            other meaning; None for other names.
    """

    name: Callable[[nodes.Name], Expression]
    substitutes: Substitutes
    aggregate: Callable[[nodes.FunctionCall], Expression]
    known: Callable[[nodes.Expression], Expression | None] = lambda _: None
    meaning: Callable[[Expression], Expression] = lambda expression: expression
    rewrite: Callable[[Expression], Expression] = lambda expression: expression
    has_aggregate: Callable[[Expression], bool] = lambda _: False
    sampled: Callable[[nodes.FunctionCall, Typer], Expression] = _refuse_sampling
    of_sample: Callable[[nodes.Name], Expression | None] = lambda _: None

    @classmethod
    def over(
        cls,
        source: Scope,
        substitutes: Substitutes,
        aggregate: Callable[[nodes.FunctionCall], Expression],
        *,
        name: Callable[[nodes.Name], Expression] | None = None,
        is_term: bool = False,
    ) -> Typer:
        """Return a typer of expressions over the columns of ``source``.

        Args:
            source: an input.
            substitutes: see ``Typer``.
            aggregate: see ``Typer``.
            name: returns what a name stands for, if not what it does in ``source``.
            is_term: whether they are group-by terms, in which ``/`` makes buckets.
        """
        return cls(
            name or source.resolve,
            substitutes,
            aggregate,
            meaning=source.origin,
            rewrite=source.rewrite,
            has_aggregate=(lambda _: False) if is_term else source.has_aggregate,
        )

    def type(self, node: nodes.Expression) -> Expression:
        """Return the typed expression.

        Raises:
            GsqlError: a name is unknown, types do not match, or a construct is unsupported.
        """
        known = self.known(node)
        return self.rewrite(self._type(node)) if known is None else known

    def _type(self, node: nodes.Expression) -> Expression:
        match node:
            case nodes.LiteralSyntax():
                return from_literal(node)
            case nodes.Name():
                return self._named(node)
            case nodes.ParameterReference():
                return self.substitutes.parameter(node)
            case nodes.Definition():
                return self.substitutes.definition(node)
            case nodes.Property():
                message = f"this version does not support interface properties such as @{node.name}"
                raise UnsupportedError(message, position=node.position)
            case nodes.Unary():
                return self._unary(node)
            case nodes.Binary():
                return self._binary(node)
            case nodes.FunctionCall():
                return self._call(node)
            case nodes.Case():
                return self._case(node)
            case nodes.InList():
                return _negated(self._in_list(node), node.negated)
            case nodes.Between():
                return _negated(self._between(node), node.negated)
            case nodes.Like():
                return _negated(self._like(node), node.negated)
            case nodes.IsTruth():
                return _negated(self._is_truth(node), node.negated)
            case nodes.IsDistinct():
                return _negated(self._is_distinct(node), node.negated)
            case nodes.IsNull():
                return _negated(apply("is_null", self._typed_null(node.operand)), node.negated)

    def _named(self, node: nodes.Name) -> Expression:
        """Return what a name stands for; an input may have a column ``sample_rate`` of its own."""
        try:
            return self.name(node)
        except ResolveError:
            if tuple(part.lower() for part in node.parts) == (SAMPLE_RATE,):
                return apply(SAMPLE_RATE)
            column = self.of_sample(node)
            if column is None:
                raise
            return column

    def condition(self, node: nodes.Expression, where: str) -> Expression:
        """Return a typed expression, which must be a condition."""
        return predicate(self.type(node), node.position, where)

    def _binary(self, node: nodes.Binary) -> Expression:
        pair = self._either(node.left) if node.operator in _OF_EITHER else None
        if pair is not None:
            one, other = (self.type(replace(node, left=name)) for name in pair)
            return apply(_OF_EITHER[node.operator], one, other)
        sides = self.type(node.left), self.type(node.right)
        is_ratio = (
            _has_aggregate(node.left) or self.has_aggregate(sides[0]) or describes_sample(sides[0])
        )
        if node.operator is BinaryOperator.DIVIDE and is_ratio:
            return operators.ratio(*sides, node.position)
        return operators.binary(node.operator, *sides, node.position)

    def _unary(self, node: nodes.Unary) -> Expression:
        return operators.unary(node.operator, self.type(node.operand), node.position)

    def _call(self, node: nodes.FunctionCall) -> Expression:
        if is_sampling_call(node):
            return self.sampled(node, self)
        if is_aggregate(node):
            return self.aggregate(node)
        build = scalar_builder(node)
        arguments = tuple(self.type(argument) for argument in node.args)
        if takes_packet_time(node):
            node, time = self._packet_time(node)
            arguments = (*arguments, time)
        rounding = ROUNDING.get(node.name.lower())
        if rounding is not None:
            return rounding(arguments, node, self.meaning)
        result = build(arguments, node)
        check_cast(node, arguments, result)
        if node.name.lower() in _TIMES:
            for argument in arguments:
                check_unit(self.meaning(argument), node)
        return result

    def _packet_time(self, node: nodes.FunctionCall) -> tuple[nodes.FunctionCall, Expression]:
        """Return ``time_bucket('10 sec')`` as a call over the packet's timestamp, and that."""
        name = nodes.Name((PACKET_TIME,), position=node.position)
        try:
            return replace(node, args=(*node.args, name)), self.type(name)
        except ResolveError as error:
            error.remedy = f"write {node.name}('10 sec', x) with a column x that is a time"
            raise

    def _case(self, node: nodes.Case) -> Expression:
        conditions = [self._case_condition(node, branch) for branch in node.branches]
        results = [self.type(branch.result) for branch in node.branches]
        if node.otherwise is None:
            results.append(Literal(None, GsqlType.NULL))
        else:
            results.append(self.type(node.otherwise))
        unified = unify(results, node.position, "as results of CASE")
        pairs = [part for pair in zip(conditions, unified[:-1], strict=True) for part in pair]
        return apply("case", *pairs, unified[-1])

    def _case_condition(self, node: nodes.Case, branch: nodes.CaseBranch) -> Expression:
        if node.operand is None:
            return self.condition(branch.condition, "after WHEN")
        sides = self.type(node.operand), self.type(branch.condition)
        return operators.binary(BinaryOperator.EQUAL, *sides, branch.condition.position)

    def _either(self, node: nodes.Expression) -> tuple[nodes.Name, nodes.Name] | None:
        """Return the two fields that ``port`` or ``ip.addr`` stands for, None for other names."""
        if not isinstance(node, nodes.Name):
            return None
        names = either_field(".".join(node.parts))
        if names is None:
            return None
        try:
            self.name(node)
        except ResolveError:
            one, other = (
                nodes.Name(tuple(name.split(".")), position=node.position) for name in names
            )
            return one, other
        return None

    def _in_list(self, node: nodes.InList) -> Expression:
        pair = self._either(node.operand)
        if pair is not None:
            one, other = (self._in_list(replace(node, operand=name)) for name in pair)
            return apply("or", one, other)
        operand = self.type(node.operand)
        choices = [self.type(choice) for choice in node.choices]
        choices, networks = split_networks(operand, choices, node.position)
        if not choices:
            return _any(networks)
        unified = unify_compared((operand, *choices), node.position)
        literals = [c for c in unified[1:] if isinstance(c, Literal) and c.value is not None]
        others = [c for c in unified[1:] if not isinstance(c, Literal)]
        tests = [apply("eq", unified[0], other) for other in others]
        if literals:
            tests.insert(0, _among(unified[0], literals))
        if len(literals) + len(others) < len(choices):
            # A NULL among the choices: a value that is not found may still be equal to it, so NULL.
            tests.append(Literal(None, GsqlType.BOOL))
        return _any([*tests, *networks])

    def _between(self, node: nodes.Between) -> Expression:
        operand = self.type(node.operand)
        low, high = self.type(node.low), self.type(node.high)
        above = operators.binary(BinaryOperator.GREATER_EQUAL, operand, low, node.low.position)
        below = operators.binary(BinaryOperator.LESS_EQUAL, operand, high, node.high.position)
        return apply("and", above, below)

    def _like(self, node: nodes.Like) -> Expression:
        operand = self.type(node.operand)
        if operand.type is not GsqlType.IP:
            operand = convert(operand, GsqlType.STRING, node.operand.position, "before LIKE")
        pattern = convert(
            self.type(node.pattern), GsqlType.STRING, node.pattern.position, "after LIKE"
        )
        if not isinstance(pattern, Literal):
            message = "the pattern of LIKE must be a constant"
            raise TypeMismatchError(message, position=node.pattern.position)
        if operand.type is GsqlType.IP:
            return like_address(operand, pattern, node.operand.position)
        return apply("like", operand, pattern)

    def _is_truth(self, node: nodes.IsTruth) -> Expression:
        word = "TRUE" if node.truth else "FALSE"
        operand = predicate(self.type(node.operand), node.operand.position, f"before IS {word}")
        return apply("is_true", operand if node.truth else apply("not", operand))

    def _is_distinct(self, node: nodes.IsDistinct) -> Expression:
        sides = (self.type(node.left), self.type(node.right))
        return apply("is_distinct", *unify_compared(sides, node.position))

    def _typed_null(self, node: nodes.Expression) -> Expression:
        operand = self.type(node)
        return (
            convert(operand, GsqlType.INT, node.position)
            if operand.type is GsqlType.NULL
            else operand
        )


def _among(operand: Expression, literals: Sequence[Literal]) -> Expression:
    """Return a test for membership among constants of one type; many of them become a table."""
    distinct = list(dict.fromkeys(literals))
    if len(distinct) <= MOST_CHOICES:
        return apply("in", operand, *distinct)
    table = pack_table([literal.value for literal in distinct], distinct[0].type)
    return apply("in_table", operand, Literal(table, GsqlType.STRING))


def _has_aggregate(node: nodes.Node) -> bool:
    """Return whether an aggregate is part of a dividend: such a quotient keeps its fraction."""
    return any(
        isinstance(part, nodes.FunctionCall) and (is_aggregate(part) or is_sampling_call(part))
        for part in walk(node)
    )


def _any(tests: Sequence[Expression]) -> Expression:
    """Return whether one of ``tests`` holds, as a balanced tree: long lists must not nest deep."""
    if len(tests) == 1:
        return tests[0]
    middle = len(tests) // 2
    return apply("or", _any(tests[:middle]), _any(tests[middle:]))


def _negated(expression: Expression, is_negated: bool) -> Expression:
    return apply("not", expression) if is_negated else expression
