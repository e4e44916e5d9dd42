"""Replay in process: captures in, the same tuples in the log out, whatever the settings."""

from __future__ import annotations

import csv
import dataclasses
import ipaddress
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_builders import flow, ipv4, udp
from tests.support.requirements import CAPTURES, EXPECTED, needs_captures

from gscope.capture.interface.open_log import open_log
from gscope.capture.log.log import read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.errors import CaptureError, UsageError
from gscope.queries.plan.program import Program
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary

SAMPLE = [
    "ndpi-mumble.pcapng",
    "zeek-mime-header-size-limit.pcap.gz",
    "zeek-fragment-state-exhaustion.pcap",
    "ndpi-fuzz-2006-06-26-2594.pcap",
    "ndpi-http-lines-split.pcap",
]

Flows = Counter[tuple[object, ...]]


def flow_program(*interfaces: str) -> Program:
    lfta = dataclasses.replace(flow(), interfaces=interfaces, has_interface_column=True)
    return Program(interfaces, (lfta,), (), (), ())


def write_pcap(path: Path, packets: list[tuple[int, bytes]]) -> None:
    """A pcap with nanoseconds; packets are (time_ns, Ethernet frame)."""
    records = [
        struct.pack("<IIII", time // 10**9, time % 10**9, len(data), len(data)) + data
        for time, data in packets
    ]
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + b"".join(records))


def replay(
    folder: Path, files: Mapping[str, tuple[Path, ...]], **settings: Any
) -> tuple[CaptureSummary, Flows, Flows]:
    """The summary, and packets and bytes of each flow in the log."""
    program = flow_program(*files)
    interfaces = tuple(
        InterfaceSettings(name, tuple(str(path) for path in paths)) for name, paths in files.items()
    )
    chosen = CaptureSettings(interfaces, **settings)
    log = open_log(folder, program, chosen)
    try:
        summary = replay_capture(program, chosen, log)
    finally:
        log.close()
    return summary, *logged_flows(folder)


def logged_flows(folder: Path) -> tuple[Flows, Flows]:
    packets: Flows = Counter()
    size: Flows = Counter()
    for message in read_log(folder):
        if isinstance(message, Batch):
            for row in pq.read_table(folder / message.path).to_pylist():
                key = (
                    row["interface"].decode(),
                    *(row[name] for name in ("tb", "ipversion", "protocol")),
                    *(ipaddress.IPv6Address(row[name]) for name in ("srcIP", "destIP")),
                    *(row[name] for name in ("srcPort", "destPort")),
                )
                packets[key] += row["cnt"]
                size[key] += row["bytes"]
    return packets, size


def expected_flows(files: Mapping[str, tuple[Path, ...]]) -> tuple[Flows, Flows]:
    packets: Flows = Counter()
    size: Flows = Counter()
    for name, (path,) in files.items():
        with (EXPECTED / f"{path.name}.flows.csv").open() as file:
            for row in csv.DictReader(file):
                key = (
                    name,
                    *(int(row[column]) for column in ("tb", "ipversion", "protocol")),
                    *(_mapped(row[column]) for column in ("srcIP", "destIP")),
                    *(int(row[column]) for column in ("srcPort", "destPort")),
                )
                packets[key] += int(row["cnt"])
                size[key] += int(row["bytes"])
    return packets, size


def _mapped(text: str) -> ipaddress.IPv6Address:
    return ipaddress.IPv6Address(f"::ffff:{text}" if ":" not in text else text)


@needs_captures
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"heartbeat_every_tick": True, "heartbeat_interval_ns": 77_000_000},
        {
            "table_slots": 4,
            "block_bytes": 4096,
            "output_rows": 1,
            "batch_rows": 3,
            "open_bytes": 999,
        },
    ],
    ids=["default", "every tick", "tiny"],
)
def test_several_captures_give_the_flows_of_tshark(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    files = {name: (CAPTURES / name,) for name in SAMPLE}
    summary, packets, size = replay(tmp_path, files, **settings)
    assert (packets, size) == expected_flows(files)
    assert sum(interface.received for interface in summary.interfaces) > 0
    for interface in summary.interfaces:
        check_sum(interface)


def check_sum(interface: Any) -> None:
    assert interface.received == (
        interface.dropped
        + interface.filtered
        + interface.shed
        + interface.late
        + sum(interface.malformed.values())
        + interface.accepted
        + interface.unread
    )


PACKET = ipv4(0x0A000001, 0x0A000002, udp(1, 2))
SECOND = 10**9


def test_every_packet_is_in_one_term_of_the_sum(tmp_path: Path) -> None:
    capture = tmp_path / "odd.pcap"
    write_pcap(
        capture,
        [
            (100 * SECOND, PACKET),
            (50 * SECOND, PACKET),
            (95 * SECOND, PACKET),
            (101 * SECOND, PACKET[:20]),
        ],
    )
    capture.write_bytes(capture.read_bytes() + b"cut")
    summary, packets, _ = replay(tmp_path / "log", {"odd": (capture,)})
    (interface,) = summary.interfaces
    check_sum(interface)
    assert (interface.received, interface.late, interface.accepted) == (4, 1, 2)
    assert interface.malformed == {"ip_truncated": 1}
    assert len(interface.damage) == 1
    assert packets.total() == 2
    assert summary.lftas["flow@odd"]["tuples_in_total"] == 2
    assert summary.log["tuples_total"] == summary.lftas["flow@odd"]["tuples_out_total"]


def test_rotated_captures_are_one_interface(tmp_path: Path) -> None:
    first, second = tmp_path / "a.pcap", tmp_path / "b.pcap"
    write_pcap(first, [(1 * SECOND, PACKET)])
    write_pcap(second, [(2 * SECOND, PACKET)])
    summary, packets, _ = replay(tmp_path / "log", {"main": (first, second)})
    assert list(packets.values()) == [2]
    assert summary.interfaces[0].received == 2


def test_all_unusable_files_are_reported_before_anything_is_read(tmp_path: Path) -> None:
    good = tmp_path / "good.pcap"
    write_pcap(good, [(SECOND, PACKET)])
    (tmp_path / "text.pcap").write_text("no capture at all")
    files = {name: (tmp_path / f"{name}.pcap",) for name in ("missing", "good", "text")}
    with pytest.raises(CaptureError, match=r"(?s)missing\.pcap.*\n.*text\.pcap"):
        replay(tmp_path / "log", files)
    assert read_log(tmp_path / "log") == []


def test_an_interface_without_input_is_reported(tmp_path: Path) -> None:
    settings = CaptureSettings((InterfaceSettings("a", ("a.pcap",)),))
    with pytest.raises(UsageError, match="without input: b"):
        open_log(tmp_path, flow_program("a", "b"), settings)


def test_a_request_to_stop_that_came_before_ends_the_replay_cleanly(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    write_pcap(capture, [(n * SECOND, PACKET) for n in range(5)])
    program = flow_program("a")
    settings = CaptureSettings((InterfaceSettings("a", (str(capture),)),))
    stop = ReplayStop()
    stop.request()
    log = open_log(tmp_path / "log", program, settings)
    summary = replay_capture(program, settings, log, stop=stop)
    assert summary.is_stopped
    assert log.is_ended
    check_sum(summary.interfaces[0])
    log.close()
