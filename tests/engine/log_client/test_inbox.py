"""The inbox outlives the daemons that serve the log, and hands out every message once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.server import LogServer
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.engine.log_client import inbox as inbox_module
from gscope.engine.log_client.inbox import Inbox
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.run_folder.lease_file import read_leases
from gscope.queries.streams.leases import LeaseReply
from gscope.queries.streams.messages import EndOfStream, Extent, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SPEC = StreamSpec("a", (("x", Direction.INCREASING),), epoch="x")


@contextmanager
def daemon(folder: Path, demands: Demands | None = None) -> Iterator[StreamLog]:
    """A log of the stream ``a``, served."""
    log = StreamLog(folder / "log", [SPEC], consumers=[Consumer("job")], budget=ShedOldest(1 << 20))
    server = LogServer(log, folder / "socket", demands or Demands(("a",)))
    try:
        yield log
    finally:
        log.close()
        server.stop()


def beat(log: StreamLog, *numbers: int) -> None:
    for number in numbers:
        log.write_heartbeat(number, number, [StreamHeartbeat("a", ())])


def take(inbox: Inbox, count: int) -> list[int]:
    """Return the sequence numbers of the next ``count`` messages."""
    found: list[int] = []
    while len(found) < count:
        found += [message.sequence for message in inbox.take()]
    return found


def test_messages_go_on_behind_the_last_one_when_the_daemon_comes_back(tmp_path: Path) -> None:
    is_listening = threading.Event()
    with Inbox(tmp_path / "socket", {"a": 0}, is_listening) as inbox:
        with daemon(tmp_path) as log:
            is_listening.set()
            beat(log, 1, 2, 3)
            assert take(inbox, 3) == [0, 1, 2]
            inbox.acknowledge("job", {"a": 1})
        inbox.acknowledge("job", {"a": 2})
        with daemon(tmp_path) as log:
            beat(log, 4)
            is_listening.set()
            assert take(inbox, 1) == [3]
            log.end(["a"])
            assert isinstance(inbox.take()[-1], EndOfStream)
            inbox.acknowledge_last("job", {"a": 5})
            assert log.wait_acknowledged(10)


def test_it_waits_for_the_notice_that_a_daemon_listens(tmp_path: Path) -> None:
    is_listening = threading.Event()
    inbox = Inbox(tmp_path / "socket", {"a": 0}, is_listening)
    taken: list[int] = []
    reader = threading.Thread(target=lambda: taken.extend(take(inbox, 1)))
    reader.start()
    with daemon(tmp_path) as log:
        beat(log, 1)
        reader.join(0.2)
        assert not taken
        is_listening.set()
        reader.join(10)
        assert taken == [0]
        inbox.close()


def test_a_daemon_that_comes_back_is_asked_for_the_heartbeats_that_are_still_wanted(
    tmp_path: Path,
) -> None:
    is_listening = threading.Event()
    with Inbox(tmp_path / "socket", {"a": 0}, is_listening) as inbox:
        with daemon(tmp_path) as log:
            is_listening.set()
            beat(log, 1)
            assert take(inbox, 1) == [0]
        demands = Demands(("a",))
        inbox.punctuate({"a": {"tb": 7}})
        with daemon(tmp_path, demands) as log:
            beat(log, 2)
            is_listening.set()
            assert take(inbox, 1) == [1]
            assert demands.take(["a"]) == {"a": {"tb": 7}}


def log_rows(log: StreamLog, *numbers: int) -> None:
    for number in numbers:
        log.append("a", pa.record_batch({"x": [number]}), (Extent("x", number, number),))
        log.write_heartbeat(number, number, [StreamHeartbeat("a", (Punctuation("x", number + 1),))])


def spared(log: StreamLog) -> set[int]:
    """Return the batches that are not shed, however many arrive."""
    return {0, 2, 4} - {batch.sequence for batch in log.sheddable()}


def test_a_daemon_that_takes_over_in_the_middle_of_a_step_receives_its_lease(
    tmp_path: Path,
) -> None:
    is_listening = threading.Event()
    with Inbox(tmp_path / "socket", {"a": 0}, is_listening) as inbox:
        with daemon(tmp_path) as log:
            is_listening.set()
            inbox.renew()  # nothing is leased yet
            log_rows(log, 1, 2, 3)
            take(inbox, 6)
            inbox.lease("job", {"a": [0, 4]})
            assert spared(log) == {0, 4}
        assert read_leases(tmp_path, "job") == {"a": (0, 4)}
        with daemon(tmp_path) as log:
            assert spared(log) == set()
            inbox.renew()
            assert spared(log) == {0, 4}


def test_what_is_leased_while_there_is_no_daemon_is_left_for_the_next(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "socket", {"a": 0}, threading.Event())
    assert inbox.lease("job", {"a": [2]}) == LeaseReply()
    assert read_leases(tmp_path, "job") == {"a": (2,)}
    inbox.renew()  # without a daemon, this is not an error


def test_a_refusal_is_an_error(tmp_path: Path) -> None:
    is_listening = threading.Event()
    is_listening.set()
    with (
        daemon(tmp_path),
        Inbox(tmp_path / "socket", {"x": 0}, is_listening) as inbox,
        pytest.raises(StreamError, match="unknown stream"),
    ):
        inbox.take()


def test_what_is_not_taken_waits_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "MAX_CHUNKS", 2)
    log = StreamLog(tmp_path / "log", [StreamSpec("a", ())])
    server = LogServer(log, tmp_path / "capture.sock")
    is_listening = threading.Event()
    is_listening.set()
    with Inbox(tmp_path / "capture.sock", {"a": 0}, is_listening) as inbox:
        log.write_heartbeat(0, 0, [StreamHeartbeat("a", ())])
        seen = inbox.take()
        for number in range(1, 200):
            log.write_heartbeat(number, 0, [StreamHeartbeat("a", ())])
        while len(seen) < 200:
            seen += inbox.take()
        assert [message.sequence for message in seen] == list(range(200))
    log.close()
    server.stop()
