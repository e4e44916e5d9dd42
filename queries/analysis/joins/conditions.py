"""The conditions of a join by their role: filter, bound of the state, key, or test of pairs."""

from __future__ import annotations

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
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gscope.queries.analysis.joins.inputs import JoinNames
    from gscope.queries.analysis.joins.intervals import Ends
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.plan.logical import Interval

Equality = tuple[Expression, Expression]
"""An expression over the left input and one over the right input that must be equal."""


@dataclass(slots=True)
class Clauses:
    """The conjuncts of WHERE and of every ON, by where they are tested.

    In ``FROM a RIGHT JOIN b ON a.tb = b.tb AND a.n > 1 WHERE b.n > 2 AND a.m IS NULL``, of b:

    Attributes:
        filters: ``b.n > 2``: for each input the conditions on it alone, tested before its join.
        before: ``a.n > 1``: for each input the conditions on the join of those before it, tested
            before its own join.
        joins: ``a.tb = b.tb``: for each input the conditions tested when it is joined to those
            before it; none for the first.
        after: ``a.m IS NULL``: conditions of WHERE on the result of all joins, not typed yet.
    """

    filters: list[list[Expression]]
    before: list[list[Expression]]
    joins: list[list[Expression]]
    after: list[nodes.Expression]

    @classmethod
    def of_inputs(cls, count: int) -> Clauses:
        """Return clauses without conditions for ``count`` inputs."""
        return cls(
            [[] for _ in range(count)], [[] for _ in range(count)], [[] for _ in range(count)], []
        )


def read_clauses(body: nodes.Select, names: JoinNames, substitutes: Substitutes) -> Clauses:
    """Type the conditions of a join and note in ``names`` which columns they make equal.

    A conjunct over one input filters it. A conjunct over several inputs is tested at the join of
    the last of them, and one of an ON not before its own join. Outer joins in SQL's spelling follow
    rules of their own; see ``sql_spelling``.

    Raises:
        GsqlError: a condition is wrong.
    """
    clauses = Clauses.of_inputs(len(names.inputs))
    if is_sql(body):
        check_spelling(body)
        _read_sql_clauses(clauses, body, names, ConditionReader(names, substitutes))
    else:
        _read_gigascope_clauses(clauses, body, names, ConditionReader(names, substitutes))
    return clauses


def _read_gigascope_clauses(
    clauses: Clauses, body: nodes.Select, names: JoinNames, reader: ConditionReader
) -> None:
    conditions: list[tuple[nodes.Expression, str, int]] = []
    if body.where is not None:
        conditions += [(part, "in WHERE", 0) for part in _split_and(body.where)]
    for number, join in enumerate(body.joins, start=1):
        if join.on is not None:
            conditions += [(part, "after ON", number) for part in _split_and(join.on)]
    plain = [each for each in conditions if not names.is_ambiguous(each[0])]
    for part, where, least in plain:
        for typed in reader.conjuncts(part, where, None):
            _equate(names, typed)
            _place(clauses, typed, least)
    for part, where, least in conditions:
        if (part, where, least) not in plain:
            for typed in reader.of_all_inputs(part, where):
                _place(clauses, typed, least)


def _read_sql_clauses(
    clauses: Clauses, body: nodes.Select, names: JoinNames, reader: ConditionReader
) -> None:
    """Place the conditions of outer joins in SQL's spelling.

    ON decides what matches. WHERE filters the result, and does so before the join where that makes
    no difference.
    """
    on = [
        (part, number, join)
        for number, join in enumerate(body.joins, start=1)
        if join.on is not None
        for part in _split_and(join.on)
    ]
    for part, number, join in sorted(on, key=lambda each: names.is_ambiguous(each[0])):
        for typed in reader.conjuncts(part, "after ON", None):
            _equate(names, typed)
            match place_of(join.kind, number, inputs_of(typed), part):
                case ConjunctPlace.OWN:
                    clauses.filters[number].append(typed)
                case ConjunctPlace.BEFORE:
                    clauses.before[number].append(typed)
                case ConjunctPlace.PAIRS:
                    clauses.joins[number].append(typed)
    kept = never_missing(body.joins)
    where = [] if body.where is None else list(_split_and(body.where))
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
    """The conditions of one join, by their role.

    For ``a.srcIP = b.destIP AND b.time BETWEEN a.time AND a.time + 5 AND a.len > b.len``:

    Attributes:
        epochs: ``(a.time, b.time)``: the temporal expressions that bound the state; None if no
            condition does.
        keys: ``((a.srcIP, b.destIP),)``: the other pairs that must be equal.
        residual: ``a.len > b.len`` and both comparisons of times: all that is tested on pairs.
        interval: ``0 <= b.time - a.time <= 5``; None if the epochs must be equal.
        half_bounded: increasing expressions whose difference has a bound in one direction only,
            with the ends of that interval, for the error message.
    """

    epochs: Equality | None
    keys: tuple[Equality, ...]
    residual: tuple[Expression, ...]
    interval: Interval | None = None
    half_bounded: tuple[tuple[Equality, Ends], ...] = ()

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """All pairs that must be equal, the temporal one first."""
        has_equal_epochs = self.epochs is not None and self.interval is None
        return (*((self.epochs,) if has_equal_epochs and self.epochs else ()), *self.keys)


def classify(predicates: Sequence[Expression], ordering: Callable[[Leaf], Ordering]) -> Conditions:
    """Classify the predicates of one join; input 0 is the left, input 1 the right.

    Of several temporal equalities, the one with the least band bounds the state; of those, one
    between plain columns, which stay temporal in the result; of those, the first. Without a
    temporal equality, an interval that two increasing expressions lie within bounds it; of several,
    the first between plain columns.
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
        return _classify_interval(tuple(dict.fromkeys(equalities)), tuple(residual), ordering)
    _, epochs, chosen = min(temporal, key=lambda each: each[0])
    keys = tuple(dict.fromkeys(each for each in equalities if each != chosen))
    return Conditions(epochs, keys, tuple(residual))


def _classify_interval(
    keys: tuple[Equality, ...],
    residual: tuple[Expression, ...],
    ordering: Callable[[Leaf], Ordering],
) -> Conditions:
    """Return the conditions of a join without a temporal equality."""
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

    names: JoinNames
    substitutes: Substitutes

    def conjuncts(self, part: nodes.Expression, where: str, prefer: int | None) -> list[Expression]:
        """Return the typed conjuncts of a condition; see ``JoinNames.resolve`` for ``prefer``."""
        check_where(part)
        facts = [each.source.facts for each in self.names.inputs]
        typer = Typer(
            lambda name: self.names.resolve(name, prefer),
            self.substitutes,
            refuse_aggregate,
            meaning=lambda expression: origin_of(expression, facts),
            has_aggregate=lambda expression: has_aggregate(expression, facts),
        )
        typed = conjuncts(typer.condition(part, where))
        return [e for e in typed if not (isinstance(e, Literal) and e.value is True)]

    def of_all_inputs(self, part: nodes.Expression, where: str) -> list[Expression]:
        """Return a condition on equal columns once for each of their inputs, which it filters."""
        found = self.conjuncts(part, where, None)
        for each in self.names.inputs[1:]:
            found += [
                e for e in self.conjuncts(part, where, each.number) if inputs_of(e) == {each.number}
            ]
        return list(dict.fromkeys(found))


def _split_and(node: nodes.Expression) -> Iterator[nodes.Expression]:
    """Yield the operands of the outermost ANDs, each with its own position for messages."""
    if isinstance(node, nodes.Binary) and node.operator is BinaryOperator.AND:
        yield from _split_and(node.left)
        yield from _split_and(node.right)
    else:
        yield node


def _place(clauses: Clauses, typed: Expression, least: int) -> None:
    """Add a conjunct to ``clauses``, if it is over several inputs not before the join ``least``."""
    inputs = inputs_of(typed)
    if len(inputs) > 1:
        clauses.joins[max(least, *inputs)].append(typed)
        return
    for number in inputs or range(len(clauses.filters)):
        clauses.filters[number].append(typed)


def _equate(names: JoinNames, typed: Expression) -> None:
    """Note the columns of two inputs that ``typed`` makes equal, if that is what it does."""
    match typed:
        case Call("eq", (Column() as one, Column() as other)) if one.input != other.input:
            names.equate(one, other)


def _as_equality(predicate: Expression) -> Equality | None:
    """Return ``predicate`` as an equality of left and right, or None if it is not one.

    ``a - b = 1`` becomes ``a = b + 1``.
    """
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
    """Return an equality of increasing expressions, of decreasing ones negated; None of others."""
    directions = {column_ordering(side, ordering).direction for side in equality}
    if directions == {Direction.INCREASING}:
        return equality
    if directions == {Direction.DECREASING} and equality[0].type is GsqlType.INT:
        return apply("neg_int", equality[0]), apply("neg_int", equality[1])
    return None
