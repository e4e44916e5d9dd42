"""Functions of payloads are evaluated and counted once for each tuple that reaches the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from tests.engine.sampling.sampled import Packet, Sampled, packet

from gscope.engine.sampling.values import SampleRows
from gscope.engine.spark.tasks.sample_task import SampleTask
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.payload_counts import payload_counts

if TYPE_CHECKING:
    from pathlib import Path

QUERY = """
SELECT tb, srcIP, site, count(*), count_distinct$(*) FROM TCP
WHERE http_method(TCP_data) = 'GET' AND destPort <> 9
GROUP BY time/20 AS tb, srcIP, http_host(TCP_data) AS site SUPERGROUP srcIP
CLEANING_WHEN count_distinct$(*) > 9 CLEANING_BY count(*) > 1
"""
PAYLOADS = {
    b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n": "a.example",
    b"GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n": "b.example",
    b"POST / HTTP/1.1\r\nHost: a.example\r\n\r\n": None,
    b"\x16\x03\x01\x02\x00\x01": None,
    b"": None,
}


def packets() -> list[Packet]:
    return [
        packet(n * 10**9, 60, n % 3, TCP_data=payload, destPort=80, protocol=6)
        for n, payload in enumerate(list(PAYLOADS) * 6)
    ]


def test_hosts_are_groups_and_payloads_of_other_protocols_are_counted_once() -> None:
    query = Sampled(QUERY)
    rows = query.rows(packets())
    read = [each for each in packets() if PAYLOADS[each["TCP_data"]] is not None]
    assert rows.count == len(read)
    assert {name: dict(found) for name, found in rows.outcomes.items()}.keys() == {
        "http_method",
        "http_host",
    }
    counts = payload_counts(rows.outcomes)
    foreign = sum(each["TCP_data"].startswith(b"\x16") for each in packets())
    assert counts == Counts(foreign={"http_method": foreign, "http_host": foreign})
    groups: dict[tuple[int, int, str | None], int] = {}
    for each in read:
        key = (each["time"] // 20, each["srcIP"], PAYLOADS[each["TCP_data"]])
        groups[key] = groups.get(key, 0) + 1
    found, _ = query.answers(packets())
    assert {(tb, src, site.decode()): count for tb, src, site, count, _ in found} == groups


def test_payloads_are_not_held_while_their_windows_are_folded() -> None:
    rows = Sampled(QUERY).rows(packets())
    assert "TCP_data" not in "".join(rows.table.column_names)
    assert rows.table.nbytes < 60 * rows.count


def test_tasks_together_count_each_payload_once(tmp_path: Path) -> None:
    query = Sampled(QUERY)
    expected, _ = query.answers(packets())
    answers, states = tmp_path / "answers", tmp_path / "states"
    answers.mkdir()
    states.mkdir()
    task = SampleTask(query.node, None, answers, states, ())
    total = Counts()
    for part in range(4):
        total += task.run(part, "x", [query.rows(packets())], 4).counts
    assert total == payload_counts(query.rows(packets()).outcomes)
    found = [row for file in sorted(answers.iterdir()) for row in query.plain(pq.read_table(file))]
    assert sorted(found) == sorted(expected)


def test_rows_without_payloads_are_left_as_they_are() -> None:
    query = Sampled("SELECT tb, count(*), count$(*) FROM IP GROUP BY time/20 AS tb")
    table = query.rows([packet(1)]).table
    assert SampleRows.of(query.node, table).table is table
