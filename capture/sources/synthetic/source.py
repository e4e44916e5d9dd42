"""Synthetic traffic: a seeded capture of any length, for the demo, the tests and the benchmarks.

``traffic.py`` decides which packet comes next (its tables are in ``trains.py``), ``frames.py``
turns packets into bytes; this module has the parameters and writes the file. Everything is
vectorised over numpy arrays, so there is nothing to compile, and memory use does not depend on the
length of the capture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.synthetic.frames import FrameBuilder
from gscope.capture.sources.synthetic.traffic import Traffic
from gscope.errors import CaptureError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LINKTYPE_ETHERNET = 1
_SHARES = (
    "small_share",
    "large_share",
    "ipv6_share",
    "vlan_share",
    "http_share",
    "tcp_share",
    "dns_share",
    "quic_share",
    "ping_share",
    "arp_share",
    "retransmission_rate",
)


@dataclass(frozen=True, slots=True)
class TrafficProfile:
    """The parameters of the traffic. The same profile always gives the same bytes.

    A *conversation* is one TCP connection, one DNS lookup, one QUIC connection. ``flows``
    conversations exist at any time; each has a rank, and rank r is chosen for the next exchange
    with a probability proportional to r ** -zipf_exponent. When a conversation has ended, another
    one with a fresh client port takes its rank.

    Attributes:
        seed: seed of all random numbers.
        packets_per_second: mean rate in trace time; arrivals are a Poisson process.
        start_ns: when the trace begins, nanoseconds since 1970, UTC.
        snaplen: longest captured length, in bytes; longer packets are truncated.
        flows: number of conversations open at the same time.
        zipf_exponent: skew of their popularity.
        stable_flows: the most popular ranks, whose conversations outlast the trace at both ends.
        churn_s: mean life of every other conversation, in seconds of trace time; those with too few
            packets for that become short connections from handshake to teardown.
        clients: number of client addresses.
        servers: number of server addresses, some far more popular than others.
        mtu_bytes: size of the largest IP packet, in bytes.
        small_share: share of data packets that are bare acknowledgements (or small datagrams).
        large_share: share of data packets that fill the MTU; the rest lies between.
        ipv6_share: share of conversations over IPv6.
        vlan_share: share of conversations with an 802.1Q tag.
        http_share: share of conversations that are HTTP on port 80, opened by a GET with a Host
            header.
        tcp_share: share of conversations that are TCP on ports without a known protocol.
        dns_share: share of conversations that are DNS lookups (none among the stable ones).
        quic_share: share of conversations that are UDP on port 443. What is left over is HTTPS.
        ping_share: share of exchanges that are an ICMP echo and its reply.
        arp_share: share of exchanges that are an ARP request and its reply.
        retransmission_rate: probability that a TCP segment with data is sent twice.

    Raises:
        UsageError: a parameter is out of range.
    """

    seed: int = 1
    packets_per_second: float = 100_000.0
    start_ns: int = 1_700_000_000_000_000_000
    snaplen: int = 96
    flows: int = 100_000
    zipf_exponent: float = 1.2
    stable_flows: int = 1_000
    churn_s: float = 10.0
    clients: int = 20_000
    servers: int = 5_000
    mtu_bytes: int = 1_500
    small_share: float = 0.35
    large_share: float = 0.40
    ipv6_share: float = 0.15
    vlan_share: float = 0.0
    http_share: float = 0.15
    tcp_share: float = 0.08
    dns_share: float = 0.12
    quic_share: float = 0.15
    ping_share: float = 0.002
    arp_share: float = 0.0005
    retransmission_rate: float = 0.005

    def __post_init__(self) -> None:
        for name in _SHARES:
            _require(0.0 <= getattr(self, name) <= 1.0, name, getattr(self, name), "0 to 1")
        services = self.http_share + self.tcp_share + self.dns_share + self.quic_share
        _require(services <= 1.0, "the sum of the services' shares", services, "at most 1")
        lengths = self.small_share + self.large_share
        _require(lengths <= 1.0, "small_share + large_share", lengths, "at most 1")
        others = self.ping_share + self.arp_share
        _require(others < 1.0, "ping_share + arp_share", others, "less than 1")
        rate = self.packets_per_second
        _require(1e-3 <= rate <= 1e7, "packets_per_second", rate, "0.001 to 1e7")
        _require(1 <= self.snaplen <= 65_535, "snaplen", self.snaplen, "1 to 65535")
        _require(576 <= self.mtu_bytes <= 9_000, "mtu_bytes", self.mtu_bytes, "576 to 9000")
        _require(1 <= self.flows <= 50_000_000, "flows", self.flows, "1 to 50,000,000")
        _require(self.stable_flows >= 0, "stable_flows", self.stable_flows, "0 and up")
        _require(0 < self.churn_s <= 1e6, "churn_s", self.churn_s, "above 0, to 1e6")
        _require(0 <= self.zipf_exponent <= 10, "zipf_exponent", self.zipf_exponent, "0 to 10")
        _require(1 <= self.clients <= 1 << 23, "clients", self.clients, "1 to 8,388,608")
        _require(1 <= self.servers <= 1 << 16, "servers", self.servers, "1 to 65,536")
        _require(self.seed >= 0, "seed", self.seed, "0 and up")
        _require(0 <= self.start_ns < 1 << 62, "start_ns", self.start_ns, "0 to 2**62")


def _require(condition: bool, name: str, value: float, allowed: str) -> None:
    if not condition:
        message = f"traffic profile: invalid {name}: expected {allowed}, got {value!r}"
        raise UsageError(message)


def file_header(profile: TrafficProfile) -> bytes:
    """Return the 24-byte header of a pcap file: little-endian, microseconds, Ethernet."""
    words = np.array([0xA1B2C3D4, 0x0004_0002, 0, 0, profile.snaplen, LINKTYPE_ETHERNET], "<u4")
    return words.tobytes()


def packet_blocks(profile: TrafficProfile, packets: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the first ``packets`` packets of a profile as pcap records, some megabytes each."""
    if packets < 0:
        message = f"invalid number of packets: expected 0 or more, got {packets!r}"
        raise UsageError(message)
    traffic = Traffic(profile)
    frames = FrameBuilder(profile, traffic.slots)
    while packets > 0:
        chunk = traffic.next_chunk()[:packets]
        packets -= chunk.size
        yield from frames.records(chunk)


def write_pcap(profile: TrafficProfile, path: Path | str, packets: int) -> int:
    """Write a capture of ``packets`` packets, and return the file's size in bytes.

    Raises:
        CaptureError: the file cannot be written.
        UsageError: ``packets`` is negative.
    """
    size = 0
    try:
        with Path(path).open("wb") as file:
            size += file.write(file_header(profile))
            for block in packet_blocks(profile, packets):
                size += file.write(block.data)
    except OSError as error:
        message = f"cannot write {path}: {os_reason(error)}"
        raise CaptureError(message) from error
    return size
