"""The golden queries once more, each as a plain function from all packets to its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from tests.reference.aggregates import EVERY, every_aggregate
from tests.reference.reference import (
    Aggregate,
    average,
    distinct,
    duplicates,
    folded,
    greatest,
    group,
    least,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.reference import Address, Packet

COUNT = Aggregate(len)


@dataclass(frozen=True, slots=True)
class Reference:
    """One result of a golden case: its columns, and what its rows are."""

    columns: tuple[str, ...]
    rows: Callable[[list[Packet]], list[Packet]]


def get(name: str) -> Callable[[Packet], Any]:
    """The field called ``name``, None where a packet has none."""
    return lambda packet: packet.get(name)


def every(seconds: int) -> Callable[[Packet], Any]:
    """The period of this length, in seconds, that a packet falls into."""
    return lambda packet: packet["time"] // seconds


def of(function: Callable[[list[Any]], Any], name: str) -> Aggregate:
    """An aggregate of one field."""
    return Aggregate(function, get(name))


def by(*names: str) -> dict[str, Callable[[Packet], Any]]:
    """Plain fields as keys."""
    return {name: get(name) for name in names}


def ip(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if "ipversion" in packet]


def tcp(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if packet.get("protocol") == 6]


def udp(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if packet.get("protocol") == 17]


def per_source(packets: list[Packet]) -> list[Packet]:
    return group(tcp(packets), {"tb": every(60), **by("srcIP")}, {"cnt": COUNT})


FIVE = ("protocol", "srcIP", "destIP", "srcPort", "destPort")
FOUR = FIVE[1:]


def flow(packets: list[Packet]) -> list[Packet]:
    return group(ip(packets), {"tb": every(10), **by(*FIVE)}, {"cnt": COUNT})


def interfaces(packets: list[Packet]) -> list[Packet]:
    return group(
        ip(packets),
        {"tb": every(30), **by("interface", "ipversion", "protocol")},
        {"packets": COUNT, "bytes": of(total, "len"), "longest": of(greatest, "caplen")},
    )


def tcp_flows(packets: list[Packet]) -> list[Packet]:
    return group(
        tcp(packets), {"tb": every(60), **by(*FOUR)}, {"cnt": COUNT, "sum_len": of(total, "len")}
    )


def flow_cnt(packets: list[Packet]) -> list[Packet]:
    return group(tcp_flows(packets), by("tb", "srcIP", "destIP"), {"cnt": COUNT})


def max_dups(packets: list[Packet]) -> list[Packet]:
    flows = group(
        tcp(packets),
        {"tb": every(60), **by(*FOUR)},
        {"dup_cnt": of(duplicates, "sequence_number")},
    )
    return group(flows, by("tb", "srcIP", "destIP"), {"max_dup_cnt": of(greatest, "dup_cnt")})


def dup_ratio(packets: list[Packet]) -> list[Packet]:
    flows = group(
        tcp(packets),
        {"tb": every(60), **by(*FOUR)},
        {"dups": of(duplicates, "sequence_number"), "all": COUNT},
    )
    sums = group(flows, by("tb"), {"dups": of(total, "dups"), "all": of(total, "all")})
    return [{"tb": row["tb"], "ratio": row["dups"] / row["all"]} for row in sums]


def heaviest(packets: list[Packet]) -> list[Packet]:
    flows = group(tcp(packets), {"tb": every(10), **by("srcIP", "destIP")}, {"cnt": COUNT})
    heavy = group(flows, by("tb", "srcIP"), {"max_cnt": of(greatest, "cnt")})
    return group(
        heavy,
        {"minute": lambda row: row["tb"] // 6},
        {
            "most": of(greatest, "max_cnt"),
            "all_of_them": of(total, "max_cnt"),
            "sources": COUNT,
        },
    )


def block_of_16(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return IPv4Address(int(address) & 0xFFFFFFF0)
    low = int(address) & 0xFFFFFFF0
    return IPv6Address(int(address) >> 32 << 32 | low)


def subnets(packets: list[Packet]) -> list[Packet]:
    return group(
        ip(packets),
        {
            "tb": every(60),
            "subnet": lambda packet: block_of_16(packet["srcIP"]),
            **by("destIP"),
        },
        {"packets": COUNT, "bytes": of(total, "len")},
    )


def suspicious(packets: list[Packet]) -> list[Packet]:
    groups = group(
        tcp(packets),
        {"tb": every(1), **by(*FOUR)},
        {"orflag": of(folded(or_), "flags"), "cnt": COUNT, "sum_len": of(total, "len")},
    )
    return [row for row in groups if row["orflag"] == 26]


def all_syn_count(packets: list[Packet]) -> list[Packet]:
    opening = [p for p in tcp(packets) if p.get("SYN") == 1 and p.get("ACK") == 0]
    return group(opening, {"tb": every(60)}, {"cnt": COUNT, "first_seen": of(least, "timestamp")})


_HOST = re.compile(rb"[Hh][Oo][Ss][Tt]:[0-9A-Z.: ]*")


def hostnames(packets: list[Packet]) -> list[Packet]:
    rows = []
    for packet in tcp(packets):
        data = packet.get("TCP_data", b"")
        if packet["ipversion"] == 4 and packet["offset"] == 0 and data.startswith(b"GET"):
            match = _HOST.search(data)
            row = {"tb": packet["time"] // 60, **packet}
            rows.append(row | {"hostheader": match.group() if match else None})
    return rows


def selection(packets: list[Packet]) -> list[Packet]:
    return [
        packet | {"cut": packet["len"] - packet["caplen"]}
        for packet in tcp(packets)
        if packet.get("SYN") == 1 and packet["window"] > 1000 and 1 <= packet["destPort"] <= 1024
    ]


def merged_selection(packets: list[Packet]) -> list[Packet]:
    return [
        packet
        for packet in udp(packets)
        if packet["destPort"] in (53, 443, 5353) or 1 <= packet.get("data_length", 0) <= 20
    ]


def both(packets: list[Packet]) -> list[Packet]:
    left = [p for p in tcp(packets) if p["interface"] == "left" and p["len"] > 60]
    right = [p for p in udp(packets) if p["interface"] == "right"]
    return left + [packet | {"srcIP": packet["destIP"]} for packet in right]


def merged_sizes(packets: list[Packet]) -> list[Packet]:
    return group(both(packets), {"tb": every(5)}, {"packets": COUNT, "bytes": of(total, "len")})


def statistics(packets: list[Packet]) -> list[Packet]:
    groups = group(
        ip(packets),
        {"tb": every(20), **by("protocol")},
        {
            "cnt": COUNT,
            "ids": of(len, "id"),
            "peers": of(distinct, "destIP"),
            "different_ids": of(distinct, "id"),
            "repeated_ids": of(duplicates, "id"),
            "mean_len": of(average, "len"),
            "mean_id": of(average, "id"),
            "first_ip": of(least, "srcIP"),
            "last_ip": of(greatest, "destIP"),
            "least_id": of(least, "id"),
            "vlan": of(greatest, "vlan"),
            "vlans": of(total, "vlan"),
            "mixed": of(folded(xor), "id"),
            "common_ttl": of(folded(and_), "ttl"),
            "any_tos": of(folded(or_), "tos"),
            "first_seen": of(least, "timestamp"),
            "last_seen": of(greatest, "timestamp"),
            "sum_len": of(total, "len"),
            "min_len": of(least, "len"),
            "max_len": of(greatest, "len"),
            "sum_ttl": of(total, "ttl"),
        },
    )
    return [
        row
        | {
            "rest": (row["sum_len"] - row["min_len"]) / row["cnt"],
            "seventh": row["max_len"] // 7,
            "eleven": row["sum_ttl"] % 11,
        }
        for row in groups
        if row["cnt"] > 1 and not row["max_len"] < 60
    ]


def tunnels(packets: list[Packet]) -> list[Packet]:
    inside = [packet | {"inner": packet.get("inner", {})} for packet in ip(packets)]
    return group(
        inside,
        {
            "tb": every(60),
            **by("srcIP", "protocol"),
            "inside": lambda packet: packet["inner"].get("srcIP"),
            "target": lambda packet: packet["inner"].get("destIP"),
            "carried": lambda packet: packet["inner"].get("protocol"),
            "port": lambda packet: packet["inner"].get("destPort"),
        },
        {
            "packets": COUNT,
            "bytes": Aggregate(total, lambda packet: packet["inner"].get("total_length")),
        },
    )


def own_protocol(packets: list[Packet]) -> list[Packet]:
    web = [
        packet
        | {
            "client_port": packet["srcPort"] if packet["destPort"] == 80 else packet["destPort"],
            "is_request": "true" if packet["destPort"] == 80 else "false",
            "kilobytes": packet["len"] / 1000,
        }
        for packet in tcp(packets)
        if 80 in (packet["srcPort"], packet["destPort"])
    ]
    return group(
        web,
        {"tb": every(60), **by("is_request")},
        {
            "packets": COUNT,
            "clients": of(distinct, "client_port"),
            "largest": of(greatest, "kilobytes"),
        },
    )


def size_class(packet: Packet) -> str:
    if packet["len"] > 1000:
        return "large"
    return "medium" if packet["len"] >= 100 else "small"


def sizes(packets: list[Packet]) -> list[Packet]:
    wanted = [
        packet
        for packet in ip(packets)
        if packet["protocol"] in (6, 17) and 443 not in (packet["destPort"], packet["srcPort"])
    ]
    groups = group(
        wanted,
        {"tb": every(60), "size": size_class},
        {
            "packets": COUNT,
            "longest": of(greatest, "len"),
            "shortest": of(least, "len"),
            "mean": of(average, "len"),
        },
    )
    return [
        row | {"spread": row["longest"] - row["shortest"], "doubled": row["mean"] * 2}
        for row in groups
        if row["packets"] > 1
    ]


def download(packets: list[Packet]) -> list[Packet]:
    kept, farthest = [], -1
    for packet in tcp(packets):
        if (packet["srcIP"], packet["srcPort"], packet["destPort"]) != (
            IPv4Address("192.168.2.110"),
            6900,
            51559,
        ):
            continue
        if packet["sequence_number"] >= farthest - 300:
            farthest = max(farthest, packet["sequence_number"])
            kept.append(packet)
    return group(
        kept,
        {"part": lambda packet: packet["sequence_number"] // 2000},
        {"packets": COUNT, "bytes": of(total, "len"), "since": of(least, "time")},
    )


def periods(packets: list[Packet]) -> list[Packet]:
    return group(ip(packets), {"ten": every(10), "quarter": every(15)}, {"packets": COUNT})


def quarters(packets: list[Packet]) -> list[Packet]:
    aggregates = {"parts": COUNT, "packets": of(total, "packets")}
    return group(periods(packets), by("quarter"), aggregates)


def falling(packets: list[Packet]) -> list[Packet]:
    return group(
        ip(packets),
        {"tb": every(10), "decade": lambda packet: -(packet["time"] // 10)},
        {"packets": COUNT, "longest": of(greatest, "len")},
    )


def distinct_groups(packets: list[Packet]) -> list[Packet]:
    groups = group(
        ip(packets),
        {"tb": every(10), **by("protocol", "srcIP")},
        {"packets": COUNT, "longest": of(greatest, "len")},
    )
    large = [row | {"pair": row["tb"] // 2} for row in groups if row["longest"] > 70]
    return group(large, by("pair", "protocol", "packets"), {})


REFERENCES: dict[str, dict[str, Reference]] = {
    "orders": {
        "download": Reference(("part", "packets", "bytes", "since"), download),
        "quarters": Reference(("quarter", "parts", "packets"), quarters),
        "falling": Reference(("tb", "decade", "packets", "longest"), falling),
    },
    "per_source": {"per_source": Reference(("tb", "srcIP", "cnt"), per_source)},
    "flow": {"flow": Reference(("tb", *FIVE, "cnt"), flow)},
    "interfaces": {
        "interfaces": Reference(
            ("tb", "interface", "ipversion", "protocol", "packets", "bytes", "longest"), interfaces
        )
    },
    "tcp_flows": {
        "tcp_flows": Reference(("tb", *FOUR, "cnt", "sum_len"), tcp_flows),
        "flow_cnt": Reference(("tb", "srcIP", "destIP", "cnt"), flow_cnt),
    },
    "max_dups": {"max_dups": Reference(("tb", "srcIP", "destIP", "max_dup_cnt"), max_dups)},
    "dup_ratio": {"dup_ratio": Reference(("tb", "ratio"), dup_ratio)},
    "heaviest": {"heaviest": Reference(("minute", "most", "all_of_them", "sources"), heaviest)},
    "subnets": {"subnets": Reference(("tb", "subnet", "destIP", "packets", "bytes"), subnets)},
    "suspicious": {"suspicious": Reference(("tb", *FOUR, "orflag", "cnt", "sum_len"), suspicious)},
    "all_syn_count": {"all_syn_count": Reference(("tb", "cnt", "first_seen"), all_syn_count)},
    "hostnames": {"hostnames": Reference(("tb", "destIP", "destPort", "hostheader"), hostnames)},
    "selection": {"selection": Reference(("time", "timestamp", *FOUR, "cut", "window"), selection)},
    "merged_selection": {
        "merged_selection": Reference(
            ("time", "interface", "srcIP", "destIP", "destPort", "data_length"), merged_selection
        )
    },
    "merge": {
        "both": Reference(("time", "srcIP", "len"), both),
        "sizes": Reference(("tb", "packets", "bytes"), merged_sizes),
    },
    "statistics": {
        "statistics": Reference(
            (
                *("tb", "protocol", "cnt", "ids", "peers", "different_ids", "repeated_ids"),
                *("mean_len", "mean_id", "first_ip", "last_ip", "least_id", "vlan", "vlans"),
                *("mixed", "common_ttl", "any_tos", "first_seen", "last_seen"),
                *("rest", "seventh", "eleven"),
            ),
            statistics,
        )
    },
    "tunnels": {
        "tunnels": Reference(
            (
                *("tb", "srcIP", "protocol", "inside", "target", "carried", "port"),
                *("packets", "bytes"),
            ),
            tunnels,
        )
    },
    "own_protocol": {
        "own_protocol": Reference(
            ("tb", "is_request", "packets", "clients", "largest"), own_protocol
        )
    },
    "distinct_groups": {
        "distinct_groups": Reference(("pair", "protocol", "packets"), distinct_groups)
    },
    "all_aggregates": {
        "low": Reference(EVERY, every_aggregate),
        "high": Reference(
            (*EVERY, "changes", "id_changes", "time_spread", "first_target"), every_aggregate
        ),
    },
    "sizes": {"sizes": Reference(("tb", "size", "packets", "spread", "doubled"), sizes)},
}
"""For each golden case its results by query name."""
