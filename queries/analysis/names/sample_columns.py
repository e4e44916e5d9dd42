"""The columns that describe a sample, in SELECT: ``sample_groups``, ``x_low`` and ``x_high``.

x is another column of the same SELECT, also one without a name of its own, or a column of the query
that it reads. A column or alias that the text gives such a name comes first.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, TypeMismatchError
from gscope.queries.analysis.names.column_names import default_name
from gscope.queries.did_you_mean import other_case
from gscope.queries.expressions.expressions import Call, Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.plan.sample_columns import (
    SAMPLE_GROUPS,
    SampleColumn,
    estimated_name,
    exact_end,
    has_interval,
    sample_groups,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.expressions.expressions import Expression

_ONE = Literal(1, GsqlType.INT)


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """The columns of one SELECT that describe a sample.

    Attributes:
        body: the SELECT, with the expressions of its aliases in their place.
        source: its input, open for look-up.
        found: the columns found so far.
    """

    body: nodes.Select
    source: Source
    found: list[SampleColumn] = field(default_factory=list)

    def typer(self, typer: Typer) -> Typer:
        """Return a typer of SELECT that knows these columns."""
        return replace(typer, of_sample=lambda name: self._column(name, typer))

    def typer_of_conditions(self, typer: Typer) -> Typer:
        """Return a typer of HAVING and ORDER BY, which refuses these columns."""
        return replace(typer, of_sample=lambda name: self._refused(name, typer))

    def _refused(self, name: nodes.Name, typer: Typer) -> Expression | None:
        if replace(self, found=[])._column(name, typer) is None:
            return None
        message = f"{name.parts[0]} describes a sample, and is a column of SELECT only"
        remedy = "a condition on it would choose rows by chance; filter where the rows are read"
        raise ResolveError(message, position=name.position, remedy=remedy)

    def _column(self, name: nodes.Name, typer: Typer) -> Expression | None:
        """Return the column that a name stands for; None if it is another name."""
        if len(name.parts) > 1:
            return None
        (text,) = name.parts
        column: Call | None
        if text.lower() == SAMPLE_GROUPS:
            column = sample_groups(_ONE)
        else:
            column = self._end(text, name, typer)
        if column is not None:
            made = SampleColumn(text, column.function, column.arguments[0], name.position)
            if not any(each.is_of(column) for each in self.found):
                self.found.append(made)
        return column

    def _end(self, text: str, name: nodes.Name, typer: Typer) -> Call | None:
        parts = estimated_name(text)
        if parts is None:
            return None
        estimated, is_low = parts
        value = self._value(estimated, name, typer)
        if value is None:
            return None
        if not has_interval(value.type):
            message = f"{text} is an end of an interval, and {estimated} is {value.type.value}"
            remedy = "intervals are those of INT and FLOAT columns"
            raise TypeMismatchError(message, position=name.position, remedy=remedy)
        return exact_end(value, is_low=is_low)

    def _value(self, text: str, name: nodes.Name, typer: Typer) -> Expression | None:
        """Return the expression of a column of SELECT or of the query that it reads."""
        outputs = {
            output.name or default_name(output.expression, self.source): output
            for output in reversed(self.body.outputs)
            if isinstance(output, nodes.OutputItem)
        }
        meant = text if text in outputs else other_case(text, outputs)
        if meant is not None:
            return typer.type(outputs[meant].expression)
        try:
            value = typer.name(nodes.Name((text,), position=name.position))
        except GsqlError:
            return None
        return value if isinstance(value, Column) else None
