"""Packets of a live selection: all of them, and none twice when the daemon is killed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.capture.sources.af_packet.network import DEVICE, send
from tests.live.test_run import Live, network, udp

if TYPE_CHECKING:
    from pathlib import Path

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
