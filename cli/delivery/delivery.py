"""Committed outputs, delivered: each step once, in order, to the sink."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from gscope.cli.delivery.checkpoint import DeliveryPosition
from gscope.cli.delivery.held_rows import HeldRows
from gscope.cli.delivery.turns import Turns
from gscope.engine.sinks.columns import readable, readable_schema
from gscope.engine.sinks.pieces import bounded_pieces
from gscope.engine.storage.outputs import read_output, remove_output
from gscope.errors import EngineError
from gscope.queries.plan.hidden_order import visible
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.whole_input import answers_at_the_end
from gscope.queries.streams.messages import promised_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, StreamPosition
    from gscope.cli.delivery.interleaving import Interleaving
    from gscope.queries.plan.program import Program


class Sink(Protocol):
    """Where answers go. Rows arrive as readable tables (see ``engine/sinks/columns.py``)."""

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Rows of ``query`` with that readable schema will come, or none."""

    def write(self, query: str, table: pa.Table) -> None:
        """Take rows of ``query``, which may be kept until ``settle``.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            OSError: they cannot be written.
        """

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        """Make everything written so far safe from the end of this process.

        Args:
            is_last: nothing may be put off.

        Returns:
            The state that the sink needs to resume the run; None to keep holding rows back.
        """

    def publish(self) -> None:
        """What ``settle`` gave is on record: readers may see it."""

    def close(self, *, is_complete: bool) -> None:
        """No more rows. Unless the answer is complete, nothing partial is left behind."""


class Delivery:
    """Delivers what steps have committed below ``outputs``, and rows of streams, to ``sink``.

    Args:
        program: what is answered.
        outputs: where the HFTA job publishes.
        sink: where rows go.
        delivered: the record to go on from and to keep; None for a run that is not resumed when it is killed.
        is_interleaved: whether the order of rows of different results must not depend on timing;
            only of a run that is not resumed.

    Attributes:
        rows: delivered, by query.
    """

    def __init__(
        self,
        program: Program,
        outputs: Path,
        sink: Sink,
        delivered: DeliveryCheckpoint | None = None,
        *,
        is_interleaved: bool = False,
    ) -> None:
        self._outputs = outputs
        self._sink = sink
        self._delivered = delivered
        position = delivered.position if delivered is not None else DeliveryPosition()
        self._step = position.step
        self._streams = dict(position.streams)
        self._unsettled: list[Path] = []
        self._schemas = {query: visible(program.schema(query)) for query, _ in program.results}
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
        self._queued: set[Path] = set()
        self._interleaving = _interleaving(program) if is_interleaved else None
        self._turns = Turns(self._schemas)
        self._answered = {
            stream: query
            for query, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }
        self._streamed = set(self._answered.values())
        self._reply: tuple[set[str], Callable[[], None]] | None = None
        self.rows = {query: position.rows.get(query, 0) for query, _ in program.results}

    def begin(self) -> None:
        """Every input could be opened: rows will come."""
        for query in self.rows:
            self._sink.begin(query, readable_schema(self._schemas[query]))
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
            known = self._queued.union(self._unsettled)
            self._forget(path for path in paths if path not in known)
            return
        self._step = step
        self._take({output["query"]: output for output in outputs}, bounds or {})
        self._unsettled += [path for path in paths if path not in self._queued]
        self._deliver_due()
        self._settle()

    def on_bounds(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Deliver what no later step can add to any more, although none was committed.

        Args:
            bounds: see ``on_commit``.
        """
        self._take({}, bounds)
        self._deliver_due()
        self._settle()

    def _take(
        self,
        came: Mapping[str, Mapping[str, Any]],
        bounds: Mapping[str, Mapping[str, float]],
    ) -> None:
        """Deliver outputs, by query, or let them wait for those of other queries."""
        for query in (each for each in self.rows if each not in self._streamed):
            tables = self._read(came[query]) if query in came else iter(())
            held = self._held.get(query)
            bound = -math.inf
            if held is not None:
                first = self._orders[query][0]
                bound = bounds.get(query, {}).get(first, -math.inf)
                tables = held.take(tables, bound)
            if self._interleaving is not None and self._interleaving.orders(query):
                path = self._outputs / came[query]["path"] if query in came else None
                self._interleaving.add(query, self._until_read(tables, path))
                if held is not None:
                    self._interleaving.raise_bound(query, bound)
                continue
            for table in tables:
                self._write(query, table)

    def _until_read(self, tables: Iterator[pa.Table], path: Path | None) -> Iterator[pa.Table]:
        """``tables`` of an output, which is forgotten when all of them were read."""
        if path is not None:
            self._queued.add(path)
        return self._reading(tables, path)

    def _reading(self, tables: Iterator[pa.Table], path: Path | None) -> Iterator[pa.Table]:
        yield from tables
        if path is not None:
            self._queued.discard(path)
            self._unsettled.append(path)

    def _deliver_due(self) -> None:
        """Deliver what is due among the rows of several results."""
        if self._interleaving is None:
            return
        for query, table in self._interleaving.due():
            self._turns.add(query, table)
            if self._turns.is_full:
                self._write_turns()
        self._write_turns()
        self._let_go_on(self._interleaving)

    def _let_go_on(self, interleaving: Interleaving) -> None:
        """Let the origins of rows that still wait go on, as far as these wait for them.

        Streams are read no further before their rows went out, except where these wait for another
        stream. Outputs of the job stay on disk while streams catch up with them; otherwise a part of
        a round is left of them, and the job must not wait for the room that they take.
        """
        waits_for = interleaving.waits_for
        if waits_for not in self._streamed:
            for query in filter(interleaving.orders, set(self.rows) - self._streamed):
                interleaving.read(query)
        if self._reply is None:
            return
        queries, reply = self._reply
        if waits_for in self._streamed:
            for query in queries:
                interleaving.read(query)
        if waits_for in self._streamed or all(map(interleaving.is_delivered, queries)):
            self._reply = None
            reply()

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
        done: Callable[[dict[str, int]], object],
        *,
        is_last: bool = False,
    ) -> None:
        """Deliver rows of streams as LFTAs wrote them.

        Args:
            rows: with the query that they answer.
            streams: how far that delivers the streams.
            done: called when the rows are delivered, which may be after this returns, with the
                cursor up to which each stream may be acknowledged.
            is_last: no more rows of streams will come.
        """

        def reply() -> None:
            self._streams |= streams
            self._settle(is_last=is_last)
            settled = (
                self._delivered.position.streams if self._delivered is not None else self._streams
            )
            done({stream: position.cursor for stream, position in settled.items()})

        waiting = set()
        for query, tables in rows:
            if self._interleaving is not None and self._interleaving.orders(query):
                self._interleaving.add(query, tables)
                waiting.add(query)
                continue
            for table in tables:
                self._write(query, table)
        if self._interleaving is None:
            reply()
            return
        for stream, position in streams.items():
            query = self._answered[stream]
            if self._interleaving.orders(query):
                bound = position.bound if position.bound is not None else -math.inf
                self._interleaving.raise_bound(query, math.inf if position.has_ended else bound)
        self._reply = waiting, reply
        self._deliver_due()
        self._settle()

    def on_tick(self) -> None:
        """Time has passed: the sink may want to let rows be seen that it has held back."""
        if self._delivered is not None:
            self._settle()

    def finish(self) -> None:
        """Nothing more will come: hold nothing back."""
        for query in self.rows:
            tables = self._held[query].rest() if query in self._held else iter(())
            if self._interleaving is not None and self._interleaving.orders(query):
                self._interleaving.add(query, tables)
                self._interleaving.raise_bound(query, math.inf)
                continue
            for table in tables:
                self._write(query, table)
        self._deliver_due()
        self._settle(is_last=True)

    def _write(self, query: str, table: pa.Table) -> None:
        schema = self._schemas[query]
        for piece in bounded_pieces(table.select(schema.names), schema):
            self.rows[query] += piece.num_rows
            self._sink.write(query, readable(piece, schema))

    def _write_turns(self) -> None:
        for query, table in self._turns.take():
            self.rows[query] += table.num_rows
            self._sink.write(query, table)

    def _settle(self, *, is_last: bool = False) -> None:
        sink = self._sink.settle(is_last=is_last)
        if self._delivered is not None:
            if sink is None:
                return
            position = DeliveryPosition(self._step, dict(self.rows), dict(self._streams), sink)
            if position != self._delivered.position:
                self._delivered.record(position)
            self._sink.publish()
        self._forget(self._unsettled)
        self._unsettled = []

    def _forget(self, paths: Iterable[Path]) -> None:
        for path in paths:
            remove_output(path)


def _interleaving(program: Program) -> Interleaving:
    """The order of the rows of all results of ``program``, those of streams first."""
    # Imported only where it is needed: a start loads no more than it uses.
    from gscope.cli.delivery.interleaving import Interleaving
    from gscope.cli.delivery.order_column import OrderColumn
    from gscope.cli.delivery.rounds import Rounds
    from gscope.cli.delivery.stream_reader import order_column

    columns: dict[str, OrderColumn | None] = {}
    rounds = Rounds(program)
    for query, source in sorted(
        program.results, key=lambda result: not isinstance(result[1], StreamInput)
    ):
        schema = program.schema(query)
        if isinstance(source, StreamInput):
            promised = order_column(schema)
        else:
            promised = promised_name(schema.temporal[0]) if schema.temporal else None
        if promised is not None and rounds.is_timed(query, promised):
            columns[query] = OrderColumn(promised)
        elif answers_at_the_end(program, query):
            columns[query] = None
    return Interleaving(columns, rounds)
