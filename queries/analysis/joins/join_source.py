"""The result of a join as an input of the clauses above it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, UnsupportedError
from gscope.queries.analysis.names.scope import Source
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import check_where, refuse_aggregate
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Column, walk
from gscope.queries.plan.logical import Filter, Join
from gscope.queries.plan.trees import conjunction
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.analysis.joins.inputs import JoinInput, JoinNames
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes


@dataclass(frozen=True, slots=True)
class JoinSource(Source):
    """The result of a join, open for look-up by the names of its inputs.

    For ``SELECT a.n, b.n FROM a LEFT_OUTER_JOIN b WHERE a.tb = b.tb``, where both have tb and n:

    Attributes:
        names: what ``tb``, ``a.n`` and ``b.n`` stand for among the columns of the inputs.
        columns: the result's column for each column of an input: ``n`` for a.n, ``b_n`` for b.n.
        filled: expressions over the result that have a value even in rows without a partner, with
            the column that holds it: the epoch, where a missing side leaves its own NULL.
        is_sql: whether outer joins are in SQL's spelling (``LEFT JOIN … ON``).
    """

    names: JoinNames
    columns: Mapping[Column, Column]
    filled: Mapping[Expression, Column]
    is_sql: bool

    def filtered(
        self, conditions: Sequence[nodes.Expression], substitutes: Substitutes
    ) -> JoinSource:
        """Return the rows of the result for which all conditions of WHERE hold.

        Raises:
            GsqlError: a condition is wrong.
        """
        typer = Typer.over(self, substitutes, refuse_aggregate)
        typed: list[Expression] = []
        for condition in conditions:
            check_where(condition)
            found = typer.condition(condition, "in WHERE")
            self._check_missing(found, condition)
            typed.append(found)
        predicate = conjunction(typed)
        if predicate is None:
            return self
        return replace(self, node=Filter(self.node, predicate, self.node.schema))

    def rewrite(self, expression: Expression) -> Expression:
        """Return the column that holds the value of ``expression`` in all rows, else itself."""
        return self.filled.get(expression, expression)

    def _check_missing(self, condition: Expression, position: nodes.Expression) -> None:
        """Refuse to test for rows without a partner by a column that a FULL JOIN fills.

        Raises:
            UnsupportedError: the condition asks whether such a column is NULL.
        """
        tested = [
            part.arguments[0]
            for part in walk(condition)
            if isinstance(part, Call) and part.function == "is_null"
        ]
        filled = {
            column.name
            for column in (self.node.columns if isinstance(self.node, Join) else ())
            if isinstance(column.expression, Call) and column.expression.function == "coalesce"
        }
        columns = [c for c in tested if isinstance(c, Column) and c.name in filled]
        if columns:
            message = (
                f"{columns[0].name} is never NULL: a FULL JOIN fills the time of a missing side"
            )
            remedy = "test another column of that side"
            raise UnsupportedError(message, position=position.position, remedy=remedy)

    def resolve(self, name: nodes.Name) -> Expression:
        """Return the column or expression that ``name`` stands for in the result.

        Raises:
            ResolveError: no column has this name, or several that need not be equal.
        """
        available = [c for c in self.names.candidates(name) if c in self.columns]
        column = available[0] if len(available) == 1 else self.names.resolve(name)
        if column not in self.columns:
            label = self.names.inputs[column.input].label
            message = (
                f"FILTER_JOIN only tests whether {label} has a match; its columns are unavailable"
            )
            remedy = f"take it from {self.names.inputs[0].label}, or write INNER_JOIN"
            raise ResolveError(message, position=name.position, remedy=remedy)
        if self.is_sql and len(available) > 1:
            return self._any_of([self.columns[each] for each in available])
        return self.columns[column]

    def _any_of(self, results: Sequence[Column]) -> Expression:
        """Return the value of columns that a join makes equal, from whichever side is present."""
        columns = tuple(dict.fromkeys(results))
        present = (column for column in columns if not column.is_nullable)
        return next(present, columns[0] if len(columns) == 1 else call("coalesce", *columns))

    def star(self, star: nodes.Star) -> list[tuple[str, Expression]]:
        """Return the names and meanings of ``*``: all columns of all inputs, or of one.

        Raises:
            ResolveError: the qualifier names no input.
        """
        inputs: Sequence[JoinInput] = self.names.inputs
        if star.qualifier is not None:
            inputs = (self.names.of_qualifier(star.qualifier, star),)
        return [
            (name, self.columns[column])
            for each in inputs
            for name, column in each.star()
            if column in self.columns
        ]
