"""GROUP BY: its terms, the aggregates of SELECT and HAVING, and what names mean above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, TypeMismatchError
from gscope.queries.analysis.groups.closing_when import (
    running_call,
    running_function,
    running_group,
    type_running_call,
)
from gscope.queries.analysis.groups.epochs import Terms, choose_epoch, kept_orders, terms_of
from gscope.queries.analysis.groups.sampling_body import check_folded
from gscope.queries.analysis.names.column_names import default_name, unique_names
from gscope.queries.analysis.typing.aggregate_calls import type_aggregate_call
from gscope.queries.analysis.typing.column_facts import UNKNOWN, origin_of, origin_of_call
from gscope.queries.analysis.typing.schemas import column_schema, group_schema
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import check_filter, find_aggregates
from gscope.queries.analysis.windows.clauses import after_the_window, refuse_running
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.did_you_mean import DID_YOU_MEAN, other_case
from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, free_name
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.gsql.node import walk
from gscope.queries.plan.logical import AggregateCall, GroupBy, Node, RunningGroupBy, WindowGroupBy
from gscope.queries.plan.trees import map_expression
from gscope.queries.plan.whole_input import WHOLE_INPUT, whole_input_key, whole_input_schema
from gscope.queries.plan.windows.columns import WRITTEN
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.analysis.windows.window_input import WindowInput

Sampled = Callable[[nodes.FunctionCall, Typer], Expression]


@dataclass(slots=True)
class Grouping:
    """The grouping of one SELECT; typing the clauses above it collects the aggregates.

    For ``SELECT tb, srcIP, count(*) FROM TCP GROUP BY time/60 AS tb, srcIP``:

    Attributes:
        body: the SELECT.
        source: its input, open for look-up.
        substitutes: the values of ``$x`` and ``#X``.
        terms: ``tb := time/60`` and srcIP.
        aggregates: ``count(*)``, by function and arguments, so that equal calls are computed once.
        is_unbounded: whether the input never ends, so that a temporal term is needed.
        window: the window over the input, which closes groups in place of a temporal term; None
            without one.
        of_window: the terms that are known from the window alone, by name: ``GROUP BY window_end``
            groups by nothing else.
        sampled: returns what a superaggregate or stateful call stands for, in a query with the
            sampling operator; None in others.
    """

    body: nodes.Select
    source: Source
    substitutes: Substitutes
    terms: Terms = field(default_factory=Terms)
    aggregates: dict[tuple[str, tuple[Expression, ...]], AggregateCall] = field(
        default_factory=dict
    )
    is_unbounded: bool = True
    window: WindowInput | None = None
    of_window: dict[str, Expression] = field(default_factory=dict)
    sampled: Sampled | None = None

    @classmethod
    def of(
        cls,
        body: nodes.Select,
        source: Source,
        substitutes: Substitutes,
        *,
        is_unbounded: bool = True,
        window: WindowInput | None = None,
    ) -> Grouping:
        """Return the grouping with its keys typed and named, still without aggregates.

        Raises:
            GsqlError: a term is wrong.
        """
        grouping = cls(body, source, substitutes, is_unbounded=is_unbounded, window=window)
        typer = grouping._term_typer()
        names = unique_names(
            [
                (t.name or default_name(t.expression, source), t.name is not None, t)
                for t in body.group_by
            ]
        )
        written = []
        for name, term in zip(names, body.group_by, strict=True):
            if window is not None and window.computes(term.expression, source):
                of_window = Typer(window.resolve, substitutes, _not_in_term)
                grouping.of_window[name] = of_window.type(term.expression)
            else:
                written.append(NamedExpression(name, typer.type(term.expression)))
        if window is None:
            grouping.terms = terms_of(written, source.ordering)
        else:  # A temporal term beside a window is an ordinary key.
            grouping.terms = Terms(tuple(written), tuple(written))
        return grouping

    @property
    def keys(self) -> tuple[NamedExpression, ...]:
        """The terms as the plan groups by them."""
        return self.terms.keys

    def typer(self) -> Typer:
        """Return a typer of expressions over the groups; their leaves are keys and aggregates."""
        return self.with_sampling(
            Typer(
                self._ungrouped,
                self.substitutes,
                self._aggregate,
                self._known,
                self._origin,
                has_aggregate=lambda e: self.source.has_aggregate(self._written_out(e)),
            )
        )

    def tuple_typer(self, aggregate: Callable[[nodes.FunctionCall], Expression]) -> Typer:
        """Return a typer of expressions over single tuples, in which terms are known by name."""
        return self.with_sampling(
            Typer.over(self.source, self.substitutes, aggregate, name=self._argument_name)
        )

    def with_sampling(self, typer: Typer) -> Typer:
        """Return ``typer`` with the meaning of superaggregates and stateful calls.

        If there is none, ``typer`` stays as it is.
        """
        return typer if self.sampled is None else replace(typer, sampled=self.sampled)

    def _term_typer(self) -> Typer:
        """Return a typer of group-by terms."""
        return Typer.over(self.source, self.substitutes, _not_in_term, is_term=True)

    @property
    def is_running(self) -> bool:
        """Whether groups live across epochs."""
        return self.body.closing_when is not None

    def node(
        self, source: Node, closing: Expression | None = None
    ) -> GroupBy | RunningGroupBy | WindowGroupBy:
        """Return the plan node, with every aggregate typed so far.

        Args:
            source: its input.
            closing: CLOSING_WHEN over the groups, None if there is none.

        Raises:
            TemporalError: no term would ever close a group.
        """
        keys = [column_schema(key, self.source.ordering) for key in self.keys]
        if self.window is not None:
            return self.window.group(source, self.keys, keys, tuple(self.aggregates.values()))
        terms = self.body.group_by
        position = terms[0].position if terms else self.body.position
        expressions = [key.expression for key in self.keys]
        epoch = choose_epoch(
            keys,
            expressions,
            source.schema,
            position,
            is_unbounded=self.is_unbounded or self.is_running,
        )
        group = group_by(source, self.keys, keys, epoch, tuple(self.aggregates.values()))
        return group if closing is None else running_group(group, closing, keys, position)

    def _known(self, node: nodes.Expression) -> Expression | None:
        """Return the key that a piece of syntax stands for, by name or as the same expression."""
        names = [key.name for key in self.keys]
        if isinstance(node, nodes.Name) and node.parts[0] in names and len(node.parts) == 1:
            return self.terms.column(node.parts[0])
        if self.window is not None and isinstance(node, nodes.Name):
            own = self._own_of_window(node, self.window)
            if own is not None:
                return own
        if isinstance(node, nodes.LiteralSyntax | nodes.ParameterReference | nodes.Definition):
            return None
        try:
            meaning = self._term_typer().type(node)
        except GsqlError:
            meant = _meant(node, names) if isinstance(node, nodes.Name) else None
            return None if meant is None else self.terms.column(meant)
        same = (t.name for t in self.terms.written if t.expression == meaning)
        return next((self.terms.column(name) for name in same), None)

    def _own_of_window(self, name: nodes.Name, window: WindowInput) -> Expression | None:
        """Return the term or column of the window that a name stands for; None for other names."""
        term = self.of_window.get(name.parts[0]) if len(name.parts) == 1 else None
        return window.column(name) if term is None else term

    def _written_out(self, expression: Expression) -> Expression:
        """Return an expression over the groups as one over the input, with terms written out."""
        written = {term.name: term.expression for term in self.terms.written}

        def change(part: Expression) -> Expression:
            # A column that is not a key is an aggregate.
            return written.get(part.name, UNKNOWN) if isinstance(part, Column) else part

        return map_expression(expression, change)

    def _origin(self, expression: Expression) -> Expression:
        """Return what an expression over the groups is computed from."""
        facts = (self.source.facts,)
        origins = {term.name: origin_of(term.expression, facts) for term in self.terms.written}
        calls = self.aggregates.values()
        origins |= {call.name: origin_of_call(call, facts) for call in calls}

        def change(part: Expression) -> Expression:
            return origins.get(part.name, part) if isinstance(part, Column) else part

        return map_expression(expression, change)

    def _ungrouped(self, name: nodes.Name) -> Expression:
        text = ".".join(name.parts)
        try:
            self.source.resolve(name)
        except ResolveError as error:
            error.remedy = self._remedy(text, error.remedy)
            raise
        message = f"{text} is neither grouped by nor inside an aggregate"
        remedy = f"add {text} to GROUP BY, or write max({text})"
        if not self.body.group_by:
            remedy = f"add {self._whole_clause()}, which is GROUP BY ALL, or write max({text})"
        elif any(part is name for term in self.body.sample_by for part in walk(term)):
            message = f"packets of one group can differ in {text}"
            remedy = f"add {text} to GROUP BY, or sample by functions of group-by terms"
        raise TypeMismatchError(message, position=name.position, remedy=remedy)

    def _whole_clause(self) -> str:
        """Return the GROUP BY that a SELECT of columns and aggregates lacks."""
        terms = [
            output.name or print_expression(output.expression)
            for output in self.body.outputs
            if isinstance(output, nodes.OutputItem)
            and not any(find_aggregates(output))
            and not isinstance(output.expression, nodes.LiteralSyntax)
        ]
        return f"GROUP BY {', '.join(terms)}"

    def _remedy(self, text: str, of_columns: str) -> str:
        """Return the remedy for a name that is neither a column of the input nor a term."""
        if text.lower() in WRITTEN:
            return of_columns
        outputs = [o for o in self.body.outputs if isinstance(o, nodes.OutputItem)]
        if any(text == output.name for output in outputs):
            return (
                f"{text} is named further on in SELECT: move it to the front, or repeat its "
                "expression here"
            )
        unnamed = [
            term.expression
            for term in self.body.group_by
            if term.name is None and not isinstance(term.expression, nodes.Name)
        ]
        if of_columns.startswith(DID_YOU_MEAN) or not unnamed:
            return of_columns
        return f"to use it as a group-by term, name that: {print_expression(unnamed[0])} AS {text}"

    def _argument_name(self, name: nodes.Name) -> Expression:
        """Return what a name inside an aggregate stands for: a column, else a group-by term."""
        try:
            return self.source.resolve(name)
        except ResolveError as error:
            keys = {term.name: term.expression for term in self.terms.written}
            meant = _meant(name, keys)
            if meant is None:
                if self.window is not None:
                    way = after_the_window(name.parts[-1], "read it outside of aggregates")
                    error.remedy = way or error.remedy
                raise
            return keys[meant]

    def _aggregate(self, node: nodes.FunctionCall) -> Expression:
        typer = self.tuple_typer(not_nested)
        if node.filter is not None:
            check_filter(node.filter)
        running = running_function(node.name, is_running=self.is_running)
        if running is not None and self.window is not None:
            refuse_running(node)
        if running is not None and self.sampled is not None:
            check_folded(node, running)
        if running is None:
            function, arguments = type_aggregate_call(node, typer, self.source.node)
            if self.sampled is not None:
                check_folded(node, function)
        else:
            function = running
            arguments = type_running_call(
                node, running, typer, self.source.node, is_running=self.is_running
            )
        known = self.aggregates.get((function, arguments))
        if known is None:
            taken = [k.name for k in self.keys] + [a.name for a in self.aggregates.values()]
            (name,) = unique_names([(default_name(node, self.source), False, node)], taken)
            if running is not None:
                known = running_call(name, running, arguments)
            else:
                entry = AGGREGATES[function]
                type_, is_nullable = entry.result_type(arguments), entry.is_nullable(arguments)
                # Groups that live on have epochs without tuples, one without keys maybe none.
                # A window without tuples has no row.
                may_be_empty = self.window is None and (self.is_running or not self.keys)
                is_nullable = is_nullable or (may_be_empty and not entry.is_never_null)
                known = AggregateCall(name, function, arguments, type_, is_nullable)
            self.aggregates[function, arguments] = known
        return Column(known.name, known.type, known.is_nullable)


def group_by(
    source: Node,
    keys: tuple[NamedExpression, ...],
    schemas: Sequence[ColumnSchema],
    epoch: str | None,
    calls: tuple[AggregateCall, ...],
) -> GroupBy:
    """Return the grouping by ``keys``.

    Args:
        source: its input.
        keys: the terms.
        schemas: the schemas of the keys.
        epoch: the name of the key that closes groups; None if the end of the input does.
        calls: the aggregates.
    """
    columns = [ColumnSchema(c.name, c.type, c.is_nullable) for c in calls]
    if epoch is None:
        epoch = free_name(WHOLE_INPUT, {*(k.name for k in keys), *(c.name for c in calls)})
        keys = (whole_input_key(epoch), *keys)
        schemas = [whole_input_schema(epoch), *schemas]
    return GroupBy(
        source, keys, epoch, calls, group_schema(schemas, kept_orders(keys, epoch), columns)
    )


def _meant(name: nodes.Name, known: Collection[str]) -> str | None:
    """Return the name of ``known`` that ``name`` stands for: as written, else in another case."""
    if len(name.parts) > 1:
        return None
    (text,) = name.parts
    return text if text in known else other_case(text, known)


def _not_in_term(node: nodes.FunctionCall) -> Expression:
    message = f"aggregate {node.name} is not allowed in a group-by term"
    remedy = "aggregate in one query and group its result in another"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)


def not_nested(node: nodes.FunctionCall) -> Expression:
    """Refuse an aggregate, for the ``Typer`` of arguments of aggregates.

    Raises:
        TypeMismatchError: always.
    """
    message = f"aggregate {node.name} is not allowed inside another"
    remedy = "aggregate in one query and aggregate its result in another"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)
