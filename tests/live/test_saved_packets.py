"""Packets of live selections and groups: all of them, and none twice when a process is killed."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.capture.packet.raw_captures import read_capture
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.capture.sources.af_packet.network import DEVICE, send
from tests.live.test_run import Live, captured, network, udp
from tests.support.gscope_command import descendants

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.packet.kernel_reader import RawPacket
    from tests.capture.saving.pcapng_reader import SavedPacket

pytestmark = [pytest.mark.live, pytest.mark.slow]
__all__ = ["network"]

ODD = "DEFINE { query_name odd; } SELECT time, srcPort FROM UDP WHERE srcPort % 2 = 1"
BATCH = 700


def frames(first: int) -> list[bytes]:
    return [udp(number) for number in range(first, first + BATCH)]


def is_odd(frame: bytes) -> bool:
    return frame[35] % 2 == 1


def saved(path: Path) -> list[SavedPacket]:
    return read_pcapng(path.read_bytes())


def test_packets_are_saved_once_although_the_daemon_is_killed(tmp_path: Path) -> None:
    hits = tmp_path / "hits.pcapng"
    live = Live("-i", f"link={DEVICE}", "-e", ODD, "-o", "csv", "--save-packets", hits)
    try:
        live.wait_for_lines(1)
        before = [frame for frame in frames(0) if is_odd(frame)]
        send(frames(0))
        live.wait_for_lines(1 + len(before))
        # A heartbeat has passed their rows, and their packets go to the file with it.
        live.wait_for(lambda: hits.read_bytes().count(b"odd") == len(before))
        os.kill(live.daemon, signal.SIGKILL)
        # What comes while no daemon captures is in no answer.
        rows = len(live.lines)
        live.wait_for(lambda: len(live.lines) > rows, lambda: send(frames(BATCH)))
        assert live.end() == 128 + signal.SIGINT
    finally:
        live.kill()
    found = saved(hits)
    assert [p.data for p in found[: len(before)]] == before
    sent = {frame for frame in frames(BATCH) if is_odd(frame)}
    after = found[len(before) :]
    assert after
    assert all(p.data in sent for p in after)
    # A time is that of one packet, with which no other frame of the same bytes was sent.
    assert len({(p.data, p.time_ns) for p in found}) == len(found)
    assert {(p.interface, p.comments) for p in found} == {("link", ("odd",))}
    assert len(found) == len(live.lines) - 1
    assert f"{len(found):,} packets saved in {hits}" in live.summary


BUSY = """DEFINE { query_name busy; }
SELECT tb, srcPort, count(*) AS packets, max(len) AS longest FROM UDP
GROUP BY time/2 AS tb, srcPort HAVING (count(*) + srcPort) % 2 = 1"""


def group_of(packet: RawPacket | SavedPacket) -> tuple[int, bytes]:
    """The number of its two seconds, and its source port."""
    return packet.time_ns // 2_000_000_000, packet.data[34:36]


def send_within_epochs(numbers: range) -> None:
    """Send frames far from the ends of epochs: two sockets stamp a packet microseconds apart."""
    pace = threading.Event()
    at = numbers.start
    while at < numbers.stop:
        if 0.1 < time.time() % 2 < 1.8:
            count = min(20 + at % 5, numbers.stop - at)
            at += send([udp(number) for number in range(at, at + count)])
        pace.wait(0.1)


def test_packets_of_groups_are_saved_once_although_the_job_is_killed(tmp_path: Path) -> None:
    hits, all_packets = tmp_path / "hits.pcapng", tmp_path / "all.pcap"
    live = Live("-i", f"link={DEVICE}", "-e", BUSY, "-o", "csv", "--save-packets", hits)
    try:
        live.wait_for_lines(1)
        with captured(DEVICE, all_packets):
            send_within_epochs(range(800))
            # They are saved while the run goes on.
            live.wait_for(lambda: b"busy" in hits.read_bytes())
            (job,) = (p for p, line in descendants(live.pid).items() if "engine.job" in line)
            os.kill(job, signal.SIGKILL)
            send_within_epochs(range(800, 1500))
        assert live.end() == 128 + signal.SIGINT
    finally:
        live.kill()
    groups: dict[tuple[int, bytes], list[bytes]] = {}
    for packet in read_capture(all_packets):
        groups.setdefault(group_of(packet), []).append(packet.data)
    wanted = {k: packets for k, packets in groups.items() if (len(packets) + k[1][1]) % 2}
    assert 0 < len(wanted) < len(groups)
    found = saved(hits)
    # No two of the frames are equal.
    assert Counter((group_of(p), p.data) for p in found) == Counter(
        (key, data) for key, packets in wanted.items() for data in packets
    )
    assert {(p.interface, p.comments) for p in found} == {("link", ("busy",))}
    assert len(live.lines) - 1 == len(wanted)
    assert f"{len(found):,} packets saved in {hits}" in live.summary
    assert "ring" not in live.summary


@pytest.mark.long
def test_groups_whose_packets_have_left_the_ring_are_counted(tmp_path: Path) -> None:
    hits = tmp_path / "hits.pcapng"
    every = "SELECT tb, count(*) AS c FROM UDP GROUP BY time/4 AS tb"
    ring = ("--save-packets", hits, "--packet-ring", "1M")
    live = Live("-i", f"link={DEVICE}", "-e", every, "-o", "csv", *ring)
    try:
        live.wait_for_lines(1)
        large = [udp(49) + bytes(1000)] * 100
        live.wait_for_lines(3, lambda: send(large * 10))
        assert live.end() == 128 + signal.SIGINT
    finally:
        live.kill()
    rows = [int(line.split(b",")[1]) for line in live.lines[1:]]
    found = saved(hits)
    assert 0 < len(found) < sum(rows)
    assert len({(p.data, p.time_ns) for p in found}) == len(found)
    assert re.search(r"packets of \d+ groups? had left the ring", live.summary)
    assert "not saved" not in live.summary


@pytest.mark.long
@pytest.mark.parametrize("killed", ["capture.daemon", "gscope"])
def test_no_packet_of_a_group_is_saved_twice_whatever_is_killed(
    tmp_path: Path, killed: str
) -> None:
    hits = tmp_path / "hits.pcapng"
    arguments = ("-i", f"link={DEVICE}", "-e", BUSY, "-o", "csv", "--save-packets", hits)
    named = (*arguments, "--run", "saver", "--work-dir", tmp_path / "work", "-w", tmp_path / "rows")
    rows = tmp_path / "rows" / "busy.csv"
    live = Live(*named)
    try:
        live.wait_for(lambda: rows.exists() and bool(rows.read_bytes()))
        send_within_epochs(range(600))
        live.wait_for(lambda: b"busy" in hits.read_bytes())
        os.kill(live.pid if killed == "gscope" else live.daemon, signal.SIGKILL)
        if killed == "gscope":
            live.kill()
            live = Live(*named)
        before = len(saved(hits))
        numbers = iter(range(600, 60_000))

        def send_more() -> None:
            send([udp(next(numbers)) for _ in range(20)])

        live.wait_for(lambda: hits.read_bytes().count(b"busy") > before + 100, send_more)
        assert live.end() == 128 + signal.SIGINT
    finally:
        live.kill()
    found = saved(hits)
    assert len({p.data for p in found}) == len(found)
    assert {p.data for p in found} <= {udp(number) for number in range(next(numbers))}
    answered = {tuple(map(int, line.split(",")[:2])) for line in rows.read_text().split()[1:]}
    keys = ((number, int.from_bytes(port)) for number, port in map(group_of, found))
    assert set(keys) <= answered
    assert f"{len(found):,} packets saved in {hits}" in live.summary
