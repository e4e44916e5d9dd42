"""Counts of the file server, against what passes a wire and what files hold."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.storage.parquet_files import FileWriter
from gscope.engine.storage.transfer.access import parquet_rows, read_parquet, using
from gscope.engine.storage.transfer.run_files import RunFiles, marked, serve
from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = pa.table({"time": pa.array(range(40_000), pa.int64())})
VALUES_BYTES = 8 * 40_000
PART = "part-00007-0123abcd-12.parquet"


class Wire(threading.Thread):
    """Passes connections on to a port and counts what comes back."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.received = 0

    def run(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                threading.Thread(target=self._pass, args=(near, far, 0), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near, 1), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, counts: int) -> None:
        with suppress(OSError), source, sink:
            while piece := source.recv(1 << 16):
                self.received += counts * len(piece)
                sink.sendall(piece)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[RunFiles]:
    root = tmp_path / "run"
    for folder in ("log/segments", "job/carry/7", "job/outputs/segments/.staged-7.parquet"):
        (root / folder).mkdir(parents=True)
        pq.write_table(ROWS, root / folder / "a.parquet", row_group_size=15_000)
    served = serve(marked(root, root / "job"), root, "127.0.0.1", 0, None)
    yield served
    served.stop()


def counted(files: RunFiles) -> tuple[int, int, int]:
    assert files.server is not None
    found = files.server.bytes_by_kind()
    assert list(found) == ["segments", "carried", "returned"]
    return found["segments"], found["carried"], found["returned"]


def test_bytes_of_segments_are_those_that_pass_the_wire(files: RunFiles) -> None:
    assert files.server is not None
    wire = Wire(files.server.port)
    wire.start()
    access = replace(files.access, identity="x", location=f"grpc://127.0.0.1:{wire.port}")
    path = f"{access.root}/log/segments/a.parquet"
    with using(access):
        assert parquet_rows(path) == 40_000
        assert counted(files) == (0, 0, 0), "no rows were sent"
        before = wire.received
        assert read_parquet(path).equals(ROWS)
    wire.close()
    segments, carried, returned = counted(files)
    assert VALUES_BYTES < segments < 1.01 * VALUES_BYTES
    assert segments <= wire.received - before < 1.02 * segments
    assert (carried, returned) == (0, 0)


@pytest.mark.parametrize("place", ["job/carry/7", "job/outputs/segments/.staged-7.parquet"])
def test_rows_of_steps_are_no_segments(files: RunFiles, place: str) -> None:
    with using(replace(files.access, identity="x")):
        read_parquet(f"{files.access.root}/{place}/a.parquet")
        read_parquet(f"{files.access.root}/{place}/a.parquet")
    segments, carried, returned = counted(files)
    assert 2 * VALUES_BYTES < carried < 2.02 * VALUES_BYTES
    assert (segments, returned) == (0, 0)


def test_returned_bytes_are_those_of_files_also_if_one_is_refused(files: RunFiles) -> None:
    with using(replace(files.access, identity="x")):
        for folder in ("7", "8"):
            writer = FileWriter(files.server._root / "job/carry" / folder, PART)  # type: ignore[union-attr]
            writer.write(ROWS)
            if folder == "7":
                file = writer.close()
            else:
                with pytest.raises(StreamError, match="no such file"):
                    writer.close()
    assert file is not None
    assert counted(files) == (0, 0, file.size_bytes), "a refused file is not received"


def test_a_task_beside_the_files_transfers_nothing(files: RunFiles) -> None:
    with using(files.access):
        read_parquet(f"{files.access.root}/log/segments/a.parquet")
    assert counted(files) == (0, 0, 0)
