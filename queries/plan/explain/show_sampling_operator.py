"""The clauses of the sampling operator and what bounds its state, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.show_expressions import show
from gscope.queries.plan.trees import map_expression
from gscope.queries.plan.whole_input import is_whole_input

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling_operator import Condition, SampleNode, Sampling


def show_sampling_operator(sampling: Sampling) -> list[str]:
    """Return the clauses of the operator, a line each, with calls written out.

    Superaggregates and calls that SELECT reads are shown with the names of their columns.
    """
    written = _Written(sampling)
    lines = [f"supergroup {', '.join(sampling.supergroup) or 'all of the window'}"]
    lines += [f"where {written.condition(each)}" for each in sampling.where]
    lines += [
        f"superaggregate {s.name} := {written.names[s.name]}" for s in sampling.superaggregates
    ]
    lines += [
        f"aggregate {a.name} := {a.function}({', '.join(map(written.text, a.arguments)) or '*'})"
        for a in sampling.aggregates
    ]
    for name, clause in (
        ("cleaning when", sampling.cleaning_when),
        ("cleaning by", sampling.cleaning_by),
        ("having", sampling.having),
    ):
        if clause is not None:
            lines.append(f"{name} {written.condition(clause)}")
    lines += [f"select {call.name} := {written.names[call.name]}" for call in sampling.selected]
    return lines


def sample_state_bound(node: SampleNode) -> str:
    """Return what bounds the state of a sampling operator, in one sentence."""
    sampling = node.sampling
    waits = (
        "rows wait in the log until the input has ended"
        if is_whole_input(node.epoch_expression)
        else f"rows of open windows wait in the log, none in memory; a window closes when the "
        f"watermark of {show(node.epoch_expression)} passes it"
    )
    scope = f"each supergroup ({', '.join(sampling.supergroup)})" if sampling.supergroup else "it"
    states = sorted({STATEFUL[name].state for name in sampling.functions if name in STATEFUL})
    kept = f"; between windows only the state {' and '.join(states)} is kept" if states else ""
    return f"{waits}; then {scope} has at most {sampling.max_groups:,} groups at a time{kept}"


class _Written:
    """The columns of a sampling operator as a query writes them.

    Attributes:
        names: the text of each superaggregate and call, by the name of its column.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._values = {value.name: value.expression for value in sampling.values}
        self.names: dict[str, str] = {}
        for each in sampling.superaggregates:
            argument = "*" if each.argument is None else self.text(each.argument)
            rank = f", {each.rank}" if each.rank else ""
            self.names[each.name] = f"{each.function}$({argument}{rank})"
        for call in sampling.calls():
            arguments = ", ".join(map(self.text, call.arguments))
            self.names[call.name] = f"{call.function}({arguments})"

    def condition(self, condition: Condition) -> str:
        """Return a condition with its calls written out."""
        return self.text(condition.condition)

    def text(self, expression: Expression) -> str:
        """Return an expression with values, superaggregates and calls written out."""

        def change(part: Expression) -> Expression:
            return self._values.get(part.name, part) if isinstance(part, Column) else part

        text = show(map_expression(expression, change))
        # Names that begin with $ occur in no text of a query.
        for name in sorted(self.names, key=len, reverse=True):
            text = text.replace(name, self.names[name])
        return text
