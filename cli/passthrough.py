"""Results that need no Spark: the stream of an LFTA is the answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from gscope.cli.capture_plan import CONSUMER
from gscope.cli.processes import Event
from gscope.cli.reorder import Reorder
from gscope.engine.settings import LOG_FOLDER, SOCKET_FILE
from gscope.engine.subscription import LogClient
from gscope.errors import GscopeError
from gscope.queries.catalog.types import Direction
from gscope.queries.plan.program import StreamInput
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.processes import Events
    from gscope.queries.catalog.schema import Schema
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message


class Passthrough:
    """Reads the streams that are answers and hands their rows to the event queue.

    Rows come in the order of their first increasing column. Messages are acknowledged when what they
    let go has been delivered, so that rows are read no faster than the answers are taken.
    """

    def __init__(self, program: Program, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._outlets = {
            stream: _Outlet(query, _order(program.schema(query)))
            for query, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads; () if every result needs Spark."""
        return tuple(self._outlets)

    def start(self, events: Events) -> None:
        """Read in a thread of its own."""
        threading.Thread(target=self._read, args=(events,), name=CONSUMER, daemon=True).start()

    def _read(self, events: Events) -> None:
        cursors = dict.fromkeys(self._outlets, 0)
        try:
            with LogClient(self._run_dir / SOCKET_FILE) as client:
                for messages in client.subscribe(cursors):
                    for message in messages:
                        self._take(message)
                        cursors[message.stream] = message.sequence + 1
                    for outlet in self._outlets.values():
                        _deliver(outlet.query, outlet.let_go(), events)
                    client.acknowledge(CONSUMER, cursors)
        except (GscopeError, OSError) as error:
            events.put(Event("passthrough", "error", {"message": str(error)}))
        else:
            events.put(Event("passthrough", "finished", {}))

    def _take(self, message: Message) -> None:
        outlet = self._outlets[message.stream]
        match message:
            case Batch():
                outlet.add(pq.read_table(self._run_dir / LOG_FOLDER / message.path))
            case Heartbeat():
                outlet.raise_bound({p.column: p.bound for p in message.punctuations})
            case EndOfStream():
                outlet.has_ended = True


class _Outlet:
    """What came of one stream and was not delivered yet."""

    def __init__(self, query: str, column: str | None) -> None:
        self.query = query
        self.has_ended = False
        self._column = column
        self._bound: int | None = None
        self._reorder = Reorder(column)

    def add(self, table: pa.Table) -> None:
        self._reorder.add(table)

    def raise_bound(self, bounds: dict[str, int]) -> None:
        if self._column in bounds:
            self._bound = bounds[self._column]

    def let_go(self) -> pa.Table | None:
        """The rows that may go now; all when the stream has ended or has no order to keep."""
        if self.has_ended or self._column is None:
            return self._reorder.rest()
        return None if self._bound is None else self._reorder.release(self._bound)


def _order(schema: Schema) -> str | None:
    """The column that the answers are ordered by, None for none."""
    increasing = [c.name for c in schema.columns if c.ordering.direction is Direction.INCREASING]
    return increasing[0] if increasing else None


def _deliver(query: str, table: pa.Table | None, events: Events) -> None:
    """Hand rows over and wait until they are delivered."""
    if table is None:
        return
    delivered = threading.Event()
    fields: dict[str, Any] = {"query": query, "table": table, "done": delivered.set}
    events.put(Event("passthrough", "rows", fields))
    delivered.wait()
