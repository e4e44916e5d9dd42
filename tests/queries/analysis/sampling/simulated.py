"""Samples of a known answer.

The rows of one window, and what a program computes of those it keeps.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.queries.analysis.sampling.plain_answers import PlainAnswers
from tests.queries.analysis.sampling.samples import compiled

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.plan.logical import GroupBy
from gscope.queries.plan.program import AggregationNode
from gscope.queries.plan.sampling.scaling import with_rate
from gscope.queries.plan.trees import nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.queries.analysis.sampling.plain_answers import Packet

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.program import Program

Values = dict[str, Any]


def hosts(seed: int, count: int) -> list[Packet]:
    """The packets of one minute, of hosts with a few flows of a few packets each."""
    source = random.Random(seed)
    return [
        {
            "time": 0,
            "protocol": 6,
            "srcIP": 0xFFFF << 32 | 0x0A000000 + host,
            "destIP": 0xFFFF << 32 | 0xC0A80000 + flow,
            "len": source.choice((60, 90, 1500)),
        }
        for host in range(count)
        for flow in range(source.randrange(1, 4))
        for _ in range(source.randrange(1, 4))
    ]


@dataclass(frozen=True)
class Simulation:
    """The rows that the grouping of the last query reads, and that query at some rate.

    Attributes:
        program: the program.
        rate: the rate.
        calls: the aggregates of the grouping, hidden ones among them.
        rows: the rows that the grouping reads if all packets are kept.
        units: what is kept or dropped as one, for each row.
        added: what each row adds to each count and sum, or the value that is counted; None for
            NULL.
    """

    program: Program
    rate: float
    calls: tuple[AggregateCall, ...]
    rows: list[Values]
    units: list[Any]
    added: list[list[Any]]

    @classmethod
    def of(
        cls, text: str, packets: list[Packet], rate: float, unit: Callable[[Values], Any] | None
    ) -> Simulation:
        """Return the rows of a text; ``unit`` is that of a row, None if each row is one."""
        made = compiled(text)
        plan = made.stages[0][1]
        group = next(n for n in nodes_of(plan.queries[-1].root) if isinstance(n, GroupBy))
        rows = [row.values for row in PlainAnswers(plan, packets).rows_of(group.input)]
        added = [[_added(call, row) for row in rows] for call in group.aggregates]
        units = list(range(len(rows))) if unit is None else [unit(row) for row in rows]
        return cls(made.program, rate, group.aggregates, rows, units, added)

    def kept(self, seed: int) -> list[int]:
        """The places of the rows that a sample keeps."""
        source = random.Random(seed)
        chosen = {u for u in dict.fromkeys(self.units) if source.random() < self.rate}
        return [place for place, unit in enumerate(self.units) if unit in chosen]

    def columns(self, rate: float) -> dict[str, Expression]:
        """The columns of the answer as the job computes them at a rate."""
        node = with_rate(self.program, rate).nodes[-1]
        assert isinstance(node, AggregationNode)
        return {column.name: column.expression for column in node.columns}

    def answer(self, kept: list[int], columns: dict[str, Expression]) -> Values:
        """The row of the answer of some rows."""
        values: Values = {"tb": 0}
        for call, added in zip(self.calls, self.added, strict=True):
            values[call.name] = _aggregate(call.function, [added[place] for place in kept])
        return {n: evaluate(e, lambda leaf: values[leaf.name]) for n, e in columns.items()}

    @property
    def whole(self) -> Values:
        """The row of the full answer."""
        return self.answer(list(range(len(self.rows))), self.columns(1.0))


def _added(call: AggregateCall, row: Values) -> Any:
    if not call.arguments:
        return 1
    return evaluate(call.arguments[0], lambda leaf: row[leaf.name])


def _aggregate(function: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    match function:
        case "count":
            return len(present)
        case "count_distinct":
            return len(set(present))
        case "sum":
            return sum(present) if present else None
        case "avg":
            return sum(present) / len(present) if present else None
    raise ValueError(function)


def sums_by(rows: list[Values], keys: list[Any], column: str) -> dict[Any, float]:
    """The sums of a column, or numbers of rows for "", by key."""
    found: dict[Any, float] = {}
    for row, key in zip(rows, keys, strict=True):
        found[key] = found.get(key, 0.0) + (row[column] if column else 1)
    return found
