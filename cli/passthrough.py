"""Results that need no Spark: the stream of an LFTA is the answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from gscope.cli.capture_plan import CONSUMER
from gscope.cli.processes import Event
from gscope.engine.settings import LOG_FOLDER, SOCKET_FILE
from gscope.engine.subscription import LogClient
from gscope.errors import GscopeError
from gscope.queries.plan.program import StreamInput
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.processes import Events
    from gscope.queries.plan.program import Program


class Passthrough:
    """Reads the streams that are answers and hands their rows to the event queue.

    A batch is acknowledged when it has been delivered, so that the log never grows beyond what a
    slow reader of the answers leaves.
    """

    def __init__(self, program: Program, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._queries = {
            stream: query
            for query, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads; () if every result needs Spark."""
        return tuple(self._queries)

    def start(self, events: Events) -> None:
        """Read in a thread of its own."""
        threading.Thread(target=self._read, args=(events,), name=CONSUMER, daemon=True).start()

    def _read(self, events: Events) -> None:
        cursors = dict.fromkeys(self._queries, 0)
        try:
            with LogClient(self._run_dir / SOCKET_FILE) as client:
                for messages in client.subscribe(cursors):
                    for message in messages:
                        if isinstance(message, Batch):
                            self._deliver(message, events)
                    for message in messages:
                        cursors[message.stream] = message.sequence + 1
                    client.acknowledge(CONSUMER, cursors)
        except (GscopeError, OSError) as error:
            events.put(Event("passthrough", "error", {"message": str(error)}))
        else:
            events.put(Event("passthrough", "finished", {}))

    def _deliver(self, batch: Batch, events: Events) -> None:
        """Hand over one batch and wait until it is delivered: rows are read no faster than written."""
        table = pq.read_table(self._run_dir / LOG_FOLDER / batch.path)
        delivered = threading.Event()
        fields: dict[str, Any] = {
            "query": self._queries[batch.stream],
            "table": table,
            "done": delivered.set,
        }
        events.put(Event("passthrough", "rows", fields))
        delivered.wait()
