"""The sampling operator: SUPERGROUP, CLEANING_WHEN, CLEANING_BY, superaggregates, stateful calls.

What a query computes of single tuples or of keys becomes a named value; conditions over these, over
aggregates, superaggregates and the results of stateful calls are left to the operator.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.errors import TemporalError, TypeMismatchError, UnsupportedError
from gscope.queries.analysis.groups.epochs import choose_epoch, kept_orders
from gscope.queries.analysis.groups.grouping import not_nested
from gscope.queries.analysis.groups.sampling_body import conjuncts_of, is_sampled
from gscope.queries.analysis.groups.sampling_calls import (
    superaggregate_argument,
    type_stateful_call,
)
from gscope.queries.analysis.groups.sampling_sums import averages, wide_sums, with_quotients
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.schemas import column_schema, group_schema
from gscope.queries.analysis.typing.unsupported import refuse_aggregate
from gscope.queries.catalog.sampling.stateful import RESERVOIR, STATEFUL, Clause
from gscope.queries.catalog.sampling.superaggregates import (
    COUNT_DISTINCT,
    KTH_SMALLEST,
    SUPERAGGREGATES,
)
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.schema import ColumnSchema, free_name
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.plan.sampling_operator import (
    DEFAULT_MAX_GROUPS,
    RANDOM,
    Condition,
    SampleGroupBy,
    Sampling,
    StatefulCall,
    Superaggregate,
)
from gscope.queries.plan.trees import by_name, substitute
from gscope.queries.plan.whole_input import WHOLE_INPUT, whole_input_key, whole_input_schema
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.groups.grouping import Grouping
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.plan.logical import AggregateCall, Node

_NUMBERS = frozenset(
    {
        GsqlType.BOOL,
        GsqlType.INT,
        GsqlType.FLOAT,
        GsqlType.TIMESTAMP,
        GsqlType.INTERVAL,
        GsqlType.MAC,
    }
)


@dataclass(slots=True)
class SamplingClauses:
    """The clauses of one query with the sampling operator; typing them collects what they need.

    Attributes:
        body: the SELECT.
        grouping: its grouping.
        clause: the clause that is being typed.
        calls: the stateful calls of that clause so far.
        updates: the calls in arguments of aggregates.
        values: the names of values by expression over the input.
        superaggregates: the superaggregates by function, argument and rank.
        reservoir: how many tuples ``rsample`` keeps, None if it is not called.
        made: the number of names made so far.
    """

    body: nodes.Select
    grouping: Grouping
    clause: Clause = Clause.WHERE
    calls: list[StatefulCall] = field(default_factory=list)
    updates: list[StatefulCall] = field(default_factory=list)
    values: dict[Expression, str] = field(default_factory=dict)
    superaggregates: dict[tuple[str, Column | None, int], Superaggregate] = field(
        default_factory=dict
    )
    reservoir: int | None = None
    made: int = 0

    # ------------------------------------------------------------------ the meaning of calls

    def sampled(self, node: nodes.FunctionCall, typer: Typer) -> Expression:
        """Return what a superaggregate or stateful call stands for; see ``Typer.sampled``."""
        if node.superaggregate:
            return self._superaggregate(node)
        entry = STATEFUL[node.name.lower()]
        is_nested = typer.aggregate is not_nested
        clause = Clause.AGGREGATE if is_nested else self.clause
        arguments = type_stateful_call(node, entry, clause, typer)
        if entry.state == RESERVOIR:
            return self._reservoir(node, arguments)
        is_of_groups = clause in (Clause.CLEANING_BY, Clause.HAVING, Clause.SELECT)
        lifted = tuple(self._lift(a, is_of_groups=is_of_groups) for a in arguments)
        calls = self.updates if is_nested else self.calls
        known = next(
            (
                c
                for c in calls
                if entry.is_pure and (c.function, c.arguments) == (entry.name, lifted)
            ),
            None,
        )
        if known is None:
            is_nullable = any(a.is_nullable for a in lifted)
            known = StatefulCall(self._name("call"), entry.name, lifted, entry.returns, is_nullable)
            calls.append(known)
        return Column(known.name, known.type, known.is_nullable)

    def _superaggregate(self, node: nodes.FunctionCall) -> Expression:
        typer = self.grouping.tuple_typer(refuse_aggregate)
        function, argument, rank = superaggregate_argument(node, typer)
        entry = SUPERAGGREGATES[function]
        value = None
        if argument is not None:
            if entry.is_of_groups and not self._is_of_keys(argument):
                message = f"{node.name}$ counts groups, so its argument is made of group-by terms"
                remedy = "add the argument to GROUP BY, and name it there"
                raise TypeMismatchError(message, position=node.position, remedy=remedy)
            lifted = self._lift(argument, is_of_groups=False)
            if not isinstance(lifted, Column) or lifted.name not in self.values.values():
                message = f"the argument of {node.name}$ is neither a constant nor made of states"
                remedy = "write a column of the input, or an expression over columns"
                raise TypeMismatchError(message, position=node.position, remedy=remedy)
            value = lifted
        return self._add(function, value, rank)

    def _add(self, function: str, value: Column | None, rank: int) -> Column:
        entry = SUPERAGGREGATES[function]
        known = self.superaggregates.get((function, value, rank))
        if known is None:
            kind = entry.returns
            if kind is None:
                assert value is not None
                kind = value.type
            name = self._name("super")
            known = Superaggregate(name, function, value, rank, kind, entry.is_nullable)
            self.superaggregates[function, value, rank] = known
        return Column(known.name, known.type, known.is_nullable)

    def _reservoir(self, node: nodes.FunctionCall, arguments: Sequence[Expression]) -> Expression:
        """Return a call of the reservoir: the tuples with the n least random numbers stay."""
        if arguments:
            (size,) = arguments
            assert isinstance(size, Literal)
            assert isinstance(size.value, int)
            self.reservoir = size.value
        if self.reservoir is None:
            message = f"{node.name} needs the size of the reservoir, which rsample gives"
            remedy = "add WHERE rsample(100) = TRUE"
            raise TypeMismatchError(message, position=node.position, remedy=remedy)
        if node.name.lower() == "rsdo_clean":
            alive = self._add(COUNT_DISTINCT, None, 0)
            return apply("gt", alive, Literal(2 * self.reservoir, GsqlType.INT))
        number = Column(RANDOM, GsqlType.INT, is_nullable=False)
        return apply("le", number, self._add(KTH_SMALLEST, number, self.reservoir))

    def _is_of_keys(self, expression: Expression) -> bool:
        """Return whether an expression over the input is one over the group-by terms."""
        terms = [t.expression for t in self.grouping.terms.written]
        if expression in terms or isinstance(expression, Literal):
            return True
        return isinstance(expression, Call) and all(map(self._is_of_keys, expression.arguments))

    def _name(self, kind: str) -> str:
        self.made += 1
        return f"${kind}{self.made}"

    # ---------------------------------------------------------------------------- conditions

    def _lift(self, expression: Expression, *, is_of_groups: bool) -> Expression:
        """Return ``expression`` with its greatest parts that need no state as values."""
        known = self._folded_names() if is_of_groups else frozenset[str]()
        if isinstance(expression, Literal):
            return expression
        leaves = [p for p in walk(expression) if isinstance(p, Column | PacketField)]
        # The operator makes floats of integers itself, so that each value is shipped once.
        is_cast = isinstance(expression, Call) and expression.function == "int_to_float"
        if not is_cast and all(not _is_special(p) and p.name not in known for p in leaves):
            return self._value(self._over_input(expression) if is_of_groups else expression)
        if isinstance(expression, Call):
            arguments = tuple(
                self._lift(a, is_of_groups=is_of_groups) for a in expression.arguments
            )
            return replace(expression, arguments=arguments)
        return expression

    def _folded_names(self) -> frozenset[str]:
        return frozenset(call.name for call in self.grouping.aggregates.values())

    def _over_input(self, expression: Expression) -> Expression:
        return substitute(expression, by_name(self.grouping.keys))

    def _value(self, expression: Expression) -> Column:
        name = self.values.setdefault(expression, f"$value{len(self.values) + 1}")
        return Column(name, expression.type, expression.is_nullable)

    def _condition(
        self, node: nodes.Expression, clause: Clause, typer: Typer, *, is_of_groups: bool
    ) -> Condition:
        self.clause, self.calls = clause, []
        typed = typer.condition(node, f"in {clause.value}")
        condition = self._lift(typed, is_of_groups=is_of_groups)
        _check_numbers(condition, node)
        return Condition(tuple(self.calls), condition)

    def where(self) -> tuple[Condition, ...]:
        """Return the conditions of WHERE that read states or superaggregates."""
        typer = self.grouping.tuple_typer(refuse_aggregate)
        return tuple(
            self._condition(each, Clause.WHERE, typer, is_of_groups=False)
            for each in conjuncts_of(self.body.where)
            if is_sampled(each)
        )

    def on_groups(self, node: nodes.Expression | None, clause: Clause) -> Condition | None:
        """Return CLEANING_BY or HAVING; None if the query has none."""
        if node is None:
            return None
        return self._condition(node, clause, self.grouping.typer(), is_of_groups=True)

    def cleaning_when(self) -> Condition | None:
        """Return CLEANING_WHEN; None if the query has none."""
        node = self.body.cleaning_when
        if node is None:
            return None
        typer = replace(self.grouping.typer(), aggregate=_not_of_one_group)
        return self._condition(node, Clause.CLEANING_WHEN, typer, is_of_groups=True)

    def select_typer(self) -> Typer:
        """Return the typer of SELECT; ``node`` then includes the calls that it has met."""
        self.clause, self.calls = Clause.SELECT, []
        return self.grouping.typer()

    # --------------------------------------------------------------------------- the node

    def node(
        self,
        source: Node,
        where: tuple[Condition, ...],
    ) -> tuple[SampleGroupBy, dict[str, Expression]]:
        """Return the plan node, and what the columns of averages are computed from.

        Call it last: the calls since ``select_typer`` are those of SELECT and ORDER BY.

        Args:
            source: its input, filtered by ``plain_where``.
            where: the other conditions of WHERE.
        """
        grouping, selected = self.grouping, tuple(self.calls)
        having = self.on_groups(self.body.having, Clause.HAVING)
        cleaning_by = self.on_groups(self.body.cleaning_by, Clause.CLEANING_BY)
        cleaning_when = self.cleaning_when()
        quotients = averages(grouping.aggregates, lambda: self._name("part"))
        aggregates = tuple(self._aggregate(call) for call in grouping.aggregates.values())
        keys = [column_schema(key, grouping.source.ordering) for key in grouping.keys]
        epoch = self._epoch(source, keys)
        terms = grouping.keys
        if epoch is None:
            epoch = free_name(WHOLE_INPUT, {*(k.name for k in keys), *(a.name for a in aggregates)})
            terms, keys = (whole_input_key(epoch), *terms), [whole_input_schema(epoch), *keys]
        values = tuple(NamedExpression(name, e) for e, name in self.values.items())
        superaggregates = tuple(self.superaggregates.values())
        sampling = Sampling(
            supergroup=self._supergroup(epoch),
            values=values,
            superaggregates=superaggregates,
            where=where,
            updates=tuple(self.updates),
            aggregates=aggregates,
            cleaning_when=cleaning_when,
            cleaning_by=with_quotients(cleaning_by, quotients),
            having=with_quotients(having, quotients),
            selected=selected,
            wide_sums=wide_sums(aggregates, superaggregates, values),
            seed=self._defined("sampler_seed", 0, least=0),
            max_groups=self._defined("max_groups", DEFAULT_MAX_GROUPS, least=1),
        )
        columns = [
            *(ColumnSchema(c.name, c.type, c.is_nullable) for c in aggregates),
            *(ColumnSchema(c.name, c.type, c.is_nullable) for c in sampling.superaggregates),
            *(ColumnSchema(c.name, c.type, c.is_nullable) for c in selected),
        ]
        schema = group_schema(keys, kept_orders(terms, epoch), columns)
        return SampleGroupBy(source, terms, epoch, sampling, schema), quotients

    def _epoch(self, source: Node, keys: Sequence[ColumnSchema]) -> str | None:
        """Return the name of the term that is the window; None for the whole input.

        Raises:
            TemporalError: the input never ends, and no term is a window.
        """
        grouping, body = self.grouping, self.body
        position = body.group_by[0].position if body.group_by else body.position
        terms = zip(keys, grouping.keys, strict=True)
        longer = [(key, term.expression) for key, term in terms if not _is_moment(term.expression)]
        moments = [key.name for key in keys if key not in [each for each, _ in longer]]
        if grouping.is_unbounded and moments and not any(k.ordering.is_temporal for k, _ in longer):
            message = (
                f"{moments[0]} differs from packet to packet, so that no window would have two"
            )
            remedy = "add time/60 AS tb to GROUP BY"
            raise TemporalError(message, position=position, remedy=remedy)
        return choose_epoch(
            [key for key, _ in longer],
            [expression for _, expression in longer],
            source.schema,
            position,
            is_unbounded=grouping.is_unbounded,
            is_longest=True,
        )

    def _aggregate(self, call: AggregateCall) -> AggregateCall:
        taken = 0 if call.function == "count" and not call.arguments else 1
        arguments = tuple(self._lift(a, is_of_groups=False) for a in call.arguments[:taken])
        for argument in arguments:
            if not isinstance(argument, Column):
                _check_numbers(argument, self.body)
        return replace(call, arguments=arguments)

    def _supergroup(self, epoch: str) -> tuple[str, ...]:
        """Return the names of the terms of SUPERGROUP, without the window.

        Raises:
            TypeMismatchError: a term is not one of GROUP BY.
        """
        names: list[str] = []
        terms = {t.name: t.expression for t in self.grouping.terms.written}
        for written in self.body.supergroup:
            meant = self.grouping.typer().known(written.expression)
            name = next((n for n in terms if self.grouping.terms.column(n) == meant), None)
            if meant is None or name is None:
                message = "a term of SUPERGROUP must be a group-by term"
                remedy = f"write one of GROUP BY: {', '.join(terms)}"
                raise TypeMismatchError(message, position=written.position, remedy=remedy)
            if name != epoch:
                names.append(name)
        return tuple(dict.fromkeys(names))

    def _defined(self, name: str, default: int, least: int) -> int:
        """Return an entry of DEFINE that is a whole number."""
        query = self.grouping.substitutes.query
        entry = next((e for e in query.define if e.name == name), None) if query else None
        if entry is None:
            return default
        value = self.grouping.substitutes.definition(
            nodes.Definition(name, position=entry.position)
        ).value
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        message = f"invalid {name}: expected a whole number of at least {least}"
        remedy = f"write DEFINE {{ {name} {max(default, least)}; }}"
        raise TypeMismatchError(message, position=entry.position, remedy=remedy)


def _is_moment(expression: Expression) -> bool:
    """Return whether a term is the time of a packet to the nanosecond, which makes no window."""
    return isinstance(expression, PacketField) and expression.name in ("time_ns", "timestamp")


def _is_special(part: Column | PacketField) -> bool:
    return part.name.startswith("$")


def _check_numbers(expression: Expression, node: nodes.Node) -> None:
    """Refuse conditions that compute texts or addresses of states.

    Raises:
        UnsupportedError: such a part depends on a state, an aggregate or a superaggregate.
    """
    for part in walk(expression):
        if part.type not in _NUMBERS and part.type is not GsqlType.NULL:
            message = (
                "the sampling operator compares numbers and times with its states, not "
                f"{part.type.value}"
            )
            remedy = (
                "test texts and addresses in a condition of their own, joined with AND in WHERE"
            )
            raise UnsupportedError(message, position=node.position, remedy=remedy)


def _not_of_one_group(node: nodes.FunctionCall) -> Expression:
    message = (
        f"CLEANING_WHEN is tested for a supergroup, and {node.name} is an aggregate of a group"
    )
    remedy = f"write the superaggregate {node.name}$, or count_distinct$(*), the number of groups"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)
