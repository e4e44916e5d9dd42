"""``gscope serve``: what is delivered, counted, when servers, pullers and runs are killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.gscope_command import command, run, wait_for

from gscope.cli.sinks.growing_files import LiveFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64(), metadata={"gscope.type": "INT"}),
        pa.field("at", pa.timestamp("ns"), metadata={"gscope.type": "TIMESTAMP"}),
        pa.field("data", pa.binary(), metadata={"gscope.type": "STRING"}),
    ]
)


def rows(numbers: Sequence[int]) -> pa.Table:
    data = [None if n % 3 == 0 else b"\x00%d" % n for n in numbers]
    return pa.table([list(numbers), pa.array(numbers, pa.timestamp("ns")), data], SCHEMA)


class Run:
    """What a run does to a folder of answers, and what it has on record."""

    def __init__(
        self, folder: Path, record: dict[str, Any] | None = None, query: str = "q"
    ) -> None:
        self.record = record or {}
        self._query = query
        self._sink = LiveFolder(folder, "parquet", {query: SCHEMA}, self.record)
        self._sink.begin(query, SCHEMA)

    def write(self, numbers: Sequence[int], until: str = "published") -> None:
        """Write a part; a run that is killed gets no further than ``until``."""
        self._sink.write(self._query, rows(numbers))
        if until != "open":
            position = self._sink.settle(is_last=True)
            assert position is not None
            if until != "settled":
                self.record = json.loads(json.dumps(position))
            if until == "published":
                self._sink.publish()

    def kill(self) -> None:
        """As the end of its process would, let its locks go and nothing else."""
        for lock in self._sink._locks.values():
            lock.close()

    def close(self) -> None:
        self._sink.close(is_complete=True)


def write_once(folder: Path, numbers: Sequence[int]) -> None:
    live = Run(folder)
    live.write(numbers)
    live.close()


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return tmp_path / "answers"


class Server:
    """``gscope serve`` as a process, at an address that stays the same when it is restarted."""

    def __init__(self, folder: Path, place: Path, *more: str | Path) -> None:
        self.folder = folder
        self.address = "127.0.0.1:0"
        self._more = ("--token-file", token_file(place), *more)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            command("serve", self.folder, "--listen", self.address, *self._more),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "serving the answers in" in line, line
        self.address = line.split()[-1]

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def end(self) -> str:
        """End it as Ctrl-C does; return what it says."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate()
        assert self.process.returncode == 0, said
        return str(said)


@pytest.fixture
def server(answers: Path, tmp_path: Path) -> Iterator[Server]:
    answers.mkdir()
    started = Server(answers, tmp_path)
    yield started
    started.kill()


@contextmanager
def connected(server: Server, token: str = TOKEN, **tls: Any) -> Iterator[tuple[Any, Any]]:
    scheme = "grpc+tls" if tls else "grpc"
    header = (b"authorization", f"Bearer {token}".encode())
    with flight.connect(f"{scheme}://{server.address}", **tls) as client:
        yield client, flight.FlightCallOptions(headers=[header], timeout=60)


def ticket(query: str = "q", **fields: Any) -> Any:
    return flight.Ticket(json.dumps({"query": query, **fields}))


def pull(
    server: Server, after: str | None = None, query: str = "q"
) -> tuple[list[int], str | None]:
    """All rows behind a position, and the position behind them."""
    found: list[int] = []
    with connected(server) as (client, options):
        request = ticket(query) if after is None else ticket(query, after=after)
        for chunk in client.do_get(request, options):
            found += chunk.data["n"].to_pylist()
            after = chunk.app_metadata.to_pybytes().decode()
    return found, after


def test_a_flight_has_the_rows_and_types_of_an_answer(answers: Path, server: Server) -> None:
    live = Run(answers)
    live.write(range(50))
    live.write(range(50, 70))
    live.write([99], until="settled")
    with connected(server) as (client, options):
        (info,) = client.list_flights(options=options)
        assert info.descriptor.path == [b"q"]
        assert info.total_records == 70
        named = client.get_flight_info(flight.FlightDescriptor.for_path("q"), options)
        assert named.schema.equals(SCHEMA, check_metadata=True)
        requests = client.do_get(named.endpoints[0].ticket, options).read_all()
        assert requests.equals(rows(range(70)))
        sql = "SELECT count(*), sum(n), count(data), min(octet_length(data)) FROM requests"
        assert duckdb.sql(sql).fetchall() == [(70, 69 * 35, 46, 2)]  # type: ignore[union-attr]
        with pytest.raises(flight.FlightServerError, match=r"unknown answer 'x'; available: q"):
            client.do_get(ticket(query="x"), options).read_all()
        wrong: dict[str, Any]
        for wrong in ({"follow": 1}, {"after": 3}, {"limit": 3}):
            with pytest.raises(flight.FlightServerError, match="invalid ticket"):
                client.do_get(ticket("q", **wrong), options).read_all()
        with pytest.raises(flight.FlightServerError, match=r"those of Flight SQL, are not served"):
            client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT 1"), options)
    live.close()
    assert server.end() == "gscope: served 70 rows in 1 requests\n"


def test_only_who_has_the_token_is_served(answers: Path, server: Server) -> None:
    write_once(answers, [1])
    with connected(server, "wrong") as (client, options):
        for ask in (
            lambda: list(client.list_flights(options=options)),
            lambda: client.do_get(ticket(), options).read_all(),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_path("q"), options),
            lambda: client.get_schema(flight.FlightDescriptor.for_path("q"), options),
        ):
            # pyarrow raises an OSError where the columns are asked for.
            with pytest.raises((flight.FlightError, OSError), match="the token is wrong"):
                ask()
    with (
        flight.connect(f"grpc://{server.address}") as client,
        pytest.raises(flight.FlightUnauthenticatedError, match="a token is required"),
    ):
        client.do_get(ticket()).read_all()
    assert pull(server)[0] == [1]


def test_other_hosts_are_served_with_tls_alone(answers: Path, tmp_path: Path) -> None:
    write_once(answers, [1])
    token = token_file(tmp_path)
    for more, reason in (
        (("--listen", "0.0.0.0:0", "--token-file", token), "without TLS, which other hosts can"),
        (("--listen", "127.0.0.1:0"), "without a token"),
        ((), "name the address with --listen HOST:PORT"),
    ):
        done = run("serve", answers, *more)
        assert done.returncode == 2
        assert reason in done.stderr
    made = make_certificate(tmp_path, "localhost")
    server = Server(answers, tmp_path, "--tls-certificate", made.certificate, "--tls-key", made.key)
    try:
        with connected(server, tls_root_certs=made.certificate.read_bytes()) as (client, options):
            assert client.do_get(ticket(), options).read_all()["n"].to_pylist() == [1]
        with connected(server) as (client, options), pytest.raises(flight.FlightUnavailableError):
            client.do_get(ticket(), options).read_all()
    finally:
        server.kill()


def test_a_run_killed_at_any_moment_delivers_each_row_once(answers: Path, server: Server) -> None:
    for moment in ("open", "settled", "recorded", "published"):
        first = Run(answers, query=moment)
        first.write(range(10))
        before, position = pull(server, query=moment)
        assert before == list(range(10))
        first.write(range(10, 20), until=moment)
        first.kill()
        meanwhile, position = pull(server, position, moment)
        assert meanwhile == (list(range(10, 20)) if moment == "published" else [])
        second = Run(answers, first.record, moment)
        if moment in ("open", "settled"):
            second.write(range(10, 20))
        second.write(range(20, 30))
        after, position = pull(server, position, moment)
        assert meanwhile + after == list(range(10, 30))
        assert pull(server, position, moment) == ([], position)
        second.close()
        first.close()


def test_a_server_killed_while_rows_are_pulled_delivers_each_once(
    answers: Path, server: Server
) -> None:
    live = Run(answers)
    numbers = iter(range(10**6))
    found: list[int] = []
    position: str | None = None
    for kills in range(2):
        # More than the buffers between server and client hold.
        for _ in range(4):
            live.write([next(numbers) for _ in range(30_000)])
        with connected(server) as (client, options):
            request = (
                ticket(follow=True) if position is None else ticket(after=position, follow=True)
            )
            with suppress(flight.FlightError):
                for number, chunk in enumerate(client.do_get(request, options)):
                    found += chunk.data["n"].to_pylist()
                    position = chunk.app_metadata.to_pybytes().decode()
                    if number == 2 + kills:
                        server.kill()
        assert server.process.returncode == -signal.SIGKILL
        assert len(found) < 120_000 * (kills + 1)
        server.start()
    found += pull(server, position)[0]
    assert len(found) == 240_000
    assert found == list(range(240_000))
    live.close()


PULLER = """
import json, sqlite3, sys
import pyarrow.flight as flight

store = sqlite3.connect(sys.argv[1])
store.execute("CREATE TABLE IF NOT EXISTS pulled (n INTEGER)")
store.execute("CREATE TABLE IF NOT EXISTS place (position TEXT)")
known = store.execute("SELECT position FROM place").fetchone()
ticket = {"query": "q", "follow": True} | ({"after": known[0]} if known else {})
header = (b"authorization", b"Bearer " + sys.argv[3].encode())
client = flight.connect("grpc://" + sys.argv[2])
options = flight.FlightCallOptions(headers=[header])
for chunk in client.do_get(flight.Ticket(json.dumps(ticket)), options):
    with store:
        store.executemany("INSERT INTO pulled VALUES (?)", [(n,) for n in chunk.data["n"].to_pylist()])
        store.execute("DELETE FROM place")
        store.execute("INSERT INTO place VALUES (?)", (chunk.app_metadata.to_pybytes().decode(),))
"""  # noqa: E501


def test_a_puller_that_is_killed_and_comes_back_has_each_row_once(
    answers: Path, server: Server, tmp_path: Path
) -> None:
    live = Run(answers)
    path = tmp_path / "store.db"
    store = sqlite3.connect(path)

    def count() -> int:
        try:
            return int(store.execute("SELECT count(*) FROM pulled").fetchone()[0])
        except sqlite3.OperationalError:
            return 0

    def write(parts: range) -> int:
        for part in parts:
            live.write(range(part * 2000, part * 2000 + 2000))
        return parts.stop * 2000

    def pulling() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PULLER, path, server.address, TOKEN])

    write(range(1))
    for kills in range(2):
        write(range(1 + 40 * kills, 31 + 40 * kills))
        puller = pulling()
        begun = 2000 * (1 + 40 * kills)
        wait_for(lambda begun=begun: bool(count() > begun), "rows in the store")  # type: ignore[misc]
        os.kill(puller.pid, signal.SIGKILL)
        puller.wait()
        written = write(range(31 + 40 * kills, 41 + 40 * kills))
    puller = pulling()
    wait_for(lambda: count() >= written, "all rows in the store")
    puller.kill()
    puller.wait()
    assert store.execute("SELECT count(*), count(DISTINCT n), max(n) FROM pulled").fetchall() == [
        (written, written, written - 1)
    ]
    store.close()
    live.close()


def test_one_who_does_not_read_holds_up_nobody(answers: Path, server: Server) -> None:
    live = Run(answers)
    live.write(range(400_000))
    with connected(server) as (idle, options):
        waiting = idle.do_get(ticket(), options)
        assert waiting.read_chunk().data.num_rows > 0
        live.write(range(400_000, 400_010))
        assert len(pull(server)[0]) == 400_010
        live.close()


def test_who_follows_gets_rows_as_they_appear_and_a_new_stream_for_new_columns(
    answers: Path, server: Server
) -> None:
    live = Run(answers)
    live.write([1])
    found: list[int] = []
    position: list[str] = []
    with connected(server) as (client, options):
        reader = client.do_get(ticket(follow=True, after="end"), options)

        def follow() -> None:
            for chunk in reader:
                found.extend(chunk.data["n"].to_pylist())
                position.append(chunk.app_metadata.to_pybytes().decode())

        thread = threading.Thread(target=follow)
        thread.start()
        # Rows come in the order in which they are written; the first may be before the beginning.
        sent = 1

        def is_followed() -> bool:
            nonlocal sent
            sent += 1
            live.write([sent])
            return sent in found or bool(found)

        wait_for(is_followed, "a row after the end")
        wait_for(lambda: found[-1] == sent, "all rows")
        live.close()
        assert found == list(range(found[0], sent + 1))
        other = pa.schema([pa.field("m", pa.string())])
        changed = LiveFolder(answers, "parquet", {"q": other}, {})
        changed.write("q", pa.table({"m": ["a"]}, other))
        changed.settle(is_last=True)
        changed.publish()
        changed.close(is_complete=True)
        thread.join(60)
        assert not thread.is_alive()
        rest = client.do_get(ticket(after=position[-1]), options).read_all()
        assert rest.equals(pa.table({"m": ["a"]}))
