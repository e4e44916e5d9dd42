"""The epoch of a grouping: which temporal group-by term closes groups, also a decreasing one."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.errors import TemporalError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.progression import core_of
from gscope.queries.catalog.ordering.temporal import steps_by
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.logical import Filter, Join, Project
from gscope.queries.plan.trees import map_expression
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.errors import Position
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.expressions.schema import ColumnSchema, Schema
    from gscope.queries.expressions.types import Ordering
    from gscope.queries.plan.logical import Node

_BOUNDED = "; a run that --duration or -c bounds, and a replay, answer at the end without it"

TIME_FIELDS = {"time": 1, "timestamp": 10**9, "time_ns": 10**9}
"""The fields that hold a packet's time, and how many values each has in a second."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Group-by terms as written, and as the plan groups by them.

    Where no term increases but one decreases, the plan groups by its negative: the groups are the
    same, and the epochs of every operator increase. A temporal term is grouped by its core, which
    moves in steps of 1: groups that live across epochs need that, and group tables keep apart only
    epochs that are close; see ``queries/catalog/ordering/progression.py``.

    For ``GROUP BY -time/60 AS down, srcIP``:

    Attributes:
        written: ``down := -time/60`` and srcIP.
        keys: ``down := time/60`` and srcIP: the terms with negatives or cores in place of some.
        turned: ``down``: the name of the term whose negative is taken, None if there is none.
        cores: the cores of terms that are more than their core, by name.
    """

    written: tuple[NamedExpression, ...] = ()
    keys: tuple[NamedExpression, ...] = ()
    turned: str | None = None
    cores: Mapping[str, Expression] = field(default_factory=dict)

    def column(self, name: str) -> Expression:
        """Return the value of the term ``name``, over the columns of the groups."""
        key = next(key for key in self.keys if key.name == name)
        value: Expression = Column(name, key.expression.type, key.expression.is_nullable)
        written = next(term.expression for term in self.written if term.name == name)
        core = self.cores.get(name, written)
        if name == self.turned:
            value = apply("neg_int", value)
            value = apply("int_to_ts", value) if core.type is GsqlType.TIMESTAMP else value
        if name not in self.cores:
            return value
        return map_expression(written, lambda part: value if part == core else part)


def terms_of(written: Sequence[NamedExpression], ordering: Callable[[Leaf], Ordering]) -> Terms:
    """Return the group-by terms, as keys of which one increases if any is temporal.

    Args:
        written: the terms.
        ordering: returns the ordering of a leaf.
    """
    schemas = [column_schema(term, ordering) for term in written]
    directions = [schema.ordering.direction for schema in schemas]
    turned = None
    if Direction.INCREASING not in directions:
        falling = [s.name for s in schemas if s.ordering.direction is Direction.DECREASING]
        turned = falling[0] if falling else None
    cores = {}
    for term, schema in zip(written, schemas, strict=True):
        if schema.ordering.is_temporal and schema.ordering.step != 1:
            core = core_of(term.expression, steps_by(ordering))
            if core is not None:
                cores[term.name] = core
    keys = []
    for term in written:
        core = cores.get(term.name, term.expression)
        keys.append(NamedExpression(term.name, _negative(core) if term.name == turned else core))
    return Terms(tuple(written), tuple(keys), turned, cores)


def choose_epoch(
    keys: Sequence[ColumnSchema],
    expressions: Sequence[Expression],
    source: Schema,
    position: Position,
    *,
    is_distinct: bool = False,
    is_unbounded: bool = True,
    is_longest: bool = False,
) -> str | None:
    """Return the name of the key that closes groups: one temporal key is enough.

    None if no key is temporal, so that the end of the input closes them. Time is better than a
    declared order, because time goes on when traffic stops. A key without a band is better than one
    with a band, and one that changes often better than one that does not: with both ``time/10`` and
    ``time/60`` a group closes after ten seconds.

    Args:
        keys: group-by terms; see ``Terms.keys``.
        expressions: the expressions of the keys.
        source: the schema of the input, for the remedy.
        position: the place of the terms in the text.
        is_distinct: whether the keys are the columns of SELECT DISTINCT rather than group-by terms.
        is_unbounded: whether the input never ends.
        is_longest: whether the key that changes least often closes groups instead, as that of the
            sampling operator: beside ``time/20``, the time of a packet is an ordinary key.

    Raises:
        TemporalError: no key is temporal, and the input never ends.
    """
    sign = 1 if is_longest else -1
    candidates = [
        (
            _is_declared(expression),
            key.ordering.band > 0,
            sign * _steps(expression),
            number,
            key.name,
        )
        for number, (key, expression) in enumerate(zip(keys, expressions, strict=True))
        if key.ordering.direction is Direction.INCREASING
    ]
    if candidates:
        return min(candidates)[-1]
    if not is_unbounded:
        return None
    if is_distinct:
        message = (
            "no column of SELECT DISTINCT is temporal, so every row would have to be remembered"
        )
        remedy = _epoch_remedy(source, "add {} to SELECT")
    elif keys:
        message = "no group-by term is temporal, so no group could ever be closed"
        remedy = _epoch_remedy(source, "add {} to GROUP BY")
    else:
        message = "there is no GROUP BY, so no group could ever be closed"
        remedy = _epoch_remedy(source, "add GROUP BY {}")
    raise TemporalError(message, position=position, remedy=f"{remedy}{_BOUNDED}")


def kept_orders(keys: Sequence[NamedExpression], epoch: str) -> frozenset[str]:
    """Return the names of the keys that never decrease from group to group.

    These are the epoch and what moves with it. Groups leave in the order of their epochs, and two
    ordered functions of the same clock (or the same column) never disagree on an order.
    """
    leader = next(key.expression for key in keys if key.name == epoch)
    clocks = _clocks(leader)
    names = {k.name for k in keys if len(clocks) == 1 and _clocks(k.expression) == clocks}
    return frozenset({epoch, *names})


def time_field(node: Node, name: str) -> str | None:
    """Return the packet field that a column of ``node`` holds, if that is a time of the packet."""
    match node:
        case Filter():
            return time_field(node.input, name)
        case Project() | Join():
            expression = next(c.expression for c in node.columns if c.name == name)
            match expression:
                case PacketField(field):
                    return field if field in TIME_FIELDS else None
                case Column() if isinstance(node, Join):
                    return time_field(node.inputs[expression.input], expression.name)
                case Column() if isinstance(node, Project):
                    return time_field(node.input, expression.name)
    return None


def _clocks(expression: Expression) -> frozenset[Expression | str]:
    """Return what the values of an expression depend on; all time fields are one clock."""
    return frozenset(
        "time" if isinstance(part, PacketField) and part.name in TIME_FIELDS else part
        for part in walk(expression)
        if isinstance(part, PacketField | Column)
    )


def _epoch_remedy(source: Schema, add: str) -> str:
    columns = {column.name: column for column in source.temporal}
    if not columns:
        return "the input has no temporal column: let the query it comes from select one"
    name = "time" if "time" in columns else next(iter(columns))
    # The time itself would give each packet an epoch of its own.
    is_clock = columns[name].type is GsqlType.TIMESTAMP or name in TIME_FIELDS
    return add.format(f"minute({name})" if is_clock else name)


def _negative(expression: Expression) -> Expression:
    is_time = expression.type is GsqlType.TIMESTAMP
    return apply("neg_int", apply("ts_to_int", expression) if is_time else expression)


def _is_declared(expression: Expression) -> bool:
    return any(declared_ordering(part) is not None for part in walk(expression))


def _steps(expression: Expression) -> Fraction:
    """Return how many values an ordered expression takes while its leaf takes one.

    For times of packets: in a second.
    """
    match expression:
        case Literal():
            return Fraction(0)
        case PacketField(name) | Column(name):
            return Fraction(TIME_FIELDS.get(name, 1))
        case Call(function, arguments):
            gains = FUNCTIONS[function].gains
            if not gains:
                return max((_steps(argument) for argument in arguments), default=Fraction(0))
            steps = [
                abs(gains[min(n, len(gains) - 1)](arguments) or Fraction(0)) * _steps(argument)
                for n, argument in enumerate(arguments)
            ]
            return max(steps, default=Fraction(0))
