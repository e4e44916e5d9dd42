"""What WHERE and ON say of a join: which tuples take part, what bounds the state, what else must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.queries.analysis.joins.intervals import differences
from gscope.queries.analysis.joins.sql_spelling import (
    ConjunctPlace,
    check_spelling,
    is_sql,
    never_missing,
    place_of,
)
from gscope.queries.analysis.typing.column_facts import has_aggregate, origin_of
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import check_where, refuse_aggregate
from gscope.queries.catalog.ordering.temporal import column_ordering
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.nodes import BinaryOperator
from gscope.queries.plan.trees import conjuncts, inputs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gscope.queries.analysis.joins.intervals import Ends
    from gscope.queries.analysis.joins.sides import Names
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.plan.logical import Interval

Equality = tuple[Expression, Expression]
"""An expression of the left input and one of the right that must be equal."""


@dataclass(slots=True)
class Clauses:
    """The conjuncts of WHERE and of every ON, each where it belongs.

    Attributes:
        filters: for each input what chooses its tuples, ``Column.input`` telling the input.
        before: for each input what chooses the result of the joins before it, ahead of its own join.
        joins: for each input what is tested when it is joined to those before; () for the first.
        after: conditions of WHERE on the result of all joins, not typed yet.
    """

    filters: list[list[Expression]]
    before: list[list[Expression]]
    joins: list[list[Expression]]
    after: list[nodes.Expression]

    @classmethod
    def of_inputs(cls, count: int) -> Clauses:
        """No conditions yet."""
        return cls(
            [[] for _ in range(count)], [[] for _ in range(count)], [[] for _ in range(count)], []
        )


def read_clauses(body: nodes.Select, names: Names, substitutes: Substitutes) -> Clauses:
    """Type the conditions of a join and learn from them which columns are equal.

    A conjunct over one input filters it. A conjunct over several is tested at the join that brings the
    last of them together, one of an ON not before its own join. Outer joins in SQL's spelling have
    rules of their own; see ``sql_joins``.

    Raises:
        GsqlError: a condition is wrong.
    """
    clauses = Clauses.of_inputs(len(names.sides))
    if is_sql(body):
        check_spelling(body)
        _read_sql_clauses(clauses, body, names, ConditionReader(names, substitutes))
    else:
        _read_gigascope_clauses(clauses, body, names, ConditionReader(names, substitutes))
    return clauses


def _read_gigascope_clauses(
    clauses: Clauses, body: nodes.Select, names: Names, reader: ConditionReader
) -> None:
    conditions: list[tuple[nodes.Expression, str, int]] = []
    if body.where is not None:
        conditions += [(part, "in WHERE", 0) for part in _parts(body.where)]
    for number, join in enumerate(body.joins, start=1):
        if join.on is not None:
            conditions += [(part, "behind ON", number) for part in _parts(join.on)]
    plain = [each for each in conditions if not names.is_ambiguous(each[0])]
    for part, where, least in plain:
        for typed in reader.conjuncts(part, where, None):
            _equate(names, typed)
            _place(clauses, typed, least)
    for part, where, least in conditions:
        if (part, where, least) not in plain:
            for typed in reader.of_all_sides(part, where):
                _place(clauses, typed, least)


def _read_sql_clauses(
    clauses: Clauses, body: nodes.Select, names: Names, reader: ConditionReader
) -> None:
    """ON says what matches; WHERE chooses from the result, early where that is the same."""
    on = [
        (part, number, join)
        for number, join in enumerate(body.joins, start=1)
        if join.on is not None
        for part in _parts(join.on)
    ]
    for part, number, join in sorted(on, key=lambda each: names.is_ambiguous(each[0])):
        for typed in reader.conjuncts(part, "behind ON", None):
            _equate(names, typed)
            match place_of(join.kind, number, inputs_of(typed), part):
                case ConjunctPlace.OWN:
                    clauses.filters[number].append(typed)
                case ConjunctPlace.BEFORE:
                    clauses.before[number].append(typed)
                case ConjunctPlace.PAIRS:
                    clauses.joins[number].append(typed)
    kept = never_missing(body.joins)
    where = [] if body.where is None else list(_parts(body.where))
    for part in sorted(where, key=names.is_ambiguous):
        for typed in reader.conjuncts(part, "in WHERE", None):
            if not inputs_of(typed) <= kept:
                clauses.after.append(part)
                break
        else:
            for typed in reader.conjuncts(part, "in WHERE", None):
                _equate(names, typed)
                _place(clauses, typed, 0)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one join, taken apart; ``equalities`` beside the epochs are keys.

    Attributes:
        epochs: the temporal expressions that bound the state; None if nothing does.
        interval: by how much the epochs may differ, None if they are equal.
        half_bounded: increasing expressions whose difference is bounded in one direction only.
    """

    epochs: Equality | None
    keys: tuple[Equality, ...]
    residual: tuple[Expression, ...]
    interval: Interval | None = None
    half_bounded: tuple[tuple[Equality, Ends], ...] = ()

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """All of them, the temporal one first."""
        has_equal_epochs = self.epochs is not None and self.interval is None
        return (*((self.epochs,) if has_equal_epochs and self.epochs else ()), *self.keys)


def classify(predicates: Sequence[Expression], ordering: Callable[[Leaf], Ordering]) -> Conditions:
    """Take the predicates of one join apart; input 0 is the left, input 1 the right.

    Of several temporal equalities the one with the least band bounds the state; of those one between plain
    columns, which stay temporal in the result; of those the first. Without any, an interval does that two
    increasing expressions are within; of several the first between plain columns.
    """
    temporal: list[tuple[tuple[int, bool], Equality, Equality]] = []
    equalities: list[Equality] = []
    residual: list[Expression] = []
    for predicate in predicates:
        equality = _as_equality(predicate)
        if equality is None:
            residual.append(predicate)
            continue
        equalities.append(equality)
        found = _as_increasing(equality, ordering)
        if found is not None:
            band = sum(column_ordering(side, ordering).band for side in found)
            is_plain = all(isinstance(side, Column) for side in found)
            temporal.append(((band, not is_plain), found, equality))
    if not temporal:
        return _within_interval(tuple(dict.fromkeys(equalities)), tuple(residual), ordering)
    _, epochs, chosen = min(temporal, key=lambda each: each[0])
    keys = tuple(dict.fromkeys(each for each in equalities if each != chosen))
    return Conditions(epochs, keys, tuple(residual))


def _within_interval(
    keys: tuple[Equality, ...],
    residual: tuple[Expression, ...],
    ordering: Callable[[Leaf], Ordering],
) -> Conditions:
    """The conditions of a join without a temporal equality."""
    found: list[tuple[bool, Equality, Interval]] = []
    half: list[tuple[Equality, Ends]] = []
    for pair, ends in differences(residual).items():
        epochs = _as_increasing(pair, ordering)
        if epochs is None or pair[0].type is not pair[1].type:
            continue
        along = ends if epochs == pair else ends.negated
        if along.interval is None:
            half.append((pair, ends))
            continue
        is_plain = all(isinstance(side, Column) for side in epochs)
        found.append((not is_plain, epochs, along.interval))
    if not found:
        return Conditions(None, keys, residual, half_bounded=tuple(half))
    _, epochs, interval = min(found, key=lambda each: each[0])
    return Conditions(epochs, keys, residual, interval)


@dataclass(frozen=True, slots=True)
class ConditionReader:
    """Types the conditions of a join over the columns of its inputs."""

    names: Names
    substitutes: Substitutes

    def conjuncts(self, part: nodes.Expression, where: str, prefer: int | None) -> list[Expression]:
        """The typed conjuncts of a condition; see ``Names.resolve`` for ``prefer``."""
        check_where(part)
        facts = [side.source.facts for side in self.names.sides]
        typer = Typer(
            lambda name: self.names.resolve(name, prefer),
            self.substitutes,
            refuse_aggregate,
            meaning=lambda expression: origin_of(expression, facts),
            has_aggregate=lambda expression: has_aggregate(expression, facts),
        )
        typed = conjuncts(typer.condition(part, where))
        return [e for e in typed if not (isinstance(e, Literal) and e.value is True)]

    def of_all_sides(self, part: nodes.Expression, where: str) -> list[Expression]:
        """A condition on columns that are equal chooses the tuples of each of their inputs."""
        found = self.conjuncts(part, where, None)
        for side in self.names.sides[1:]:
            found += [
                e for e in self.conjuncts(part, where, side.number) if inputs_of(e) == {side.number}
            ]
        return list(dict.fromkeys(found))


def _parts(node: nodes.Expression) -> Iterator[nodes.Expression]:
    """The operands of the ANDs on top, so that each condition has its own place in messages."""
    if isinstance(node, nodes.Binary) and node.operator is BinaryOperator.AND:
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node


def _place(clauses: Clauses, typed: Expression, least: int) -> None:
    inputs = inputs_of(typed)
    if len(inputs) > 1:
        clauses.joins[max(least, *inputs)].append(typed)
        return
    for number in inputs or range(len(clauses.filters)):
        clauses.filters[number].append(typed)


def _equate(names: Names, typed: Expression) -> None:
    match typed:
        case Call("eq", (Column() as one, Column() as other)) if one.input != other.input:
            names.equate(one, other)


def _as_equality(predicate: Expression) -> Equality | None:
    """``predicate`` as an equality of the left and the right; ``a - b = 1`` reads ``a = b + 1``."""
    if not isinstance(predicate, Call) or predicate.function != "eq":
        return None
    one, other = predicate.arguments
    if not inputs_of(one):
        one, other = other, one
    match one:
        case Call("sub_int", (minuend, subtrahend)) if not inputs_of(other):
            one, other = minuend, apply("add_int", subtrahend, other)
    sides = inputs_of(one), inputs_of(other)
    if sides == ({0}, {1}):
        return one, other
    return (other, one) if sides == ({1}, {0}) else None


def _as_increasing(equality: Equality, ordering: Callable[[Leaf], Ordering]) -> Equality | None:
    """An equality of two increasing expressions; two decreasing ones are negated."""
    directions = {column_ordering(side, ordering).direction for side in equality}
    if directions == {Direction.INCREASING}:
        return equality
    if directions == {Direction.DECREASING} and equality[0].type is GsqlType.INT:
        return apply("neg_int", equality[0]), apply("neg_int", equality[1])
    return None
