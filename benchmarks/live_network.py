"""A network namespace with two joined virtual Ethernet devices, for the life of a benchmark."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

SENDER, DEVICE = "veth_out", "veth_in"

_CLONE_NEWNET = 0x40000000


def enter_own_network(pairs: int = 1) -> list[tuple[str, str]]:
    """Move this process into a new network namespace; return pairs of sender and device.

    The process must have a single thread.

    Raises:
        OSError: the system does not permit it; it needs root.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number).lower()}; be root")
    # So that the kernel sends no packets of its own.
    switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if switch.exists():
        switch.write_text("1")
    # Spark communicates with Java over it.
    _ip("link", "set", "lo", "up")
    made = []
    for number in range(pairs):
        sender, device = (f"{name}{number or ''}" for name in (SENDER, DEVICE))
        _ip("link", "add", sender, "type", "veth", "peer", "name", device)
        for each in (sender, device):
            _ip("link", "set", each, "up")
        made.append((sender, device))
    return made


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
