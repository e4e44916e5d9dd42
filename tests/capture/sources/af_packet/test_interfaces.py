from __future__ import annotations

import errno
import os
import socket
import subprocess

import pytest
from tests.capture.sources.af_packet.network import DEVICE, SENDER, own_network, run_ip
from tests.support.gscope_command import wait_for
from tests.support.requirements import needs_root

from gscope.capture.sources.af_packet.interfaces import Interface, list_interfaces
from gscope.capture.sources.af_packet.packet_socket import refusal

CAP_NET_RAW = 13
"""Its number in capability.h."""


def test_every_interface_is_listed_and_all_of_them_last() -> None:
    names = [name for _, name in socket.if_nameindex()]
    assert [each.name for each in list_interfaces()] == [*names, "any"]


@pytest.mark.live
def test_state_addresses_and_link_type_are_the_kernel_s() -> None:
    with own_network():
        run_ip("address", "add", "192.0.2.1/24", "dev", DEVICE)
        run_ip("address", "add", "10.9.0.1", "peer", "10.9.0.2/32", "dev", DEVICE)
        run_ip("link", "set", DEVICE, "address", "02:00:00:00:00:01")
        run_ip("link", "set", SENDER, "down")
        # The kernel notes the lost carrier a moment later.
        wait_for(lambda: interfaces()[DEVICE].state == "no carrier", "the carrier's loss")
        found = interfaces()
    device = found[DEVICE]
    assert device == Interface(
        DEVICE,
        "no carrier",
        device.link_type,
        "02:00:00:00:00:01",
        ("192.0.2.1/24", "10.9.0.1/32"),
        "",
    )
    assert (device.link_type.number, found["any"].link_type.number) == (1, 113)
    assert (found[SENDER].state, found["lo"].state) == ("down", "down")


def interfaces() -> dict[str, Interface]:
    return {each.name: each for each in list_interfaces()}


def test_what_forbids_capturing_is_reported_with_the_command_that_grants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.socket

    def without_privilege(family: int, *arguments: int) -> socket.socket:
        if family == socket.AF_PACKET:
            raise PermissionError(1, "Operation not permitted")
        return real(family, *arguments)

    monkeypatch.setattr(socket, "socket", without_privilege)
    found = list_interfaces()
    assert found
    for each in found:
        assert 'run `sudo "$(command -v gscope)" run …`' in each.why_not
        assert "setcap" not in each.why_not


@needs_root
def test_the_advised_command_grants_the_capability_to_an_ordinary_user() -> None:
    """With the remedy as printed, apart from sudo; a program that shows its rights as gscope."""
    remedy = refusal(PermissionError(errno.EPERM, "")).rpartition("`sudo ")[2]
    command = remedy.rpartition('"$(command -v gscope)"')[0].replace("$(id -g)", "65534")
    done = subprocess.run(
        ["sh", "-c", f"{command} cat /proc/self/status"],
        env={"USER": "nobody", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert int(status["CapEff"], 16) == int(status["CapAmb"], 16) == 1 << CAP_NET_RAW
