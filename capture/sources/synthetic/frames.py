"""Packets as bytes: pcap records around Ethernet, ARP, IPv4, IPv6, ICMP, TCP and UDP headers.

Headers are numpy record types laid over the columns of a matrix with one frame in each row, so that
one assignment sets a field of all frames. Checksums of IPv4, ICMP and ICMPv6 are correct; those of
TCP and UDP are not computed, because most of the payload that they would cover is beyond the snap
length and never exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.synthetic.traffic import scramble
from gscope.capture.sources.synthetic.trains import ECHO_BYTES, Content, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gscope.capture.sources.synthetic.source import TrafficProfile
    from gscope.capture.sources.synthetic.traffic import Slots

RECORD = np.dtype([("seconds", "<u4"), ("micros", "<u4"), ("caplen", "<u4"), ("wirelen", "<u4")])
ETHERNET = np.dtype([("destination", ">u2", 3), ("source", ">u2", 3), ("ethertype", ">u2")])
VLAN = np.dtype([("tag", ">u2"), ("ethertype", ">u2")])
ARP = np.dtype(
    [
        ("hardware", ">u2"),
        ("protocol", ">u2"),
        ("lengths", ">u2"),
        ("op", ">u2"),
        ("sender_mac", ">u2", 3),
        ("sender", ">u4"),
        ("target_mac", ">u2", 3),
        ("target", ">u4"),
    ]
)
IPV4 = np.dtype(
    [
        ("version_tos", ">u2"),
        ("total_length", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
    ]
)
IPV6 = np.dtype(
    [
        ("version_label", ">u4"),
        ("payload_length", ">u2"),
        ("next_header", "u1"),
        ("hop_limit", "u1"),
        ("source", ">u8", 2),
        ("destination", ">u8", 2),
    ]
)
TCP = np.dtype(
    [
        ("source", ">u2"),
        ("destination", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)
UDP = np.dtype([("source", ">u2"), ("destination", ">u2"), ("length", ">u2"), ("checksum", ">u2")])
ECHO = np.dtype([("kind", ">u2"), ("checksum", ">u2"), ("id", ">u2"), ("number", ">u2")])
TLS_RECORD = np.dtype([("kind", "u1"), ("version", ">u2"), ("length", ">u2")])
DNS = np.dtype([("id", ">u2")])

_TCP, _UDP, _ICMP, _ARP = range(4)
_PROTOCOL = np.array([_TCP, _TCP, _TCP, _UDP, _UDP, _ICMP, _ARP])
_PROTOCOL_HEADER_BYTES = np.array([TCP.itemsize, UDP.itemsize, ECHO.itemsize, ARP.itemsize])
_IP_PROTOCOL = ((6, 17, 1), (6, 17, 58))
_ECHO_KIND = ((0x0800, 0x0000), (0x8000, 0x8100))
_SERVER_PORT = np.array([443, 80, 0, 53, 443, 0, 0])
_UNKNOWN_PORTS = (27_100, 40)
_EPHEMERAL_PORTS = (32_768, 28_232)
_CLIENT_NET, _SERVER_NET = 0x0A000000, 0xC6120000
_ROUTERS = 0x0AFFFF00
_CLIENT_NET6, _SERVER_NET6 = 0x20010DB8_00000000, 0x20010DB8_00010000
_CLIENT_MAC, _SERVER_MAC = (0x0200, 0x0000, 0x0001), (0x0200, 0x0000, 0x0002)
_ETHERNET_MINIMUM_BYTES = 60

_SITE = b"00"
_QNAME = b"\x06site" + _SITE + b"\x07example\x00\x00\x01\x00\x01"
TEMPLATES = {
    Content.HTTP_REQUEST: b"GET / HTTP/1.1\r\nHost: site" + _SITE + b".example\r\n"
    b"User-Agent: synthetic/1\r\nAccept: */*\r\n\r\n",
    Content.HTTP_RESPONSE: (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    ),
    Content.DNS_QUERY: b"\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + _QNAME,
    Content.DNS_ANSWER: b"\x00\x00\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
    + _QNAME
    # A pointer to the name, type A, class IN, 300 s, and the first server's address.
    + b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x01\x2c\x00\x04\xc6\x12\x00\x01",
    Content.QUIC_PACKET: b"\x40",
}
"""The beginning of payloads of each content; text follows."""
_ROW_BYTES = 128
"""Bytes of a frame that hold all headers and all templates that must be complete."""
_SLICE_BYTES = 1 << 21
_TEXT_BYTES = 1 << 12


class FrameBuilder:
    """A builder of pcap records from packets of ``traffic.py``."""

    def __init__(self, profile: TrafficProfile, slots: Slots) -> None:
        self._slots = slots
        self._snaplen = profile.snaplen
        self._width = RECORD.itemsize + max(profile.snaplen, _ROW_BYTES)
        hashed = slots.hash
        high = scramble(hashed)
        server = (high >> np.uint64(40)).astype(np.float64) / (1 << 24)
        # The square makes low server numbers popular.
        self._server = (server * server * profile.servers).astype(np.int64) + 1
        self._client = (high % np.uint64(profile.clients)).astype(np.int64) + 1
        port = _SERVER_PORT[slots.service]
        first, count = _UNKNOWN_PORTS
        unknown = first + (hashed >> np.uint64(16)) % np.uint64(count)
        self._server_port = np.where(slots.service == Service.TCP, unknown, port).astype(np.int64)
        # Text for payloads, taken from varying positions.
        random = np.random.Generator(np.random.SFC64(profile.seed))
        letters = np.frombuffer(b"etaoin shrdlu cmfwyp\n", np.uint8)
        text = letters[random.integers(0, letters.size, _TEXT_BYTES + self._width)]
        self._text = np.lib.stride_tricks.sliding_window_view(text, self._width)

    def records(self, packets: NDArray[np.void]) -> Iterator[NDArray[np.uint8]]:
        """Yield the pcap records of ``packets``, in pieces of about two megabytes."""
        step = max(1, _SLICE_BYTES // self._width)
        for start in range(0, packets.size, step):
            yield self._build(packets[start : start + step])

    def _build(self, packets: NDArray[np.void]) -> NDArray[np.uint8]:
        slots = self._slots
        slot = packets["slot"]
        protocol = _PROTOCOL[slots.service[slot]]
        is_ip6 = slots.ipv6[slot] & (protocol != _ARP)
        tagged = slots.vlan[slot] != 0
        wirelen = ETHERNET.itemsize + _PROTOCOL_HEADER_BYTES[protocol] + packets["payload"]
        wirelen += np.where(protocol == _ARP, 0, np.where(is_ip6, IPV6.itemsize, IPV4.itemsize))
        wirelen += np.where(tagged, VLAN.itemsize, 0)
        place = (packets["seq"].astype(np.int64) + slot) % _TEXT_BYTES
        rows = self._text[place]
        rows[wirelen < _ETHERNET_MINIMUM_BYTES] = 0
        wirelen = np.maximum(wirelen, _ETHERNET_MINIMUM_BYTES)
        caplen = np.minimum(wirelen, self._snaplen)
        record = _overlay(rows, 0, RECORD)
        record["seconds"], nanos = np.divmod(packets["time_ns"], 1_000_000_000)
        record["micros"] = nanos // 1_000
        record["caplen"] = caplen
        record["wirelen"] = wirelen
        # One layout at a time: every frame of a group has the same headers at the same columns.
        layout = protocol + 4 * is_ip6 + 8 * tagged
        for code in np.unique(layout):
            member = np.flatnonzero(layout == code)
            group = rows[member]
            self._fill(group, packets[member], int(code) & 3, int(code) >> 2 & 1, code >= 8)
            rows[member] = group
        written = np.arange(self._width) < (RECORD.itemsize + caplen)[:, None]
        kept: NDArray[np.uint8] = rows[written]
        return kept

    def _fill(
        self,
        rows: NDArray[np.uint8],
        packets: NDArray[np.void],
        protocol: int,
        ip6: int,
        tagged: bool,
    ) -> None:
        down = packets["down"][:, None]
        ethernet = _overlay(rows, RECORD.itemsize, ETHERNET)
        ethernet["source"] = np.where(down, _SERVER_MAC, _CLIENT_MAC)
        ethernet["destination"] = np.where(down, _CLIENT_MAC, _SERVER_MAC)
        ethertype = 0x0806 if protocol == _ARP else (0x86DD if ip6 else 0x0800)
        column = RECORD.itemsize + ETHERNET.itemsize
        if tagged:
            ethernet["ethertype"] = 0x8100
            tag = _overlay(rows, column, VLAN)
            tag["tag"] = self._slots.vlan[packets["slot"]]
            tag["ethertype"] = ethertype
            column += VLAN.itemsize
        else:
            ethernet["ethertype"] = ethertype
        if protocol == _ARP:
            self._fill_arp(_overlay(rows, column, ARP), packets)
            return
        length = int(_PROTOCOL_HEADER_BYTES[protocol]) + packets["payload"]
        fill_ip = self._fill_ipv6 if ip6 else self._fill_ipv4
        network = fill_ip(rows, column, packets, _IP_PROTOCOL[ip6][protocol], length)
        column += IPV6.itemsize if ip6 else IPV4.itemsize
        if protocol == _ICMP:
            self._fill_echo(rows, column, packets, ip6, network)
            return
        source, destination = self._ports(packets)
        header = _overlay(rows, column, TCP if protocol == _TCP else UDP)
        header["source"] = source
        header["destination"] = destination
        if protocol == _TCP:
            _fill_tcp(header, packets)
        else:
            header["length"] = length
            # RFC 8200 forbids 0 over IPv6; 0xffff replaces it, because the covered bytes do not
            # exist.
            header["checksum"] = 0xFFFF if ip6 else 0
        self._fill_content(rows, column + header.dtype.itemsize, packets)

    def _fill_arp(self, arp: NDArray[np.void], packets: NDArray[np.void]) -> None:
        slot, down = packets["slot"], packets["down"]
        client, server = _CLIENT_NET + self._client[slot], _ROUTERS + self._server[slot] % 16
        arp["hardware"] = 1
        arp["protocol"] = 0x0800
        arp["lengths"] = 0x0604
        arp["op"] = np.where(down, 2, 1)
        arp["sender_mac"] = np.where(down[:, None], _SERVER_MAC, _CLIENT_MAC)
        arp["sender"] = np.where(down, server, client)
        arp["target_mac"] = np.where(down[:, None], _CLIENT_MAC, 0)
        arp["target"] = np.where(down, client, server)

    def _fill_ipv4(
        self,
        rows: NDArray[np.uint8],
        column: int,
        packets: NDArray[np.void],
        protocol: int,
        length: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Fill the header, and return 0, the sum over a pseudo header, which ICMP lacks."""
        slot, down = packets["slot"], packets["down"]
        client, server = _CLIENT_NET + self._client[slot], _SERVER_NET + self._server[slot]
        header = _overlay(rows, column, IPV4)
        header["version_tos"] = 0x4500
        header["total_length"] = length + IPV4.itemsize
        header["id"] = (packets["seq"] ^ packets["exchange"]) & 0xFFFF
        header["fragment"] = 0x4000
        header["ttl"] = np.where(down, 57, 64)
        header["protocol"] = protocol
        header["checksum"] = 0
        header["source"] = np.where(down, server, client)
        header["destination"] = np.where(down, client, server)
        header["checksum"] = _checksum(_word_sum(rows, column, IPV4.itemsize))
        return np.zeros(packets.size, np.int64)

    def _fill_ipv6(
        self,
        rows: NDArray[np.uint8],
        column: int,
        packets: NDArray[np.void],
        protocol: int,
        length: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Fill the header, and return the sum over ICMPv6's pseudo header (RFC 8200, 8.1)."""
        slot, down = packets["slot"], packets["down"][:, None]
        hashed = self._slots.hash[slot]
        client = np.stack([np.full_like(hashed, _CLIENT_NET6), self._client[slot]], axis=1)
        server = np.stack([np.full_like(hashed, _SERVER_NET6), self._server[slot]], axis=1)
        header = _overlay(rows, column, IPV6)
        header["version_label"] = 0x6000_0000 | (hashed & np.uint64(0xFFFFF))
        header["payload_length"] = length
        header["next_header"] = protocol
        header["hop_limit"] = np.where(packets["down"], 57, 64)
        header["source"] = np.where(down, server, client)
        header["destination"] = np.where(down, client, server)
        return _word_sum(rows, column + 8, 32) + length + protocol

    def _fill_echo(
        self,
        rows: NDArray[np.uint8],
        column: int,
        packets: NDArray[np.void],
        ip6: int,
        pseudo: NDArray[np.int64],
    ) -> None:
        request, reply = _ECHO_KIND[ip6]
        echo = _overlay(rows, column, ECHO)
        echo["kind"] = np.where(packets["down"], reply, request)
        echo["checksum"] = 0
        echo["id"] = self._slots.hash[packets["slot"]] & np.uint64(0xFFFF)
        echo["number"] = packets["exchange"]
        # A reply must carry the bytes of its request.
        rows[:, column + ECHO.itemsize :] = self._text[0, : self._width - column - ECHO.itemsize]
        total = pseudo + _word_sum(rows, column, ECHO.itemsize + ECHO_BYTES)
        echo["checksum"] = _checksum(total)

    def _ports(self, packets: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        slot = packets["slot"]
        first, count = _EPHEMERAL_PORTS
        start = (self._slots.hash[slot] >> np.uint64(20)).astype(np.int64)
        # An odd step through the range, so that ports of a slot repeat only after many
        # conversations.
        client = first + (start + packets["conversation"] * np.int64(7_919)) % count
        server = self._server_port[slot]
        down = packets["down"]
        return np.where(down, server, client), np.where(down, client, server)

    def _fill_content(
        self, rows: NDArray[np.uint8], column: int, packets: NDArray[np.void]
    ) -> None:
        for content in np.unique(packets["content"]):
            chosen = np.flatnonzero((packets["content"] == content) & (packets["payload"] > 0))
            if content == Content.TLS_RECORD:
                header = _overlay(rows, column, TLS_RECORD)
                header["kind"][chosen] = 0x17
                header["version"][chosen] = 0x0303
                header["length"][chosen] = packets["payload"][chosen] - TLS_RECORD.itemsize
            elif content in TEMPLATES:
                self._fill_template(rows, column, packets, Content(content), chosen)

    def _fill_template(
        self,
        rows: NDArray[np.uint8],
        column: int,
        packets: NDArray[np.void],
        content: Content,
        chosen: NDArray[np.int64],
    ) -> None:
        template = np.frombuffer(TEMPLATES[content][: self._width - column], np.uint8)
        rows[chosen, column : column + template.size] = template
        site = TEMPLATES[content].find(b"site" + _SITE)
        if site >= 0:
            number = packets["slot"][chosen] % 100
            rows[chosen, column + site + 4] = 0x30 + number // 10
            rows[chosen, column + site + 5] = 0x30 + number % 10
        if content in (Content.DNS_QUERY, Content.DNS_ANSWER):
            number = packets["slot"][chosen] + packets["exchange"][chosen]
            _overlay(rows, column, DNS)["id"][chosen] = number & 0xFFFF


def _fill_tcp(header: NDArray[np.void], packets: NDArray[np.void]) -> None:
    header["seq"] = packets["seq"]
    header["ack"] = packets["ack"]
    header["offset"] = TCP.itemsize // 4 << 4
    header["flags"] = packets["flags"]
    header["window"] = 0xFFFF
    header["checksum"] = 0
    header["urgent"] = 0


def _overlay(rows: NDArray[np.uint8], column: int, layout: np.dtype[np.void]) -> NDArray[np.void]:
    """Return a view of the header at ``column`` of every row."""
    if column + layout.itemsize > rows.shape[1]:
        message = f"a header ends at {column + layout.itemsize}, beyond the row's {rows.shape[1]}"
        raise ValueError(message)
    return np.ndarray(rows.shape[0], layout, rows.data, column, (rows.strides[0],))


def _word_sum(rows: NDArray[np.uint8], column: int, length: int) -> NDArray[np.int64]:
    """Return the sum of the 16-bit big-endian words of ``length`` bytes of every row."""
    high = rows[:, column : column + length : 2].sum(axis=1, dtype=np.int64)
    low = rows[:, column + 1 : column + length : 2].sum(axis=1, dtype=np.int64)
    total: NDArray[np.int64] = (high << 8) + low
    return total


def _checksum(total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Internet checksum (RFC 1071) of words that add up to ``total``."""
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
