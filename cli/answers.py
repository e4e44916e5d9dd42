"""Committed outputs, delivered: each step once, in order, to the sink."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from gscope.cli.delivered import Position
from gscope.cli.held_rows import HeldRows
from gscope.engine.outputs import read_output, remove_output
from gscope.engine.sinks.columns import readable, readable_schema
from gscope.engine.sinks.pieces import bounded_pieces
from gscope.errors import EngineError
from gscope.queries.streams.messages import promised_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.delivered import Delivered, StreamPosition
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

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        """Make everything written so far safe from the end of this process.

        Args:
            is_last: nothing may be put off.

        Returns:
            What the sink wants to be told when the run is resumed; None to go on holding rows back.
        """

    def publish(self) -> None:
        """What ``settle`` gave is on record: readers may see it."""

    def close(self, *, is_complete: bool) -> None:
        """No more rows. Unless the answer is complete, nothing partial is left behind."""


class Answers:
    """Delivers what steps have committed below ``outputs``, and rows of streams, to ``sink``.

    Args:
        program: what is answered.
        outputs: where the HFTA job publishes.
        sink: where rows go.
        delivered: the record to go on from and to keep; None for a run that is not resumed when it is killed.

    Attributes:
        rows: delivered, by query.
    """

    def __init__(
        self, program: Program, outputs: Path, sink: Sink, delivered: Delivered | None = None
    ) -> None:
        self._program = program
        self._outputs = outputs
        self._sink = sink
        self._delivered = delivered
        position = delivered.position if delivered is not None else Position()
        self._step = position.step
        self._streams = dict(position.streams)
        self._unsettled: list[Path] = []
        self._orders = {
            query: [promised_name(column) for column in program.schema(query).temporal]
            for query, _ in program.results
        }
        # Live answers do not wait for rows of the same time, and are never the same again.
        self._held = {
            query: HeldRows(order)
            for query, order in self._orders.items()
            if order and delivered is None
        }
        self.rows = {query: position.rows.get(query, 0) for query, _ in program.results}

    def begin(self) -> None:
        """Every input could be opened: rows will come."""
        for query in self.rows:
            self._sink.begin(query, readable_schema(self._program.schema(query)))
        self._settle()

    def on_commit(
        self,
        step: int,
        outputs: list[dict[str, Any]],
        bounds: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Deliver a step; one that a restarted job reports again is known by its number.

        Args:
            step: its number.
            outputs: what it answered, see ``commits.Output``.
            bounds: of each query and temporal column, below which no later step has rows; rows for
                which this is not known are held until it is.

        Raises:
            EngineError: rows of an output are missing.
        """
        paths = [self._outputs / output["path"] for output in outputs]
        if step <= self._step:
            self._forget(path for path in paths if path not in self._unsettled)
            return
        self._step = step
        came = {output["query"]: output for output in outputs}
        for query in self.rows:
            tables = self._read(came[query]) if query in came else iter(())
            held = self._held.get(query)
            if held is not None:
                first = self._orders[query][0]
                tables = held.take(tables, (bounds or {}).get(query, {}).get(first, -math.inf))
            for table in tables:
                self._write(query, table)
        self._unsettled += paths
        self._settle()

    def _read(self, output: Mapping[str, Any]) -> Iterator[pa.Table]:
        """The rows of an output, in order."""
        path, found = self._outputs / output["path"], 0
        for table in read_output(path, self._orders[output["query"]], output.get("files", ())):
            found += table.num_rows
            yield table
        if found != output["rows"]:
            message = f"expected {output['rows']} rows in the answer {path}, got {found}"
            raise EngineError(message)

    def on_rows(
        self,
        rows: Iterable[tuple[str, Iterable[pa.Table]]],
        streams: Mapping[str, StreamPosition],
        *,
        is_last: bool = False,
    ) -> dict[str, int]:
        """Deliver rows of streams as LFTAs wrote them.

        Args:
            rows: with the query that they answer.
            streams: how far that delivers the streams.
            is_last: no more rows of streams will come.

        Returns:
            For each stream the cursor up to which it may be acknowledged.
        """
        for query, tables in rows:
            for table in tables:
                self._write(query, table)
        self._streams |= streams
        self._settle(is_last=is_last)
        settled = self._delivered.position.streams if self._delivered is not None else self._streams
        return {stream: position.cursor for stream, position in settled.items()}

    def on_tick(self) -> None:
        """Time has passed: the sink may want to let rows be seen that it has held back."""
        if self._delivered is not None:
            self._settle()

    def finish(self) -> None:
        """Nothing more will come: hold nothing back."""
        for query, held in self._held.items():
            for table in held.rest():
                self._write(query, table)
        self._settle(is_last=True)

    def _write(self, query: str, table: pa.Table) -> None:
        schema = self._program.schema(query)
        for piece in bounded_pieces(table, schema):
            self.rows[query] += piece.num_rows
            self._sink.write(query, readable(piece, schema))

    def _settle(self, *, is_last: bool = False) -> None:
        if self._delivered is not None:
            sink = self._sink.settle(is_last=is_last)
            if sink is None:
                return
            position = Position(self._step, dict(self.rows), dict(self._streams), sink)
            if position != self._delivered.position:
                self._delivered.record(position)
            self._sink.publish()
        self._forget(self._unsettled)
        self._unsettled = []

    def _forget(self, paths: Iterable[Path]) -> None:
        for path in paths:
            remove_output(path)
