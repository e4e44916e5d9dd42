"""What tshark reads from a capture, packet by packet: the facts that oracles compute with.

The outermost IP header and what is directly above it count, as in GSQL; tshark lists the fields of
inner headers behind those of outer ones. Nothing is reassembled.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NEXT = {
    0: "ipv6.hopopts.nxt",
    43: "ipv6.routing.nxt",
    44: "ipv6.fraghdr.nxt",
    60: "ipv6.dstopts.nxt",
}
"""The extension headers of IPv6 that are walked, and where each names the next one."""

FIELDS = (
    *(
        "frame.time_epoch",
        "frame.len",
        "frame.protocols",
        "eth.src",
        "eth.dst",
        "wlan.da",
        "vlan.id",
    ),
    *("ip.src", "ip.dst", "ip.proto", "ip.ttl", "ip.id", "ip.flags.mf", "ip.frag_offset"),
    *(
        "ip.dsfield.ecn",
        "ip.dsfield.dscp",
        "ipv6.tclass.dscp",
        "ipv6.src",
        "ipv6.dst",
        "ipv6.hlim",
        "ipv6.nxt",
        "ipv6.tclass.ecn",
        *_NEXT.values(),
    ),
    *("ipv6.fraghdr.offset", "ipv6.fraghdr.more", "sctp.srcport", "sctp.dstport"),
    *("tcp.srcport", "tcp.dstport", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.len"),
    *("tcp.window_size_value", "udp.srcport", "udp.dstport", "icmp.type", "icmpv6.type"),
    *("arp.src.hw", "arp.src.hw_mac", "arp.src.proto_ipv4", "dhcp.type", "dhcp.hw.mac_addr"),
    *("dns.id", "dns.qry.name", "dns.qry.type", "dns.flags.response", "dns.flags.rcode"),
    *("dns.flags.opcode", "dns.flags.authoritative", "dns.flags.truncated", "dns.qry.class"),
    *("dns.count.answers", "dns.a", "dns.aaaa", "dns.time"),
    *("http.request.method", "http.host", "tls.handshake.extensions_server_name"),
)

SETTINGS = (
    *("ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"),
    # with the analysis of sequence numbers, what is sent again would not be dissected again
    *("tcp.analyze_sequence_numbers:FALSE", "tcp.relative_sequence_numbers:FALSE"),
    *("http.desegment_headers:FALSE", "tcp.try_heuristic_first:TRUE"),
    *("dns.retransmission_timer:60", "http.desegment_body:FALSE"),
    "tls.desegment_ssl_records:FALSE",
)


@dataclass(frozen=True, eq=False)
class Packet:
    """A packet as tshark shows it.

    Attributes:
        number: of the frame, from 1.
        fields: the texts of each field, outermost first, without fields that it does not have.
    """

    number: int
    fields: dict[str, list[str]]

    def text(self, name: str) -> str | None:
        """Return the first value of a field, None if the packet has none."""
        return self.fields.get(name, [None])[0]

    def number_of(self, name: str) -> int:
        """Return the first value of a field as a number, 0 if the packet has none."""
        text = self.text(name) or "0"
        return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text, 0)

    @cached_property
    def layers(self) -> list[str]:
        """The layers from the outermost IP header on, without extension headers of IPv6."""
        names = (self.text("frame.protocols") or "").split(":")
        start = next((n for n, name in enumerate(names) if name in ("ip", "ipv6")), len(names))
        return [name for name in names[start:] if not name.startswith("ipv6.")]

    @cached_property
    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        seconds, _, fraction = (self.text("frame.time_epoch") or "").partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))

    @cached_property
    def time(self) -> int:
        """Seconds since 1970."""
        return self.time_ns // 10**9

    @property
    def minute(self) -> int:
        """Minutes since 1970."""
        return self.time // 60

    @cached_property
    def len(self) -> int:
        """Bytes on the wire."""
        return self.number_of("frame.len")

    @cached_property
    def version(self) -> int:
        """4 or 6; 0 without an IP header whose addresses can be read."""
        if self.layers[:1] == ["ip"]:
            return 4 if self.text("ip.src") else 0
        return 6 if self.layers[:1] == ["ipv6"] and self.text("ipv6.src") else 0

    @cached_property
    def source(self) -> str:
        """The sender's IP address."""
        return self.text("ip.src" if self.version == 4 else "ipv6.src") or ""

    @cached_property
    def target(self) -> str:
        """The receiver's IP address."""
        return self.text("ip.dst" if self.version == 4 else "ipv6.dst") or ""

    @cached_property
    def protocol(self) -> int:
        """The IP protocol, of IPv6 the one behind extension headers."""
        if self.version == 4:
            return self.number_of("ip.proto")
        following, seen = self.number_of("ipv6.nxt"), 0
        while following in _NEXT and self.text(_NEXT[following]) and seen < len(_NEXT):
            following, seen = self.number_of(_NEXT[following]), seen + 1
        return following

    @property
    def is_later_fragment(self) -> bool:
        """Whether it does not begin with the transport header."""
        name = "ip.frag_offset" if self.version == 4 else "ipv6.fraghdr.offset"
        return self.number_of(name) > 0

    def has(self, layer: str, protocol: int) -> bool:
        """Return whether ``layer`` is what the outermost IP header carries."""
        return bool(self.version) and self.protocol == protocol and self.layers[1:2] == [layer]

    @cached_property
    def is_tcp(self) -> bool:
        """Whether it begins with a TCP header that tshark reads as far as the flags."""
        return self.has("tcp", 6) and self.text("tcp.flags") is not None

    @cached_property
    def is_udp(self) -> bool:
        """Whether it begins with a UDP header."""
        return self.has("udp", 17)

    @cached_property
    def ports(self) -> tuple[int, int]:
        """Source and target; 0 where there are none."""
        for layer, number in (("tcp", 6), ("udp", 17), ("sctp", 132)):
            if self.has(layer, number):
                return self.number_of(f"{layer}.srcport"), self.number_of(f"{layer}.dstport")
        return 0, 0

    @property
    def flow(self) -> tuple[str, int, str, int]:
        """Source, its port, target, its port."""
        return self.source, self.ports[0], self.target, self.ports[1]

    @property
    def way_back(self) -> tuple[str, int, str, int]:
        """The flow of the other direction."""
        return self.target, self.ports[1], self.source, self.ports[0]

    @property
    def flags(self) -> int:
        """The flags of TCP."""
        return self.number_of("tcp.flags") & 0xFF

    def flag(self, letter: str) -> bool:
        """Return whether the flag of TCP with this initial is set."""
        return bool(self.flags >> "FSRPAUEC".index(letter) & 1)


def read(path: Path, more: Sequence[str] = ()) -> list[Packet]:
    """Return every packet of ``path``, with ``FIELDS`` and ``more`` fields."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=a"]
    command += ["-E", "separator=/t", "-E", "aggregator=|"]
    for setting in SETTINGS:
        command += ["-o", setting]
    for field in (*FIELDS, *more):
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace")
    names = (*FIELDS, *more)
    lines = enumerate(done.stdout.splitlines(), 1)
    return [_packet(n, line.split("\t"), names) for n, line in lines]


def _packet(number: int, values: Sequence[str], names: Sequence[str]) -> Packet:
    assert len(values) == len(names), f"tshark shows {len(values)} fields in line {number}"
    shown = zip(names, values, strict=True)
    return Packet(number, {name: value.split("|") for name, value in shown if value})
