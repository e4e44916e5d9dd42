"""Notifications to a service manager, by systemd's protocol; see sd_notify(3)."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.cli.rundir.records import RunRecord

VARIABLE = "NOTIFY_SOCKET"
_STATES = {"running": "READY=1", "stopping": "STOPPING=1"}


def on_change(before: RunRecord, after: RunRecord) -> None:
    """Notify the service manager, if there is one, that a run captures or stops."""
    if after.state != before.state and after.state in _STATES:
        notify(f"{_STATES[after.state]}\nSTATUS=gscope run {after.name} is {after.state}")


def notify(text: str) -> None:
    """Send ``text`` to the service manager; without a listener, do nothing."""
    address = os.environ.get(VARIABLE, "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        try:
            manager.sendto(text.encode(), address)
        except OSError:
            return
