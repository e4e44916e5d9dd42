"""DuckDB over what tshark reads from the capture: the tables that the oracle's queries name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from tests.library import tshark

if TYPE_CHECKING:
    from pathlib import Path

    from tests.library.tshark import Packet

MORE_FIELDS = (
    *("frame.cap_len", "eth.type", "vlan.etype", "ipv6.hlim", "icmp.code", "icmpv6.code"),
    *("udp.length", "arp.opcode", "http.request.uri", "http.response.code", "tls.record.version"),
)
"""Fields that the oracles of the library do not need."""

VIEWS = {
    "pkt": "true",
    "ip": "version > 0",
    "tcp": "proto = 6 AND flags IS NOT NULL",
    "udp": "proto = 17",
    "icmp": "icmp_type IS NOT NULL",
    "arp": "arp_op IS NOT NULL",
    "dns": "dns_id IS NOT NULL",
    "http": "http_method IS NOT NULL OR http_status IS NOT NULL",
}
"""Tables by name, and the packets that each of them has."""

MACROS = (
    "shown_ns(ns) AS strftime(make_timestamp(ns // 1000000000 * 1000000), '%Y-%m-%d %H:%M:%S')"
    " || '.' || lpad(CAST(ns % 1000000000 AS VARCHAR), 9, '0') || 'Z'",
    "shown(t) AS shown_ns(t * 1000000000)",
)
"""Times as gscope writes them."""


def open_oracle(capture: Path) -> duckdb.DuckDBPyConnection:
    """Return a database with one row for each packet of ``capture``."""
    database = duckdb.connect()
    database.register("packets", packet_table(capture))
    for name, condition in VIEWS.items():
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM packets WHERE {condition}")
    for macro in MACROS:
        database.execute(f"CREATE MACRO {macro}")
    return database


def packet_table(capture: Path) -> pa.Table:
    """Return a table with one row for each packet of ``capture``."""
    return pa.Table.from_pylist([_row(packet) for packet in tshark.read(capture, MORE_FIELDS)])


def _row(packet: Packet) -> dict[str, int | str | bool | None]:
    def number(*names: str) -> int | None:
        texts = [text for name in names if (text := packet.text(name)) is not None]
        truths = {"True": 1, "False": 0}
        return None if not texts else truths.get(texts[0]) or int(_plain(texts[0]), 0)

    is_ip = packet.version > 0
    is_tcp = packet.is_tcp
    is_icmp = packet.has("icmp", 1) or packet.has("icmpv6", 58)
    return {
        "t": packet.time,
        "ns": packet.time_ns,
        "len": packet.len,
        "caplen": number("frame.cap_len"),
        "smac": packet.text("eth.src"),
        "dmac": packet.text("eth.dst"),
        "ethertype": number("vlan.etype", "eth.type"),
        "vlan": number("vlan.id"),
        "version": packet.version,
        "src": packet.source if is_ip else None,
        "dst": packet.target if is_ip else None,
        "proto": packet.protocol if is_ip else None,
        "ttl": number("ip.ttl", "ipv6.hlim") if is_ip else None,
        "mf": packet.number_of("ip.flags.mf") == 1,
        "frag": packet.number_of("ip.frag_offset"),
        "sport": packet.ports[0] if is_ip else None,
        "dport": packet.ports[1] if is_ip else None,
        "seq": number("tcp.seq_raw") if is_tcp else None,
        "flags": packet.flags if is_tcp else None,
        "win": number("tcp.window_size_value") if is_tcp else None,
        "ack": number("tcp.ack_raw") if is_tcp else None,
        "tcplen": number("tcp.len") if is_tcp else None,
        "udplen": number("udp.length") if packet.is_udp else None,
        "icmp_type": number("icmp.type", "icmpv6.type") if is_icmp else None,
        "icmp_code": number("icmp.code", "icmpv6.code") if is_icmp else None,
        "arp_op": number("arp.opcode"),
        "arp_ip": packet.text("arp.src.proto_ipv4"),
        "arp_mac": packet.text("arp.src.hw_mac"),
        "dns_id": number("dns.id"),
        "dns_name": packet.text("dns.qry.name"),
        "dns_type": number("dns.qry.type"),
        "dns_rcode": number("dns.flags.rcode"),
        "dns_response": packet.number_of("dns.flags.response") == 1,
        "http_method": packet.text("http.request.method"),
        "http_host": packet.text("http.host"),
        "http_uri": (packet.text("http.request.uri") or "").partition("?")[0] or None,
        "http_status": packet.text("http.response.code"),
        "sni": packet.text("tls.handshake.extensions_server_name"),
    }


def _plain(text: str) -> str:
    """Return a number without zeros before it, which Python takes for an octal one."""
    return text if text.startswith("0x") else text.lstrip("0") or "0"
