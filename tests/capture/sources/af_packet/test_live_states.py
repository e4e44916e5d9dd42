from __future__ import annotations

import errno
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import (
    DEVICE,
    SENDER,
    add_pair,
    drop_capabilities,
    receive,
    run_ip,
    send,
    wait_for,
)

from gscope.capture.sources.af_packet.packet_socket import Fanout
from gscope.capture.sources.base import InputState
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from tests.capture.sources.af_packet.conftest import Opener

pytestmark = pytest.mark.live

FRAME = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x88\xb5" + bytes(50)


def test_an_interface_that_goes_down_comes_back(live: Opener) -> None:
    source = live()
    assert source.state() is InputState.UP
    run_ip("link", "set", DEVICE, "down")
    wait_for(lambda: source.state() is InputState.DOWN, source)
    run_ip("link", "set", DEVICE, "up")
    wait_for(lambda: source.state() is InputState.UP, source)
    send([FRAME])
    assert receive(source, 1) == [FRAME]
    assert source.stats.interruptions_total == 1


def test_an_interface_that_vanishes_is_captured_again_when_it_is_back(live: Opener) -> None:
    source = live()
    run_ip("link", "del", SENDER)
    wait_for(lambda: source.state() is InputState.GONE, source)
    add_pair()
    wait_for(lambda: source.state() is InputState.UP, source)
    send([FRAME])
    assert receive(source, 1) == [FRAME]
    assert source.stats.interruptions_total == 1


def test_an_interface_is_captured_again_without_any_privilege(live: Opener) -> None:
    source = live()
    found: list[bytes] = []

    def capture() -> None:
        # Of this thread only.
        drop_capabilities()
        with pytest.raises(PermissionError):
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        found.extend(receive(source, 1))

    thread = threading.Thread(target=capture)
    thread.start()
    run_ip("link", "del", SENDER)
    add_pair()
    while thread.is_alive():
        send([FRAME])
        thread.join(0.1)
    assert found[0] == FRAME


def test_an_interface_of_another_link_type_under_the_old_name_is_reported(live: Opener) -> None:
    source = live()
    run_ip("link", "del", SENDER)
    run_ip("tuntap", "add", DEVICE, "mode", "tun")
    wait_for(lambda: bool(source.damage), source)
    assert source.damage == [f"{DEVICE} has come back with link type RAW"]
    assert source.state() is InputState.GONE
    run_ip("link", "del", DEVICE)
    add_pair()
    wait_for(lambda: source.state() is InputState.UP, source)


def test_packets_from_before_an_interface_vanished_are_not_lost(live: Opener) -> None:
    source = live()
    send([FRAME] * 5)
    run_ip("link", "del", SENDER)
    assert receive(source, 5) == [FRAME] * 5


def test_an_interface_that_is_down_may_be_opened(live: Opener) -> None:
    run_ip("link", "set", DEVICE, "down")
    source = live()
    assert source.state() is InputState.DOWN
    run_ip("link", "set", DEVICE, "up")
    wait_for(lambda: source.state() is InputState.UP, source)
    send([FRAME])
    assert receive(source, 1) == [FRAME]


def test_what_is_gone_has_failed_until_it_is_back(live: Opener) -> None:
    source = live()
    assert source.failure == ""
    run_ip("link", "del", SENDER)
    wait_for(lambda: source.state() is InputState.GONE, source)
    assert source.failure == f"{DEVICE} vanished and has not come back"
    add_pair()
    wait_for(lambda: source.state() is InputState.UP, source)
    assert source.failure == ""
    run_ip("link", "set", DEVICE, "down")
    wait_for(lambda: source.state() is InputState.DOWN, source)
    assert source.failure == ""


def test_a_member_of_a_group_that_is_back_is_reported_as_lost(live: Opener) -> None:
    source = live(fanout=Fanout())
    run_ip("link", "del", SENDER)
    wait_for(lambda: source.state() is InputState.GONE, source)
    add_pair()
    wait_for(lambda: bool(source.damage), source)
    assert source.failure.startswith(f"{DEVICE} cannot be captured again: ")


def test_a_ring_that_fails_ends_with_a_sentence(
    live: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = live()

    def refuse(deadline: float | None) -> bool:
        raise OSError(errno.EBADFD, "broken")

    monkeypatch.setattr(source, "_wait", refuse)
    with pytest.raises(CaptureError, match=f"capturing on {DEVICE} has failed: "):
        source.next_block(1)


def test_promiscuous_mode_ends_with_the_source(live: Opener) -> None:
    plain = live(promiscuous=False)
    assert "promiscuity 0" in run_ip("-d", "link", "show", DEVICE)
    source = live(promiscuous=True)
    assert "promiscuity 1" in run_ip("-d", "link", "show", DEVICE)
    source.close()
    assert "promiscuity 0" in run_ip("-d", "link", "show", DEVICE)
    plain.close()


def test_a_silent_interface_is_idle(live: Opener) -> None:
    assert live().is_idle()


def test_a_packet_in_the_ring_or_in_hand_is_not_idleness(live: Opener) -> None:
    source = live()
    send([FRAME])
    # Long before the kernel hands over the block.
    assert not source.is_idle()
    block = source.next_block(5)
    assert block is not None
    assert not source.is_idle()
    source.release(block)
    assert source.is_idle()
    source.release(block)
    send([FRAME])
    assert receive(source, 1) == [FRAME]


def test_the_ring_is_idle_again_after_it_was_full(live: Opener) -> None:
    source = live(ring_bytes=2 << 20)
    send([FRAME.ljust(1000)] * 4000)
    assert source.ring_use().occupancy == 1
    while source.next_block(0.3) is not None:
        pass
    assert source.ring_use().occupancy == 0
    assert source.is_idle()


def test_waiting_ends_with_the_time_out(live: Opener) -> None:
    source = live()
    began = time.monotonic()
    assert source.next_block(0.05) is None
    assert time.monotonic() - began >= 0.04


def test_an_interruption_ends_all_waiting(live: Opener) -> None:
    source = live()
    thread = threading.Timer(0.05, source.interrupt)
    thread.start()
    assert source.next_block() is None
    assert source.next_block() is None
    thread.join()
    source.close()
    source.interrupt()


def test_closing_twice_is_harmless_and_using_it_then_is_reported(live: Opener) -> None:
    source = live()
    send([FRAME])
    block = source.next_block(5)
    assert block is not None
    source.close()
    source.close()
    # A block that the caller holds stays readable.
    assert block.data[int(block.offset[0])] == 0xFF
    with pytest.raises(CaptureError, match="is not open"):
        source.next_block()


def test_an_unknown_interface_gets_a_suggestion(live: Opener) -> None:
    with pytest.raises(
        CaptureError, match=f"unknown network interface 'veth_im'; did you mean {DEVICE}"
    ):
        live("veth_im")


def test_a_source_is_woken_once_and_goes_on(live: Opener) -> None:
    source = live()
    thread = threading.Timer(0.05, source.wake)
    thread.start()
    assert source.next_block(5) is None
    thread.join()
    began = time.monotonic()
    assert source.next_block(0.05) is None
    assert time.monotonic() - began >= 0.04
    send([FRAME])
    assert receive(source, 1) == [FRAME]
