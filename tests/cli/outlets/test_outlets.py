"""Rows on their way to servers that go away and come back, and runs that are killed meanwhile."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.cli.outlets.servers import HookServer
from tests.support.gscope_command import wait_for

from gscope.cli.config.destinations import parse_destination
from gscope.cli.outlets.outlet import Batch, OutletError, RowsRefused
from gscope.cli.outlets.outlets import OpenedOutlet, OutletSink, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = pa.schema([("n", pa.int64())])


class NullSink:
    """Discards rows. Its state is a number, so that a test sees it on record."""

    holds = False

    def begin(self, query: str, schema: pa.Schema) -> None: ...

    def write(self, query: str, table: pa.Table) -> None: ...

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        return None if self.holds and not is_last else {"own": 7}

    def publish(self) -> None: ...

    def close(self, *, is_complete: bool) -> None: ...


class Run:
    """A run with a checkpoint, which can be killed and resumed.

    Args:
        folder: its folder.
        urls: the destinations.
    """

    def __init__(self, folder: Path, *urls: str, **how: Any) -> None:
        self.folder, self.urls = folder, urls
        self.how: dict[str, Any] = {"budget": 1 << 20, "is_live": True, "patience_s": 30.0} | how
        self.recorded: dict[str, Any] = {}
        self.notices: list[str] = []
        self.number = 0
        self.own = NullSink()
        self.sink = self._opened()

    def _opened(self) -> OutletSink:
        destinations = map(parse_destination, self.urls)
        outlets = [OpenedOutlet(to.name, to.url, opened(to)) for to in destinations]
        sink = OutletSink(
            self.own,
            outlets,
            self.recorded,
            self.folder,
            "web",
            report=self.notices.append,
            **self.how,
        )
        sink.begin("q", SCHEMA)
        for sender in sink._senders:
            sender.first_pause_s = 0.01
        return sink

    def write(self, rows: int, *, is_recorded: bool = True) -> None:
        numbers = range(self.number, self.number + rows)
        self.sink.write("q", pa.table({"n": pa.array(numbers, pa.int64())}))
        self.number += rows
        if is_recorded:
            self.record()

    def record(self) -> None:
        state = self.sink.settle(is_last=False)
        if state is not None:
            self.recorded = json.loads(json.dumps(state))
            self.sink.publish()

    def await_record(self, rows: int) -> None:
        """Wait until it is on record that rows below that number are settled."""
        (path,) = (self.folder / "outlets").glob("[0-9a-f]*.json")
        wait_for(lambda: json.loads(path.read_bytes())["acknowledged"] == rows, f"{rows} on record")

    def kill(self) -> None:
        """End the threads as a kill does, and forget what is not on record."""
        for sender in self.sink._senders:
            sender.stop()
        self.sink._spool.close()
        self.number = self.recorded.get("outlets", {}).get("spool", {}).get("end", 0)

    def resume(self) -> None:
        self.sink = self._opened()

    def close(self) -> dict[str, Any]:
        self.sink.settle(is_last=True)
        self.sink.publish()
        self.sink.close(is_complete=True)
        return self.sink.accounts()[0]


@pytest.fixture
def server() -> Iterator[HookServer]:
    made = HookServer()
    yield made
    made.kill()


def url(server: HookServer) -> str:
    return f"http://127.0.0.1:{server.port}/hook"


def expected(rows: int) -> list[tuple[str, int, Any]]:
    return [("q", number + 1, {"n": number}) for number in range(rows)]


def account(
    sent: int, waiting: int = 0, dropped: int = 0, refused: int = 0, outages: int = 0
) -> dict[str, int]:
    return {
        "sent_rows_total": sent,
        "waiting_rows": waiting,
        "dropped_rows_total": dropped,
        "refused_rows_total": refused,
        "outages_total": outages,
    }


def counted(found: dict[str, Any]) -> dict[str, int]:
    return {name: found[name] for name in account(0)}


def test_rows_go_to_the_sink_and_the_server(tmp_path: Path, server: HookServer) -> None:
    run = Run(tmp_path, url(server))
    run.write(3)
    run.write(1200)
    assert counted(run.close()) == account(1203)
    assert server.rows == expected(1203)
    assert run.recorded["own"] == 7
    assert {body["run"] for body in server.bodies.values()} == {"web"}
    assert server.headers["Content-Type"] == "application/json"
    assert run.notices == []


def test_a_server_that_is_killed_and_back_has_every_row(tmp_path: Path, server: HookServer) -> None:
    run = Run(tmp_path, url(server))
    run.write(40)
    run.await_record(40)
    server.kill()
    for _ in range(5):
        run.write(30)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    assert run.sink.accounts()[0]["waiting_rows"] == 150
    server.start()
    assert counted(run.close()) == account(190, outages=1)
    assert server.rows == expected(190)
    assert next(notice.partition(": ")[2] for notice in run.notices) == (
        "connection refused; rows wait until it accepts them"
    )
    assert "accepts rows again" in run.notices[-1]


def test_a_request_without_an_answer_is_repeated_with_its_key(
    tmp_path: Path, server: HookServer
) -> None:
    server.swallows = 1
    run = Run(tmp_path, url(server))
    run.write(7)
    assert counted(run.close()) == account(7, outages=1)
    assert len(server.keys) == 2
    assert len(set(server.keys)) == 1
    assert server.rows == expected(7)


def test_a_connection_that_was_closed_while_idle_is_no_outage(
    tmp_path: Path, server: HookServer
) -> None:
    run = Run(tmp_path, url(server))
    run.write(1)
    run.await_record(1)
    server.kill()
    server.start()
    run.write(1)
    assert counted(run.close()) == account(2)


def test_a_full_spool_drops_the_oldest_rows_and_counts_them(
    tmp_path: Path, server: HookServer
) -> None:
    server.kill()
    run = Run(tmp_path, url(server), budget=1 << 14)
    run.write(1)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    for _ in range(100):
        run.write(50)
    server.start()
    found = run.close()
    assert found["dropped_rows_total"] > 0
    assert found["sent_rows_total"] + found["dropped_rows_total"] == 5001
    # The first row was being sent all the time.
    assert server.rows == [expected(1)[0], *expected(5001)[-(found["sent_rows_total"] - 1) :]]


def test_a_replay_waits_for_space_instead_of_dropping(tmp_path: Path, server: HookServer) -> None:
    server.kill()
    run = Run(tmp_path, url(server), budget=1 << 14, is_live=False)

    def start() -> None:
        wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
        server.start()

    starter = threading.Thread(target=start)
    starter.start()
    for _ in range(40):
        run.write(50)
    starter.join()
    assert counted(run.close()) == account(2000, outages=1)
    assert server.rows == expected(2000)


def test_the_end_waits_no_longer_than_its_patience(tmp_path: Path, server: HookServer) -> None:
    server.kill()
    run = Run(tmp_path, url(server), patience_s=0.2)
    run.write(9)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    found = run.close()
    assert counted(found) == account(0, waiting=9, outages=1)
    assert found["failure"] == "connection refused"


@pytest.mark.parametrize("status", [400, 422])
def test_what_the_server_refuses_is_counted_and_not_repeated(
    tmp_path: Path, server: HookServer, status: int
) -> None:
    server.answers = [status]
    run = Run(tmp_path, url(server))
    run.write(4)
    wait_for(lambda: run.sink.accounts()[0]["refused_rows_total"] == 4, "the refusal")
    run.write(2)
    assert counted(run.close()) == account(2, refused=4)
    assert [row["n"] for _, _, row in server.rows] == [4, 5]


@pytest.mark.parametrize("status", [302, 401, 429, 503])
def test_other_answers_are_outages(tmp_path: Path, server: HookServer, status: int) -> None:
    server.answers = [status, status]
    run = Run(tmp_path, url(server))
    run.write(4)
    assert counted(run.close()) == account(4, outages=1)
    assert server.rows == expected(4)


def test_a_slow_outlet_does_not_delay_another(tmp_path: Path, server: HookServer) -> None:
    other = HookServer()
    other.kill()
    run = Run(tmp_path, f"http://127.0.0.1:{other.port}/", url(server), patience_s=0.2)
    run.write(50)
    wait_for(lambda: len(server.rows) == 50, "the rows at the server that is up")
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure of the other")
    assert counted(run.close()) == account(0, waiting=50, outages=1)
    assert counted(run.sink.accounts()[1]) == account(50)


def test_rows_that_the_sink_holds_back_are_not_sent(tmp_path: Path, server: HookServer) -> None:
    run = Run(tmp_path, url(server))
    run.own.holds = True
    run.write(5)
    assert run.sink._spool.published == 0
    run.own.holds = False
    run.record()
    assert counted(run.close()) == account(5)


def test_a_killed_run_sends_each_row_once(tmp_path: Path, server: HookServer) -> None:
    """Killed between writing and recording.

    The rows are written again, and get the same numbers.
    """
    run = Run(tmp_path, url(server))
    run.write(10)
    run.await_record(10)
    run.write(5, is_recorded=False)
    run.kill()
    assert run.number == 10
    run.resume()
    run.write(5)
    run.write(5)
    assert counted(run.close()) == account(20)
    assert server.rows == expected(20)
    assert len(server.keys) == len(set(server.keys))


def test_killed_before_the_answer_the_same_batch_is_sent_again(
    tmp_path: Path, server: HookServer
) -> None:
    """The resumed run has more rows to send.

    The batch nevertheless ends where it did, and so has its key.
    """
    server.answers = [503] * 1000
    run = Run(tmp_path, url(server))
    run.write(6)
    wait_for(lambda: server.keys, "the first request")
    run.kill()
    run.write(6)
    first = server.keys[0]
    run.kill()
    server.answers = []
    run.resume()
    assert counted(run.close())["sent_rows_total"] == 12
    assert first in server.bodies
    assert len(server.bodies[first]["rows"]) == 6
    assert server.rows == expected(12)


def test_a_new_run_in_the_same_folder_has_keys_of_its_own(
    tmp_path: Path, server: HookServer
) -> None:
    for _ in range(2):
        run = Run(tmp_path, url(server))
        run.write(3)
        run.close()
    assert len(server.bodies) == 2


def test_a_destination_that_is_added_gets_rows_from_then_on(
    tmp_path: Path, server: HookServer
) -> None:
    run = Run(tmp_path, "http://127.0.0.1:9/")
    run.write(3)
    run.kill()
    run.urls = (url(server),)
    run.resume()
    run.write(2)
    assert counted(run.close()) == account(2)
    assert [number for _, number, _ in server.rows] == [4, 5]


class Scripted:
    """An outlet that fails as its script says."""

    MOST_ROWS = 10
    MOST_BYTES = 1 << 20

    def __init__(self, *script: Exception | None) -> None:
        self.script = list(script)
        self.batches: list[Batch] = []

    def send(self, batch: Batch) -> None:
        self.batches.append(batch)
        if self.script and (error := self.script.pop(0)) is not None:
            raise error

    def close(self) -> None: ...


def test_a_part_of_a_batch_may_be_refused(tmp_path: Path) -> None:
    outlet = Scripted(OutletError("down"), RowsRefused("too long", 3))
    sink = OutletSink(
        NullSink(),
        [OpenedOutlet("it", "it", outlet)],
        {},
        tmp_path,
        "web",
        budget=1 << 20,
        is_live=False,
        report=lambda _: None,
    )
    sink.write("q", pa.table({"n": pa.array(range(10), pa.int64())}))
    sink.settle(is_last=True)
    sink.close(is_complete=True)
    assert counted(sink.accounts()[0]) == account(7, refused=3, outages=1)
    assert outlet.batches[0] == outlet.batches[1]


def test_equal_names_are_told_apart(tmp_path: Path, server: HookServer) -> None:
    run = Run(tmp_path, url(server), f"{url(server)}2")
    names = [each["name"] for each in run.sink.accounts()]
    run.close()
    assert names == [f"http://127.0.0.1:{server.port}/…", f"http://127.0.0.1:{server.port}/… (2)"]
