"""Committed outputs, delivered: each step once, in order, to the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gscope.engine.outputs import read_output, remove_output
from gscope.engine.sinks.columns import readable, readable_schema
from gscope.queries.streams.messages import promised_name

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from gscope.queries.plan.program import Program


class Sink(Protocol):
    """Where answers go. Rows arrive as readable tables (see ``engine/sinks/columns.py``)."""

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Rows of ``query`` with that readable schema will come, or none."""

    def write(self, query: str, table: pa.Table) -> None:
        """Take rows of ``query``.

        Raises:
            BrokenPipeError: nobody reads any more.
            OSError: they cannot be written.
        """

    def close(self, *, is_complete: bool) -> None:
        """No more rows. Unless the answer is complete, nothing partial is left behind."""


class Answers:
    """Delivers what steps have committed below ``outputs`` to ``sink``."""

    def __init__(self, program: Program, outputs: Path, sink: Sink) -> None:
        self._program = program
        self._outputs = outputs
        self._sink = sink
        self._step = 0
        self.rows: dict[str, int] = {query: 0 for query, _ in program.results}

    def begin(self) -> None:
        """Every input could be opened: rows will come."""
        for query in self.rows:
            self._sink.begin(query, readable_schema(self._program.schema(query)))

    def on_commit(self, step: int, outputs: list[dict[str, Any]]) -> None:
        """Deliver a step; one that a restarted job tells of again is known by its number."""
        if step <= self._step:
            return
        self._step = step
        for output in outputs:
            query, path = output["query"], self._outputs / output["path"]
            order = [promised_name(c) for c in self._program.schema(query).temporal]
            for table in read_output(path, order):
                self.deliver(query, table)
            remove_output(path)

    def deliver(self, query: str, table: pa.Table) -> None:
        """Deliver rows of ``query`` as Spark or an LFTA wrote them."""
        self.rows[query] += table.num_rows
        self._sink.write(query, readable(table, self._program.schema(query)))
