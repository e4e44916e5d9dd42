"""The traffic of D5 to D8, and its division among hosts.

The published trace is a link of a carrier and not public. Here flows begin evenly at random, have a
geometric number of packets (10 in the mean), and send ten packets a second, two flows in a
hundred less than one a second. Addresses have a heavy tail. Sequence numbers grow by one with each
packet, as the join of D6 expects. The flags of five flows in a hundred add up to the pattern of a
scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.sampling.connections import BEGIN_S, Packets, write_capture

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[Any]

SECONDS = 180
"""Three minutes: D8 joins each minute with the one before."""

PACKETS_OF_FLOW = 10
SUSPICIOUS_SHARE = 0.05
SLOW_SHARE = 0.02
INTERFACES_PER_HOST = 2
"""As published: each host has two links, so that it has partial rows to merge."""

_SUBNET = 0xFFFFFFF0
_FIN, _PSH, _ACK, _URG = 1, 8, 16, 32

SETS = {
    "none": (),
    "flow": ("source", "target", "source_port", "target_port"),
    "pair": ("source", "target"),
    "subnet": ("subnet", "target"),
    "source": ("source",),
    "prefix": ("subnet",),
}
"""What packets are divided by; none: round robin."""

GSQL = {
    "prefix": ("srcIP & 4294967280",),
    "subnet": ("srcIP & 4294967280", "destIP"),
    "source": ("srcIP",),
    "pair": ("srcIP", "destIP"),
    "flow": ("srcIP", "destIP", "srcPort", "destPort"),
    "none": (),
}
"""The same as ``gscope explain`` writes it."""


def traffic(packets: int, seed: int = 1) -> Packets:
    """Return about this number of packets in the order of time."""
    random = np.random.default_rng(seed)
    flows = packets // PACKETS_OF_FLOW
    counts = random.geometric(1 / PACKETS_OF_FLOW, flows)
    of_flow = np.repeat(np.arange(flows), counts)
    number = np.arange(len(of_flow)) - np.repeat(np.cumsum(counts) - counts, counts)
    pause = np.where(random.random(flows) < SLOW_SHARE, 1.2, 0.1)
    begin = random.random(flows) * SECONDS
    at = begin[of_flow] + number * pause[of_flow] + random.random(len(of_flow)) * 0.05
    client = 0x0A000000 + np.minimum(random.pareto(0.8, flows) * 400, 60_000).astype(np.int64)
    server = 0xC0A80000 + np.minimum(random.pareto(0.8, flows) * 40, 4_000).astype(np.int64)
    port = random.integers(1024, 65536, flows)
    first = random.integers(0, 1 << 31, flows)
    is_scan = random.random(flows) < SUSPICIOUS_SHARE
    zeros = np.zeros(len(of_flow), np.int64)
    made = Packets(
        at,
        client[of_flow],
        server[of_flow],
        port[of_flow],
        zeros + 443,
        first[of_flow] + number,
        zeros + 1,
        np.where(is_scan[of_flow], _FIN | _PSH | _URG, _PSH | _ACK),
        random.integers(0, 1400, len(of_flow)),
    )
    within = np.flatnonzero(made.at < SECONDS)
    return made.taken(within[np.argsort(made.at[within], kind="stable")])


def parts(packets: Packets, name: str, count: int) -> Array:
    """Return which of ``count`` parts each packet belongs to, by a set of ``SETS``."""
    if not SETS[name]:
        return np.arange(len(packets.at)) % count
    mixed = np.zeros(len(packets.at), np.uint64)
    for column in SETS[name]:
        values = packets.source & _SUBNET if column == "subnet" else getattr(packets, column)
        mixed = (mixed ^ values.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return ((mixed >> np.uint64(20)) % np.uint64(count)).astype(np.int64)


def write_shares(packets: Packets, name: str, hosts: int, folder: Path) -> list[list[Path]]:
    """Write the captures of each host, one for each of its interfaces."""
    found = parts(packets, name, hosts * INTERFACES_PER_HOST)
    shares = []
    for host in range(hosts):
        shares.append([folder / f"h{host + 1}p{n}.pcap" for n in range(INTERFACES_PER_HOST)])
        for number, path in enumerate(shares[-1]):
            part = found == host * INTERFACES_PER_HOST + number
            write_capture(packets.taken(np.flatnonzero(part)), path)
    return shares


def rows_of(packets: Packets, keys: str, part: Array) -> int:
    """Return the number of groups by second or minute and ``SETS[keys]``, over all parts."""
    time = packets.at.astype(np.int64) + BEGIN_S
    time = time if keys == "flow" else time // 60
    columns = [
        packets.source & _SUBNET if each == "subnet" else getattr(packets, each)
        for each in SETS[keys]
    ]
    mixed = np.zeros(len(time), np.uint64)
    for values in (part, time, *columns):
        mixed = (mixed ^ values.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(31)
    return len(np.unique(mixed))
