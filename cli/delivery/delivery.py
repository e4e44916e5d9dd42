"""Delivery of committed outputs to the sink: each step once, in order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.checkpoint import DeliveryPosition
from gscope.cli.delivery.held_rows import HeldRows
from gscope.cli.delivery.rows_until_end import RowsUntilEnd
from gscope.cli.delivery.turns import Turns
from gscope.engine.sinks.columns import readable, readable_schema
from gscope.engine.sinks.pieces import bounded_pieces
from gscope.engine.storage.outputs import read_output, remove_output
from gscope.engine.storage.read_ahead import ReadAhead
from gscope.errors import EngineError
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.whole_input import answers_at_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.delivery.answer_bounds import AnswerBounds
    from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, StreamPosition
    from gscope.cli.delivery.interleaving import Interleaving
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.process_events import CommittedOutput


class Sink(Protocol):
    """Where answers go. Rows arrive as readable tables (see ``engine/sinks/columns.py``)."""

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Prepare for rows of ``query`` with that readable schema; none may follow."""

    def write(self, query: str, table: pa.Table) -> None:
        """Take rows of ``query``; the sink may hold them until ``settle``.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            OSError: the rows cannot be written.
        """

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        """Make all rows written so far survive the end of this process.

        Args:
            is_last: whether nothing may be deferred.

        Returns:
            The state that the sink needs to resume the run; None to go on holding rows.
        """

    def publish(self) -> None:
        """Show rows to readers: the state that ``settle`` returned is recorded."""

    def close(self, *, is_complete: bool) -> None:
        """End the answer; remove partial results unless it is complete."""


class Watch(Protocol):
    """What sees the rows of answers on their way to the sink."""

    def take(self, query: str, table: pa.Table) -> None:
        """Note rows of ``query``, not yet readable."""

    def settle(self) -> None:
        """Note that no row taken so far will be delivered a second time."""


class Delivery:
    """Delivers the outputs of committed steps, and rows of streams, to a sink.

    Args:
        program: the program whose results are delivered.
        outputs: the folder in which the HFTA job publishes outputs.
        sink: where rows go.
        delivered: the checkpoint to continue from and to keep; None for a run that cannot be
            resumed.
        is_interleaved: whether the order of rows of different results must not depend on timing;
            only for a run that cannot be resumed.
        watch: sees the rows; None if nothing does.
        on_bound: called with an answer and the bound of its first temporal column, below which all
            its rows are in the sink, before the sink settles. If rows of different results are
            interleaved, only at the end, so that the order of its effects does not depend on
            timing. None if nothing needs bounds.

    Attributes:
        rows: the number of rows delivered, by query.
    """

    def __init__(
        self,
        program: Program,
        outputs: Path,
        sink: Sink,
        delivered: DeliveryCheckpoint | None = None,
        *,
        is_interleaved: bool = False,
        watch: Watch | None = None,
        on_bound: Callable[[str, int], None] | None = None,
    ) -> None:
        self._watch = watch
        self._on_bound = on_bound
        self._outputs = outputs
        self._sink = sink
        self._delivered = delivered
        position = delivered.position if delivered is not None else DeliveryPosition()
        self._step = position.step
        self._streams = dict(position.streams)
        self._unsettled: list[Path] = []
        self._schemas = {query: visible(program.schema(query)) for query, _ in program.results}
        self._orders = {query: AnswerOrder.of(program, query) for query, _ in program.results}
        # A live run does not wait for rows of the same time: it cannot be repeated anyway.
        self._held = {
            query: HeldRows(order.temporal, order.keys)
            for query, order in self._orders.items()
            if order.temporal and delivered is None
        }
        self._until_end = {
            query: RowsUntilEnd(order.keys, order.limit)
            for query, order in self._orders.items()
            if order.is_at_end
        }
        self._queued: set[Path] = set()
        self._interleaving = _interleaving(program) if is_interleaved else None
        self._turns = Turns(self._schemas)
        self._has_written = False
        self._answered = {
            stream: query
            for query, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }
        self._streamed = set(self._answered.values())
        self._reply: tuple[set[str], Callable[[], None]] | None = None
        self._bounds = None if on_bound is None else _answer_bounds(program, self._streams)
        self._clocks: Mapping[str, Mapping[str, float]] = {}
        self.rows = {query: position.rows.get(query, 0) for query, _ in program.results}
        # The rows that answers with a LIMIT still lack.
        self._lacking = {
            query: max(0, order.limit - self.rows[query])
            for query, order in self._orders.items()
            if order.limit is not None and not order.is_at_end
        }

    @property
    def is_complete(self) -> bool:
        """Return whether no answer lacks rows, whatever follows.

        It is so if all have a LIMIT, and reached it.
        """
        is_limited = bool(self.rows) and len(self._lacking) == len(self.rows)
        return is_limited and not any(self._lacking.values())

    def begin(self) -> None:
        """Begin every result: all inputs have been opened."""
        for query in self.rows:
            self._sink.begin(query, readable_schema(self._schemas[query]))
        self._settle()

    def on_commit(
        self,
        step: int,
        outputs: Sequence[CommittedOutput],
        bounds: Mapping[str, Mapping[str, float]] | None = None,
        lost: object = None,  # noqa: ARG002  # for other hosts
    ) -> None:
        """Deliver a step, unless its number shows that a restarted job reports it again.

        Args:
            step: its number.
            outputs: what it answered.
            bounds: for each query and temporal column, the bound below which no later step has
                rows; rows without a known bound are held until it is known.
            lost: for other hosts.

        Raises:
            EngineError: rows of an output are missing.
        """
        paths = [self._outputs / output.path for output in outputs]
        if step <= self._step:
            known = self._queued.union(self._unsettled)
            self._forget(path for path in paths if path not in known)
            return
        self._step = step
        self._take({output.query: output for output in outputs}, bounds or {})
        self._unsettled += [path for path in paths if path not in self._queued]
        self._deliver_due()
        self._settle()

    def on_bounds(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Deliver held rows that no later step can precede, although no step was committed.

        Args:
            bounds: see ``on_commit``.
        """
        self._take({}, bounds)
        self._deliver_due()
        self._settle()

    def _take(
        self,
        came: Mapping[str, CommittedOutput],
        bounds: Mapping[str, Mapping[str, float]],
    ) -> None:
        """Deliver outputs, by query, or queue them until those of other queries arrive."""
        if self._bounds is not None:
            self._bounds.on_job(bounds)
        queries = [each for each in self.rows if each not in self._streamed]
        early = {query: self._size(came[query]) for query in queries if self._is_early(query, came)}
        with ReadAhead(early, lambda query: self._read(came[query])) as ahead:
            self._take_each(queries, came, bounds, ahead)

    def _is_early(self, query: str, came: Mapping[str, CommittedOutput]) -> bool:
        """Return whether all rows of an output are delivered when its turn comes."""
        waits = self._interleaving is not None and self._interleaving.orders(query)
        return query in came and not waits and query not in self._lacking

    def _size(self, output: CommittedOutput) -> int:
        """Return the bytes of an output; 0 if files are missing, which reading reports."""
        path = self._outputs / output.path
        files = [path / name for name in output.files] or [path]
        return sum(file.stat().st_size for file in files if file.exists())

    def _take_each(
        self,
        queries: Iterable[str],
        came: Mapping[str, CommittedOutput],
        bounds: Mapping[str, Mapping[str, float]],
        ahead: ReadAhead[str],
    ) -> None:
        for query in queries:
            tables = ahead.tables(query) if query in came else iter(())
            held = self._held.get(query)
            bound = -math.inf
            if held is not None:
                first = self._orders[query].temporal[0]
                bound = bounds.get(query, {}).get(first, -math.inf)
                tables = held.take(tables, bound)
            tables = self._wanted(query, tables)
            if self._interleaving is not None and self._interleaving.orders(query):
                path = self._outputs / came[query].path if query in came else None
                self._interleaving.add(query, self._until_read(tables, path))
                if held is not None:
                    self._interleaving.raise_bound(query, bound)
                continue
            for table in tables:
                self._write(query, table)

    def _wanted(self, query: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield rows of ``query`` that may be delivered now, no more than LIMIT allows."""
        for table in self._within_limit(query, tables):
            if self._watch is not None:
                self._watch.take(query, table)
            yield table

    def _within_limit(self, query: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        if query in self._until_end:
            for table in tables:
                self._until_end[query].add(table)
            return
        if query not in self._lacking:
            yield from tables
            return
        rest = iter(tables)
        while self._lacking[query] and (table := next(rest, None)) is not None:
            first = table.slice(0, self._lacking[query])
            self._lacking[query] -= first.num_rows
            yield first

    def _until_read(self, tables: Iterator[pa.Table], path: Path | None) -> Iterator[pa.Table]:
        """Yield the ``tables`` of an output; remove the output when all of them were read."""
        if path is not None:
            self._queued.add(path)
        return self._reading(tables, path)

    def _reading(self, tables: Iterator[pa.Table], path: Path | None) -> Iterator[pa.Table]:
        yield from tables
        if path is not None:
            self._queued.discard(path)
            self._unsettled.append(path)

    def _deliver_due(self) -> None:
        """Deliver rows of several results as far as they are due.

        The very first of them are delivered at once.
        """
        if self._interleaving is None:
            return
        for query, table in self._interleaving.due():
            self._turns.add(query, table)
            if self._turns.is_full or not self._has_written:
                self._write_turns()
        self._write_turns()
        self._let_go_on(self._interleaving)

    def _let_go_on(self, interleaving: Interleaving) -> None:
        """Read queued rows so that their origins can continue, as far as these rows wait for them.

        A stream is read no further until its rows have been delivered, except where they wait for
        another stream. Outputs of the job stay on disk while streams catch up with them; otherwise
        a part of a round is left of them, and the job must not wait for the disk space they occupy.
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

    def _read(self, output: CommittedOutput) -> Iterator[pa.Table]:
        """Yield the rows of an output, in order."""
        path, found = self._outputs / output.path, 0
        order = self._orders[output.query]
        schema = self._schemas[output.query]
        addresses = {column.name for column in schema.columns if column.type is GsqlType.IP}
        for table in read_output(
            path, order.temporal, output.files, keys=order.keys, addresses=addresses
        ):
            found += table.num_rows
            yield table
        if found != output.rows:
            message = f"expected {output.rows} rows in the answer {path}, got {found}"
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
            rows: pairs of the query they answer and the rows.
            streams: the position of each stream once these rows are delivered.
            done: called when the rows are delivered, possibly after this returns, with the
                cursor up to which each stream may be acknowledged.
            is_last: whether no more rows of streams will come.
        """

        def reply() -> None:
            self._streams |= streams
            if self._bounds is not None:
                self._bounds.on_streams(streams)
            self._settle(is_last=is_last)
            settled = (
                self._delivered.position.streams if self._delivered is not None else self._streams
            )
            done({stream: position.cursor for stream, position in settled.items()})

        waiting = set()
        for query, all_tables in rows:
            tables = self._wanted(query, all_tables)
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

    def on_answered(self, clocks: Mapping[str, Mapping[str, float]]) -> None:
        """Note that the job has answered everything; ``finish`` delivers what is held.

        Args:
            clocks: for each query and temporal column, what the packets had reached at the end.
        """
        self._clocks = clocks

    def on_tick(self) -> None:
        """Let the sink show rows that it has held back for some time."""
        if self._delivered is not None:
            self._settle()

    def finish(self, *, has_ended: bool = True) -> None:
        """Deliver everything that is held; no more rows will come.

        Args:
            has_ended: whether the input has ended; if not, because the run failed, answers that are
                in order only at its end are not delivered.
        """
        for query in self.rows:
            tables: Iterable[pa.Table] = ()
            if query in self._held:
                tables = self._wanted(query, self._held[query].rest())
            elif query in self._until_end and has_ended:
                tables = self._until_end[query].rest()
            if self._interleaving is not None and self._interleaving.orders(query):
                self._interleaving.add(query, tables)
                self._interleaving.raise_bound(query, math.inf)
                continue
            for table in tables:
                self._write(query, table)
        self._deliver_due()
        if self._bounds is not None and has_ended:
            self._bounds.on_job(self._clocks)
        self._settle(is_last=True)

    def _write(self, query: str, table: pa.Table) -> None:
        schema = self._schemas[query]
        for piece in bounded_pieces(table.select(schema.names), schema):
            self.rows[query] += piece.num_rows
            self._sink.write(query, readable(piece, schema))

    def _write_turns(self) -> None:
        for query, table in self._turns.take():
            self._has_written = True
            self.rows[query] += table.num_rows
            self._sink.write(query, table)

    def _pass_bounds(self) -> None:
        """Pass bounds on; an answer that has reached its LIMIT lacks rows that exist."""
        if self._bounds is None or self._on_bound is None:
            return
        for query, bound in self._bounds.risen():
            if self._lacking.get(query, 1):
                self._on_bound(query, bound)

    def _settle(self, *, is_last: bool = False) -> None:
        if self._interleaving is None or is_last:
            self._pass_bounds()
        sink = self._sink.settle(is_last=is_last)
        if self._delivered is not None:
            if sink is None:
                return
            position = DeliveryPosition(self._step, dict(self.rows), dict(self._streams), sink)
            if position != self._delivered.position:
                self._delivered.record(position)
            self._sink.publish()
        if self._watch is not None:
            self._watch.settle()
        self._forget(self._unsettled)
        self._unsettled = []

    def _forget(self, paths: Iterable[Path]) -> None:
        for path in paths:
            remove_output(path)


def _answer_bounds(program: Program, positions: Mapping[str, StreamPosition]) -> AnswerBounds:
    """Return the bounds of the answers of ``program``."""
    from gscope.cli.delivery.answer_bounds import AnswerBounds

    return AnswerBounds(program, positions)


def _interleaving(program: Program) -> Interleaving:
    """Return the order of the rows of all results of ``program``, those of streams first."""
    # Imported only where it is needed, to keep start-up short.
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
        order = AnswerOrder.of(program, query)
        if isinstance(source, StreamInput):
            promised = None if order.is_at_end else order_column(schema)
        else:
            promised = order.temporal[0] if order.temporal else None
        if promised is not None and rounds.is_timed(query, promised):
            columns[query] = OrderColumn(promised)
        elif answers_at_the_end(program, query):
            columns[query] = None
    return Interleaving(columns, rounds)
