"""Hosts as network namespaces, joined by a bridge in a namespace of its own."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SENDER, DEVICE = "veth_out", "veth_in"
_LINK = "eth0"
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of frames that a host has sent and received."""

    sent: int
    received: int

    @property
    def both(self) -> int:
        return self.sent + self.received


class Hosts:
    """Network namespaces, each with a link to the bridge; deleted at the end of the context.

    Args:
        names: of the hosts, at most 15 characters each.

    Raises:
        subprocess.CalledProcessError: the system does not permit it; it needs root.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"tree{os.getpid()}"
        self.addresses = {name: f"10.9.0.{n}" for n, name in enumerate(names, 1)}

    def __enter__(self) -> Self:
        switch = self.namespace("switch")
        _ip("netns", "add", switch)
        self._keep_quiet("switch")
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for name, address in self.addresses.items():
            self._add(name, address)
        return self

    def __exit__(self, *_: object) -> None:
        for name in (*self.addresses, "switch"):
            subprocess.run(["ip", "netns", "del", self.namespace(name)], check=False)

    def namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def command(self, name: str, words: Sequence[str]) -> list[str]:
        """Return the words that run a command on a host; the process keeps its number."""
        return ["ip", "netns", "exec", self.namespace(name), *words]

    def traffic(self, name: str) -> Traffic:
        """Return what the interface of a host has counted."""
        shown = _ip("-n", self.namespace(name), "-s", "-j", "link", "show", _LINK)
        counted = json.loads(shown)[0]["stats64"]
        return Traffic(counted["tx"]["bytes"], counted["rx"]["bytes"])

    def add_pair(self, name: str) -> socket.socket:
        """Give a host a pair of devices to capture on; return a socket that sends into it."""
        where = self.namespace(name)
        _ip("-n", where, "link", "add", SENDER, "type", "veth", "peer", "name", DEVICE)
        for device in (SENDER, DEVICE):
            _ip("-n", where, "link", "set", device, "up")
        with _inside(where):
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            made.bind((SENDER, 0))
        return made

    def _add(self, name: str, address: str) -> None:
        where, switch = self.namespace(name), self.namespace("switch")
        _ip("netns", "add", where)
        self._keep_quiet(name)
        _ip("-n", where, "link", "add", _LINK, "type", "veth", "peer", "name", name)
        _ip("-n", where, "link", "set", name, "netns", switch)
        # Frames as on a wire: otherwise up to 64 KB are counted with a single header.
        _ip("-n", where, "link", "set", _LINK, "gso_max_segs", "1")
        _ip("-n", where, "address", "add", f"{address}/24", "dev", _LINK)
        _ip("-n", where, "link", "set", _LINK, "up")
        _ip("-n", where, "link", "set", "lo", "up")  # Spark communicates with Java over it
        _ip("-n", switch, "link", "set", name, "master", "bridge", "up")

    def _keep_quiet(self, name: str) -> None:
        """Let the kernel send nothing of its own."""
        with _inside(self.namespace(name)):
            switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
            if switch.exists():
                switch.write_text("1")


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """Move this thread into a namespace, and back at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (
        Path("/proc/thread-self/ns/net").open("rb") as home,
        Path("/run/netns", namespace).open("rb") as there,
    ):
        if libc.setns(there.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), _CLONE_NEWNET) == 0


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout
