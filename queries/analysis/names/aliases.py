"""Names that a SELECT gives itself: its aliases in other clauses, ALL, and positions in GROUP BY.

The name that gscope gives an unnamed call, such as ``minute`` or ``sum_len``, counts as its alias.
Each is replaced by the expression that it stands for, so that everything behind this module sees a
SELECT without them:

    SELECT time/60 AS tb, srcIP AS src, sum(len) AS bytes FROM IP
    WHERE src <> '10.0.0.1' GROUP BY tb, 2 HAVING bytes > 1000

    SELECT time/60 AS tb, srcIP AS src, sum(len) AS bytes FROM IP
    WHERE srcIP <> '10.0.0.1' GROUP BY time/60 AS tb, srcIP AS src HAVING sum(len) > 1000

A column of the input has precedence over an alias where single tuples are read: in WHERE, GROUP BY,
FILTER and inside aggregates. A group-by term has precedence over both where groups are read: in
HAVING, in CLOSING_WHEN and outside aggregates. Decision 33 has the reasons. ORDER BY reads the
columns of SELECT (``queries/analysis/order_by.py``); only aggregates in it are replaced here.
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from gscope.errors import ResolveError, TypeMismatchError
from gscope.queries.analysis.names.column_names import default_name
from gscope.queries.analysis.typing.typer import is_aggregate
from gscope.queries.analysis.typing.unsupported import find_aggregates, is_grouped
from gscope.queries.did_you_mean import other_case
from gscope.queries.expressions.schema import free_name
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.gsql.limits import MAX_PARTS, check_limits
from gscope.queries.gsql.node import substitute, walk
from gscope.queries.plan.sample_columns import SAMPLE_GROUPS, estimated_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.analysis.names.scope import Source

_ALL = "ALL"
_WITHOUT_TERMS = frozenset({"WHERE", "GROUP BY"})


def without_aliases(body: nodes.Select, sources: Sequence[Source]) -> nodes.Select:
    """Return a SELECT with the expressions of its aliases in their place.

    Args:
        body: the SELECT.
        sources: its inputs, open for look-up.

    Raises:
        GsqlError: an alias of an aggregate is used where single tuples are read, a position is
            not one of SELECT, or the expressions are too long.
    """
    own = _OwnNames.of(body, sources)
    terms = own.group_terms()
    own = replace(own, terms=own.named_terms(terms))
    outputs: list[nodes.OutputItem | nodes.Star] = []
    for output in body.outputs:
        if isinstance(output, nodes.OutputItem):
            outputs.append(own.with_outputs(outputs).item(output))
        else:
            outputs.append(output)
    own = own.with_outputs(outputs)
    resolved = replace(
        body,
        outputs=tuple(outputs),
        where=None if body.where is None else own.of_tuples(body.where, "WHERE"),
        group_by=terms,
        having=None if body.having is None else own.of_groups(body.having),
        closing_when=None if body.closing_when is None else own.of_groups(body.closing_when),
        cleaning_when=None if body.cleaning_when is None else own.of_groups(body.cleaning_when),
        cleaning_by=None if body.cleaning_by is None else own.of_groups(body.cleaning_by),
        sample_by=tuple(
            own.of_groups(term) if own.is_grouped else own.of_tuples(term, "SAMPLE BY")
            for term in body.sample_by
        ),
        order_by=tuple(
            replace(term, expression=own.in_aggregates(term.expression)) for term in body.order_by
        ),
    )
    if resolved != body:
        check_limits(resolved)
    return resolved


@dataclass(frozen=True, slots=True)
class _OwnNames:
    """The names of one SELECT.

    Attributes:
        body: the SELECT.
        sources: its inputs, open for look-up.
        aliases: the expressions of SELECT by the names that the query gives them.
        terms: the expressions of GROUP BY by their names, also those that gscope gives them.
        is_grouped: whether rows are groups.
        expanding: the names whose expressions are being expanded, which cannot contain themselves.
        replaced: counts the names replaced so far; aliases of aliases could double it each time.
    """

    body: nodes.Select
    sources: Sequence[Source]
    aliases: Mapping[str, nodes.Expression]
    is_grouped: bool
    terms: Mapping[str, nodes.Expression] = field(default_factory=dict)
    expanding: frozenset[str] = frozenset()
    replaced: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, body: nodes.Select, sources: Sequence[Source]) -> _OwnNames:
        """Return the names of ``body``, its terms still unknown."""
        aliases = _with_defaults(body.outputs, sources[0])
        return cls(body, sources, aliases, is_grouped(body))

    def with_outputs(self, outputs: Sequence[nodes.OutputItem | nodes.Star]) -> _OwnNames:
        """Return the names with those of ``outputs``, items that have been resolved."""
        return replace(self, aliases=_with_defaults(outputs, self.sources[0]))

    def named_terms(self, terms: Sequence[nodes.GroupTerm]) -> dict[str, nodes.Expression]:
        """Return the expressions of GROUP BY by the names that columns can use for them."""
        named: dict[str, nodes.Expression] = {}
        for term in terms:
            own = [default_name(term.expression, source) for source in self.sources]
            for name in [term.name] if term.name else own:
                named.setdefault(name, term.expression)
        return named

    # --------------------------------------------------------------------------- GROUP BY

    def group_terms(self) -> tuple[nodes.GroupTerm, ...]:
        """Return the terms of GROUP BY, with what ALL, positions and aliases stand for."""
        terms = self.body.group_by
        if len(terms) == 1 and self._is_all(terms[0]):
            return self._all_terms(terms[0])
        return tuple(self._term(term) for term in terms)

    def _is_all(self, term: nodes.GroupTerm) -> bool:
        """Return whether a term is ``ALL``, which a column or alias of that name is not."""
        match term.expression:
            case nodes.Name((text,)) if term.name is None and text.upper() == _ALL:
                return self._column(text) is None and text not in self.aliases
        return False

    def _all_terms(self, written: nodes.GroupTerm) -> tuple[nodes.GroupTerm, ...]:
        found = []
        for output in self.body.outputs:
            if isinstance(output, nodes.Star):
                message = "GROUP BY ALL cannot group by *"
                remedy = "name the columns in SELECT"
                raise TypeMismatchError(message, position=output.position, remedy=remedy)
            is_constant = isinstance(output.expression, nodes.LiteralSyntax) or self._is_number(
                output.expression
            )
            if not is_constant and self._aggregate_in(output.expression) is None:
                found.append(self._of_output(output, None))
        if not found and not any(any(find_aggregates(one)) for one in self.body.outputs):
            message = "GROUP BY ALL groups by the columns of SELECT, but these are constants"
            remedy = "select a column, or an aggregate such as count(*)"
            raise TypeMismatchError(message, position=written.position, remedy=remedy)
        return tuple(found)

    def _is_number(self, expression: nodes.Expression) -> bool:
        """Return whether an item is the number of sampled groups of a row."""
        match expression:
            case nodes.Name((text,)) if text.lower() == SAMPLE_GROUPS:
                return self._column(text) is None and text not in self.aliases
        return False

    def _term(self, term: nodes.GroupTerm) -> nodes.GroupTerm:
        literal = term.expression
        if isinstance(literal, nodes.LiteralSyntax):
            if literal.kind is nodes.LiteralKind.INTEGER:
                return self._at_position(term, int(literal.value or 0))
            message = "a constant cannot be a group-by term"
            remedy = "GROUP BY takes expressions, names, positions such as 1, and ALL"
            raise TypeMismatchError(message, position=term.position, remedy=remedy)
        expression = self.of_tuples(term.expression, "GROUP BY")
        if term.name is None and isinstance(literal, nodes.Name) and expression is not literal:
            return replace(term, expression=expression, name=literal.parts[0])
        return replace(term, expression=expression)

    def _at_position(self, term: nodes.GroupTerm, number: int) -> nodes.GroupTerm:
        outputs = self.body.outputs
        if not 1 <= number <= len(outputs):
            message = f"invalid position in GROUP BY: expected 1 to {len(outputs)}, got {number}"
            remedy = "a number is the position of a column of SELECT; write the expression itself"
            raise TypeMismatchError(message, position=term.position, remedy=remedy)
        output = outputs[number - 1]
        if isinstance(output, nodes.Star) or any(
            isinstance(one, nodes.Star) for one in outputs[:number]
        ):
            message = f"GROUP BY {number} cannot count columns behind *"
            remedy = "name the columns in SELECT"
            raise TypeMismatchError(message, position=term.position, remedy=remedy)
        call = self._aggregate_in(output.expression)
        if call is not None:
            message = f"GROUP BY {number} is {print_expression(output.expression)}, an aggregate"
            remedy = f"groups are formed before {call.name} is computed; leave {number} out"
            raise TypeMismatchError(message, position=term.position, remedy=remedy)
        if isinstance(output.expression, nodes.LiteralSyntax):
            message = f"GROUP BY {number} is a constant, which cannot be a group-by term"
            raise TypeMismatchError(message, position=term.position, remedy=f"leave {number} out")
        return self._of_output(output, term.name)

    def _of_output(self, output: nodes.OutputItem, name: str | None) -> nodes.GroupTerm:
        expression = self.of_tuples(output.expression, "GROUP BY")
        return nodes.GroupTerm(expression, name or output.name, position=output.position)

    # ------------------------------------------------------------------- what names stand for

    def of_tuples(self, expression: nodes.Expression, clause: str) -> Any:
        """Return an expression that reads single tuples, with the names in it replaced.

        Args:
            expression: a condition, a group-by term or the argument of an aggregate.
            clause: its place, for messages.
        """

        def change(node: nodes.Node) -> nodes.Node | None:
            return self._tuple_name(node, clause) if isinstance(node, nodes.Name) else None

        return substitute(expression, change)

    def of_groups(self, expression: nodes.Expression) -> Any:
        """Return a condition that reads groups, with the names in it replaced."""

        def change(node: nodes.Node) -> nodes.Node | None:
            if isinstance(node, nodes.FunctionCall) and is_aggregate(node):
                return self._aggregate(node)
            return self._group_name(node) if isinstance(node, nodes.Name) else None

        return substitute(expression, change)

    def in_aggregates(self, expression: nodes.Expression) -> Any:
        """Return a term of ORDER BY with the names inside aggregates replaced.

        Other names stand for columns of SELECT, which ``queries/analysis/order_by.py`` finds.
        """

        def change(node: nodes.Node) -> nodes.Node | None:
            if isinstance(node, nodes.FunctionCall) and is_aggregate(node):
                return self._aggregate(node)
            return None

        return substitute(expression, change)

    def item(self, output: nodes.OutputItem) -> nodes.OutputItem:
        """Return an item of SELECT with the aliases of earlier items replaced."""
        expression = self._in_output(output.expression, output.name)
        if expression is output.expression:
            return output
        check_limits(expression)
        # An item without a name is called by what is written, not by what that stands for.
        taken = _aliases(self.body.outputs)
        name = output.name or free_name(default_name(output.expression, self.sources[0]), taken)
        return replace(output, expression=expression, name=name)

    def _in_output(self, expression: nodes.Expression, own_name: str | None) -> Any:
        later = _aliases(self.body.outputs).keys() - {own_name}

        def change(node: nodes.Node) -> nodes.Node | None:
            if isinstance(node, nodes.FunctionCall) and is_aggregate(node):
                return self._aggregate(node)
            if not isinstance(node, nodes.Name) or len(node.parts) > 1:
                return None
            (text,) = node.parts
            is_other = _knows(self.terms, text) or self._column(text) is not None
            if not is_other and text in later - self.aliases.keys() and self._is_foreign(text):
                raise _too_late(node, self.sources[0].what)
            if is_other or text not in self.aliases:
                return None
            return self.aliases[text]

        return substitute(expression, change)

    def _aggregate(self, call: nodes.FunctionCall) -> nodes.FunctionCall:
        """Return a call with the names in its arguments replaced; terms are known there."""
        where = f"the argument of {call.name}"
        return replace(
            call,
            args=tuple(self.of_tuples(argument, where) for argument in call.args),
            filter=None if call.filter is None else self.of_tuples(call.filter, "FILTER"),
        )

    def _tuple_name(self, name: nodes.Name, clause: str) -> nodes.Node | None:
        if len(name.parts) > 1:
            return None
        (text,) = name.parts
        if text in self.expanding or self._is_column(text):
            return None
        own = {**self.aliases, **self.terms}
        if clause not in _WITHOUT_TERMS and _knows(self.terms, text):
            return None  # an aggregate, where Grouping knows the terms
        if text not in own:
            if self._column(text) is not None:
                return None
            cased = other_case(text, own)
            if cased is None or cased in self.expanding:
                return None
            text = cased
        meant = own[text]
        if self._aggregate_in(meant) is not None:
            raise _too_early(name, text, meant, clause)
        if clause != "GROUP BY" and self._is_bucket(meant):
            return None
        if next(self.replaced) > MAX_PARTS:
            message = f"the query is too long with the meaning of {text} in its place"
            remedy = "compute the aliases in a query of their own: FROM (SELECT …) AS q"
            raise TypeMismatchError(message, position=name.position, remedy=remedy)
        return self._expanded(text).of_tuples(meant, clause)  # type: ignore[no-any-return]

    def _group_name(self, name: nodes.Name) -> nodes.Node | None:
        if len(name.parts) > 1:
            return None
        (text,) = name.parts
        columns = {t.parts[-1] for t in self.terms.values() if isinstance(t, nodes.Name)}
        if text in self.terms or text in columns:
            return None
        if text in self.aliases:
            return self.aliases[text]
        if self._column(text) is not None or _knows(self.terms, text):
            return None
        cased = other_case(text, self.aliases)
        return None if cased is None else self.aliases[cased]

    def _aggregate_in(self, expression: nodes.Expression) -> nodes.FunctionCall | None:
        """Return an aggregate in an expression or in the aliases that it uses, None without one."""
        waiting, met = [expression], set[str]()
        while waiting:
            part = waiting.pop()
            call = next(find_aggregates(part), None)
            if call is not None:
                return call
            names = {n.parts[0] for n in walk(part) if isinstance(n, nodes.Name)} - met
            met |= names
            names |= {estimated[0] for n in names if (estimated := estimated_name(n))}
            waiting += [
                self.aliases[n] for n in names if n in self.aliases if not self._is_column(n)
            ]
        return None

    def _is_bucket(self, expression: nodes.Expression) -> bool:
        """Return whether ``/`` truncates in a group-by term, but not in a condition."""
        dividends = [
            part.left
            for part in walk(expression)
            if isinstance(part, nodes.Binary) and part.operator is nodes.BinaryOperator.DIVIDE
        ]
        names = [n for each in dividends for n in walk(each) if isinstance(n, nodes.Name)]
        return self.is_grouped and any(
            source.has_aggregate(found)
            for source in self.sources
            for found in [source.find(name.parts[-1]) for name in names]
            if found is not None
        )

    def _expanded(self, text: str) -> _OwnNames:
        """Return the names for the expression of ``text``, which cannot use ``text`` again."""
        return replace(self, expanding=self.expanding | {text})

    def _is_column(self, text: str) -> bool:
        """Return whether an input has a column of exactly this name."""
        return any(text in source.stars for source in self.sources)

    def _is_foreign(self, text: str) -> bool:
        """Return whether other tools call a field of the input's packets ``text``."""
        return any(source.find_foreign(text) is not None for source in self.sources)

    def _column(self, text: str) -> Any:
        """Return what an input calls by this name in any spelling, None if no input does."""
        found = (source.find(text) for source in self.sources)
        return next((one for one in found if one is not None), None)


def _knows(names: Mapping[str, nodes.Expression], text: str) -> bool:
    """Return whether ``text`` is one of the names, in any case."""
    return text in names or other_case(text, names) is not None


def _aliases(outputs: Sequence[nodes.OutputItem | nodes.Star]) -> dict[str, nodes.Expression]:
    return {
        output.name: output.expression
        for output in outputs
        if isinstance(output, nodes.OutputItem) and output.name is not None
    }


def _with_defaults(
    outputs: Sequence[nodes.OutputItem | nodes.Star], source: Source
) -> dict[str, nodes.Expression]:
    """Return the aliases, and the names that gscope gives calls: ``minute``, ``sum_len``."""
    named = _aliases(outputs)
    for output in outputs:
        if not isinstance(output, nodes.OutputItem) or output.name is not None:
            continue
        if isinstance(output.expression, nodes.FunctionCall):
            named.setdefault(default_name(output.expression, source), output.expression)
    return named


def _too_late(name: nodes.Name, what: str) -> ResolveError:
    """Return the error for an alias before its place, if other tools call a field so."""
    (text,) = name.parts
    message = f"{what} has no column {text}"
    remedy = (
        f"{text} is named further on in SELECT: move it to the front, or repeat its expression here"
    )
    return ResolveError(message, position=name.position, remedy=remedy)


def _too_early(
    name: nodes.Name, text: str, meant: nodes.Expression, clause: str
) -> TypeMismatchError:
    """Return the error for the alias of an aggregate where single tuples are read."""
    shown = print_expression(meant)
    remedies = {
        "WHERE": f"WHERE filters tuples before grouping; write HAVING {text} …",
        "GROUP BY": f"groups are formed before aggregates are computed; leave {text} out",
    }
    remedy = remedies.get(clause, "aggregate in one query and aggregate its result in another")
    message = f"{text} is the aggregate {shown}, which is not allowed in {clause}"
    return TypeMismatchError(message, position=name.position, remedy=remedy)
