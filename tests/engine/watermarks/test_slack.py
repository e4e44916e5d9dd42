"""SLACK of MERGE: packets that it tolerates are not late at capture, whatever the skew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_builders import ipv4, udp
from tests.capture.replay.test_replay_capture import write_pcap

from gscope.capture.interface.open_log import open_log
from gscope.capture.log.log import read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.cli.config.capture_files import chosen_interfaces
from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.config.effective import load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.engine.watermarks.slack import least_skews
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.plan.program import Program

SECOND = 1_000_000_000
BEGIN = 1_500_000_000


def compiled(text: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("a", "b", "c"))).program


@pytest.mark.parametrize(
    ("column", "slack", "expected"),
    [
        # The second of a packet and the five before it.
        ("time", "5", 6 * SECOND - 1),
        ("timestamp", "INTERVAL '2 sec'", 2 * SECOND),
        ("time_ns", "7", 7),
        ("time/10 as tb", "1", 20 * SECOND - 1),
        ("time_ns", "0", None),
        ("increasing(len) as n", "3", 0),
    ],
)
def test_the_least_skew_is_the_longest_time_that_slack_allows(
    column: str, slack: str, expected: int | None
) -> None:
    name = column.rpartition(" as ")[2]
    program = compiled(
        f"Query up: SELECT {column}, len FROM a.UDP; Query down: SELECT {column}, len FROM b.UDP;"
        f" MERGE u.{name} : d.{name} SLACK {slack} FROM up u, down d"
    )
    assert least_skews(program) == ({} if expected is None else {"a": expected, "b": expected})


def test_slack_is_followed_through_other_queries() -> None:
    program = compiled(
        "Query counts: SELECT tb, count(*) as n FROM a.UDP GROUP BY time/10 as tb;"
        "Query others: SELECT tb, count(*) as n FROM [default].TCP GROUP BY time/10 as tb;"
        "MERGE x.tb : y.tb SLACK 2 FROM counts x, others y"
    )
    assert least_skews(program) == dict.fromkeys("abc", 30 * SECOND - 1)


def times_of(folder: Path, query: str, skew: str) -> tuple[list[int], int]:
    """Return the times of all rows that reach the log, and the number of late packets."""
    program = compiled(query)
    interfaces = chosen_interfaces(
        [f"{name}={folder / f'{name}.pcap'}" for name in "abc"], (), [skew], {}
    )
    settings = capture_settings(program, interfaces, load_config({}, None), RunLimits())
    log_folder = folder / f"log-{len(list(folder.iterdir()))}"
    log = open_log(log_folder, program, settings)
    try:
        summary = replay_capture(program, settings, log)
    finally:
        log.close()
    tables = [
        pq.read_table(log_folder / message.path)
        for message in read_log(log_folder)
        if isinstance(message, Batch)
    ]
    times = [time for table in tables for time in table["time"].to_pylist()]
    return sorted(times), sum(each.late for each in summary.interfaces)


def test_packets_within_slack_are_not_late(tmp_path: Path) -> None:
    packet = ipv4(1, 2, udp(3, 4))
    steps = {"a": [0, 10, 5, 11, 20, 15], "b": [1, 2, 3, 9, 4], "c": [0]}
    for name, seconds in steps.items():
        packets = [((BEGIN + second) * SECOND, packet) for second in seconds]
        write_pcap(tmp_path / f"{name}.pcap", packets)
    merge = "MERGE u.time : d.time {}FROM a.UDP u, b.UDP d"
    strict, late = times_of(tmp_path, merge.format(""), "1s")
    assert (len(strict), late) == (8, 3)
    slack, late = times_of(tmp_path, merge.format("SLACK 5 "), "1s")
    assert slack == sorted(BEGIN + second for name in "ab" for second in steps[name])
    assert late == 0
    less, late = times_of(tmp_path, merge.format("SLACK 3 "), "1s")
    # A packet 5 s behind is late: the bound is the whole second of the latest packet.
    assert (len(less), late) == (8, 3)
