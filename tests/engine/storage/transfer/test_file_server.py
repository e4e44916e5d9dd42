"""Files of a run for tasks that do not see its folder: reads, writes, and what is refused."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest
from tests.support.certificates import make_certificate
from tests.support.requirements import needs

from gscope.engine.storage.parquet_files import FileWriter, accept
from gscope.engine.storage.transfer import access as module
from gscope.engine.storage.transfer.access import (
    FileAccess,
    OpenParquet,
    parquet_rows,
    read_parquet,
    using,
)
from gscope.engine.storage.transfer.client import PIECES, FileClient
from gscope.engine.storage.transfer.run_files import RunFiles, marked, serve
from gscope.errors import EngineError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = pa.table(
    {
        "time": pa.array(range(40_000), pa.int64()),
        "address": pa.array([bytes([n % 256]) * 16 for n in range(40_000)], pa.binary(16)),
        "name": pa.array([None, "a"] * 20_000).dictionary_encode(),
    }
)
PART = "part-00007-0123abcd-12.parquet"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with a segment, and the folder of a step."""
    root = tmp_path / "run"
    for folder in ("log/segments", "job/carry", "job/outputs/flows/.staged-7.parquet"):
        (root / folder).mkdir(parents=True)
    pq.write_table(ROWS, root / "log/segments/a.parquet", row_group_size=15_000)
    (root / "job/secret.json").write_text("{}")
    return root


@pytest.fixture
def served(run: Path) -> Iterator[RunFiles]:
    files = serve(marked(run, run / "job"), run, "127.0.0.1", 0, None)
    yield files
    files.stop()


@pytest.fixture
def elsewhere(served: RunFiles) -> FileAccess:
    """What a task on another host has: the folder there has another identity."""
    return replace(served.access, identity="another run of the same name")


def test_a_task_on_this_host_reads_in_place(served: RunFiles) -> None:
    assert served.access.is_here
    assert not replace(served.access, identity="x").is_here
    assert not replace(served.access, marker="/nonexistent/identity").is_here


@pytest.mark.parametrize("columns", [None, ["name", "time"], ["address"]])
def test_rows_over_the_network_are_those_of_the_file(
    run: Path, elsewhere: FileAccess, columns: list[str] | None
) -> None:
    path = str(run / "log/segments/a.parquet")
    with using(elsewhere):
        found = read_parquet(path, columns)
        assert parquet_rows(path) == 40_000
    expected = pq.read_table(path, columns=columns)
    if "name" in expected.column_names:
        place = expected.column_names.index("name")
        decoded = expected["name"].cast(pa.string())
        expected = expected.set_column(place, "name", decoded)
    assert found.schema.equals(expected.schema)
    assert found.equals(expected)
    with using(elsewhere):
        chosen = read_parquet(path, None, [("time", "=", 7)])
    assert chosen["time"].to_pylist() == [7]


@pytest.mark.parametrize("groups", [[0, 1, 2], [2, 0], [1], []])
def test_row_groups_over_the_network_are_those_of_the_file(
    run: Path, elsewhere: FileAccess, groups: list[int]
) -> None:
    path, columns = str(run / "log/segments/a.parquet"), ["address", "time"]
    here = OpenParquet(path)
    with using(elsewhere):
        away = OpenParquet(path)
        found = away.read(groups, columns)
        with pytest.raises(StreamError, match="has 3 row groups"):
            away.read([3], columns)
        away.close()
    assert away.row_counts == here.row_counts == [15_000, 15_000, 10_000]
    assert found.equals(here.read(groups, columns))
    assert found.num_rows == sum(here.row_counts[group] for group in groups)
    here.close()


def test_a_file_that_a_task_writes_elsewhere_arrives_as_reported(
    run: Path, elsewhere: FileAccess
) -> None:
    folder = run / "job/outputs/flows/.staged-7.parquet"
    with using(elsewhere):
        writer = FileWriter(folder, PART, ["time"])
        writer.write(ROWS)
        writer.write(ROWS)
        assert list(folder.iterdir()) == [], "an incomplete file is not sent"
        file = writer.close()
    assert file is not None
    assert (file.name, file.rows) == (PART, 80_000)
    accept(folder, [file])
    assert pq.read_table(folder / PART).num_rows == 80_000
    with pytest.raises(EngineError, match="differs from the report"):
        accept(folder, [replace(file, rows=79_999)])


def test_attempts_never_write_to_the_same_file(run: Path, elsewhere: FileAccess) -> None:
    folder = run / "job/outputs/flows/.staged-7.parquet"
    (folder / PART).write_bytes(b"of another attempt")
    with using(elsewhere):
        writer = FileWriter(folder, PART)
        writer.write(ROWS)
        with pytest.raises(StreamError, match="file exists"):
            writer.close()
    assert (folder / PART).read_bytes() == b"of another attempt"


def test_a_step_that_is_over_takes_no_file(run: Path, elsewhere: FileAccess) -> None:
    """Publishing renames the folder: an attempt that is late finds none."""
    folder = run / "job/outputs/flows/.staged-7.parquet"
    folder.rename(run / "job/outputs/flows/7.parquet")
    with using(elsewhere):
        writer = FileWriter(folder, PART)
        writer.write(ROWS)
        with pytest.raises(StreamError, match="no such file or directory"):
            writer.close()


@pytest.mark.parametrize("announced", [3, 6])
def test_a_file_that_is_not_whole_is_removed(
    run: Path, elsewhere: FileAccess, announced: int
) -> None:
    path = f"{run}/job/outputs/flows/.staged-7.parquet/{PART}"
    client = FileClient(elsewhere)
    descriptor = flight.FlightDescriptor.for_command(client._request(path, bytes=announced))
    with pytest.raises(flight.FlightServerError, match=f"expected a file of {announced} bytes"):  # noqa: PT012
        writer, _ = client._client.do_put(descriptor, PIECES, client._options(20))
        writer.write_batch(pa.record_batch([pa.array([b"12345"], pa.binary())], schema=PIECES))
        writer.close()
    assert list((run / "job/outputs/flows/.staged-7.parquet").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "job/secret.json",
        "job/identity",
        "log/index",
        "log/segments/../../job/secret.json",
        "log/segments/link/passwd",
        "/etc/passwd",
        "log/segments",
        "job/carry/../secret.json",
        "",
    ],
)
def test_other_files_are_not_read(run: Path, elsewhere: FileAccess, name: str) -> None:
    (run / "log/segments/link").symlink_to("/etc")
    client = FileClient(elsewhere)
    ticket = flight.Ticket(b'{"file": "%s", "columns": null}' % name.encode())
    with pytest.raises(flight.FlightServerError, match=r"not one of those|not in the folder"):
        client._client.do_get(ticket, client._options(20)).read_all()


@pytest.mark.parametrize(
    "name",
    [
        f"log/segments/{PART}",
        f"job/{PART}",
        "job/carry/x/other.parquet",
        f"job/outputs/{PART}",
        f"job/carry/link/{PART}",
        f"job/carry/../x/{PART}",
        "run.json",
    ],
)
def test_other_files_are_not_written(run: Path, elsewhere: FileAccess, name: str) -> None:
    (run / "job/carry/link").symlink_to(run)
    client = FileClient(elsewhere)
    source = run / "job/secret.json"
    with pytest.raises(StreamError, match=r"not one of those|not in the folder"):
        client.write(source, f"{run}/{name}")
    assert not (run / PART).exists()


def test_a_request_needs_the_token(run: Path, elsewhere: FileAccess) -> None:
    path = str(run / "log/segments/a.parquet")
    for token in ("", secrets.token_hex(32), f"{elsewhere.token}x"):
        with using(replace(elsewhere, token=token)), pytest.raises(StreamError, match="token"):
            read_parquet(path)


@pytest.mark.parametrize("request_", [b"", b"[]", b"{}", b'{"file": 7}', b"\xff", b"[" * 100_000])
def test_requests_that_are_none_are_refused(elsewhere: FileAccess, request_: bytes) -> None:
    client = FileClient(elsewhere)
    with pytest.raises(flight.FlightServerError):
        client._client.do_get(flight.Ticket(request_), client._options(20)).read_all()
    with pytest.raises(flight.FlightServerError):
        list(client._client.do_action(flight.Action("rows", request_), client._options(20)))


def test_a_job_that_is_gone_is_an_error(run: Path, served: RunFiles, elsewhere: FileAccess) -> None:
    served.stop()
    with using(elsewhere), pytest.raises(StreamError, match="does not answer"):
        read_parquet(str(run / "log/segments/a.parquet"))


def test_without_a_server_a_host_that_does_not_see_the_folder_says_so(run: Path) -> None:
    alone = replace(marked(run, run / "job"), identity="x")
    with using(alone), pytest.raises(StreamError, match="does not see the run's folder"):
        read_parquet(str(run / "log/segments/a.parquet"))


@needs("openssl")
def test_files_are_served_over_tls(run: Path, tmp_path: Path) -> None:
    made, other = make_certificate(tmp_path, "driver"), make_certificate(tmp_path, "other")
    tls = made.certificate.read_text(), made.key.read_text()
    files = serve(marked(run, run / "job"), run, "127.0.0.1", 0, tls)
    try:
        away = replace(files.access, identity="x")
        with using(away):
            assert read_parquet(str(run / "log/segments/a.parquet")).num_rows == 40_000
        wrong = replace(away, certificate=other.certificate.read_text())
        with using(wrong), pytest.raises(StreamError, match="does not answer"):
            read_parquet(str(run / "log/segments/a.parquet"))
    finally:
        files.stop()
    module._client_of.cache_clear()
