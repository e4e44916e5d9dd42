"""Standard output that takes a part of a long write, as a raw file does when a signal comes."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.cli.sinks.replay_files import StreamSink
from gscope.cli.sinks.whole_writes import with_whole_writes

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 60_000


@pytest.fixture
def handled() -> Iterator[signal.Signals]:
    """A signal whose handler does nothing."""
    number = signal.SIGUSR1
    before = signal.signal(number, lambda *_: None)
    yield number
    signal.signal(number, before)


def test_signals_during_a_write_to_a_pipe_lose_no_row(handled: signal.Signals) -> None:
    received = bytearray()
    writing = threading.get_ident()
    reader, writer = os.pipe()

    def read() -> None:
        while data := os.read(reader, 1 << 14):
            received.extend(data)
            # The writer waits for room.
            time.sleep(0.002)
            signal.pthread_kill(writing, handled)

    thread = threading.Thread(target=read)
    thread.start()
    with closing(os.fdopen(writer, "wb", buffering=0)) as file:
        sink = StreamSink(with_whole_writes(file), "csv", ["q"])
        table = pa.table({"number": range(ROWS)})
        sink.begin("q", table.schema)
        sink.write("q", table)
    thread.join()
    os.close(reader)
    assert bytes(received).split() == [b"number", *(str(n).encode() for n in range(ROWS))]
