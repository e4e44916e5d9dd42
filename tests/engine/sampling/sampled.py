"""A sampling operator over packets that are plain dictionaries, without Spark and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.running.vectors import from_arrow, from_list, to_arrow
from gscope.engine.sampling.fold import fold
from gscope.engine.sampling.tuples import read_columns
from gscope.engine.sampling.values import SampleRows
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Column, PacketField, Value
    from gscope.queries.plan.program import Lfta

Packet = dict[str, Any]
Row = tuple[Any, ...]

BASE_S = 1_700_000_000


def ip(number: int) -> int:
    """An IPv4 address, as the catalog holds it."""
    return 0xFFFF << 32 | 10 << 24 | number


def packet(time_ns: int, length: int = 60, src: int = 1, dest: int = 1, **fields: Any) -> Packet:
    """A packet ``time_ns`` after the base."""
    at = BASE_S * 10**9 + time_ns
    made = {"time": at // 10**9, "timestamp": at, "time_ns": at, "len": length, "ipversion": 4}
    return {**made, "srcIP": ip(src), "destIP": ip(dest), **fields}


@dataclass
class Sampled:
    """One query with the sampling operator."""

    text: str
    node: SampleNode = field(init=False)
    lfta: Lfta = field(init=False)
    left_out: int = 0
    wrapped: int = 0

    def __post_init__(self) -> None:
        program = compile_queries([QueryText(self.text, "q")], CompileContext(("a",))).program
        node = program.nodes[-1]
        assert isinstance(node, SampleNode)
        self.node, self.lfta = node, program.lftas[0]

    def rows(self, packets: list[Packet]) -> SampleRows:
        """The tuples that the operator reads: what the LFTA ships of ``packets``."""
        columns = {column.name: column for column in self.lfta.columns}
        test = self.lfta.predicate
        packets = [p for p in packets if test is None or evaluate(test, leaf_of(p)) is True]
        table = {}
        for column in read_columns(self.node):
            expression = columns[column.name].expression
            values = [evaluate(expression, leaf_of(each)) for each in packets]
            table[column.name] = to_arrow(from_list(values, column.type), column.type)
        return SampleRows.of(self.node, pa.table(table))

    def answers(
        self, packets: list[Packet], states: pa.Table | None = None
    ) -> tuple[list[Row], pa.Table | None]:
        """The rows of all windows of ``packets``, and the states after them."""
        tables: list[pa.Table] = []
        folded = fold(self.node, self.rows(packets), states, tables.append)
        self.left_out += folded.left_out
        self.wrapped += folded.wrapped
        return [row for table in tables for row in self.plain(table)], folded.states

    def plain(self, table: pa.Table) -> list[Row]:
        """The rows of an answer as Python values."""
        columns = [from_arrow(table[c.name], c.type).to_list() for c in self.node.schema.columns]
        return list(zip(*columns, strict=True))


def leaf_of(one: Packet) -> Any:
    """What the fields of a packet are, for ``evaluate``."""

    def leaf(part: Column | PacketField) -> Value:
        value: Value = one[part.name]
        return value

    return leaf
