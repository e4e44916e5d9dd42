"""The published queries over several streams once more, as nested loops over all packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.queries import (
    COUNT,
    FIVE,
    FOUR,
    Reference,
    by,
    every,
    hostnames,
    ip,
    of,
    tcp,
)
from tests.reference.reference import duplicates, greatest, group, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.reference import Packet


def pairs(
    left: list[Packet], right: list[Packet], matches: Callable[[Packet, Packet], bool]
) -> list[tuple[Packet, Packet]]:
    """All pairs that match."""
    return [(a, b) for a in left for b in right if matches(a, b)]


def same(a: Packet, b: Packet, *names: str) -> bool:
    """Whether two rows agree in columns that both have."""
    return all(a.get(name) is not None and a.get(name) == b.get(name) for name in names)


def on(packets: list[Packet], *interfaces: str) -> list[Packet]:
    """The packets of some interfaces."""
    return [packet for packet in packets if packet["interface"] in interfaces]


def union_filtered(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in ip(packets) if packet["time_ns"] // 1000 % 20]


def pair_len(packets: list[Packet]) -> list[Packet]:
    found = pairs(ip(packets), ip(packets), lambda a, b: same(a, b, "time", "srcIP", "destIP"))
    return [a | {"both": a["len"] + b["len"]} for a, b in found]


def syn(packets: list[Packet], acknowledges: int) -> list[Packet]:
    return [
        packet | {"tb": packet["time"] // 60}
        for packet in tcp(packets)
        if packet.get("SYN") == 1 and packet["ACK"] == acknowledges
    ]


def handshakes(packets: list[Packet]) -> list[tuple[Packet, Packet]]:
    return pairs(
        syn(packets, 0),
        syn(packets, 1),
        lambda s, a: (
            (s["srcIP"], s["destIP"], s["srcPort"], s["destPort"], s["tb"])
            == (a["destIP"], a["srcIP"], a["destPort"], a["srcPort"], a["tb"])
            and s["time_ns"] <= a["time_ns"]
            and s["sequence_number"] + 1 == a["ack_number"]
        ),
    )


def syn_ack_delay(packets: list[Packet]) -> list[Packet]:
    return [s | {"rtt": (a["time_ns"] - s["time_ns"]) / 1e6} for s, a in handshakes(packets)]


def matched_syn_count(packets: list[Packet]) -> list[Packet]:
    return group([s for s, _ in handshakes(packets)], by("tb"), {"cnt": COUNT})


def all_syn_count(packets: list[Packet]) -> list[Packet]:
    return group(syn(packets, 0), by("tb"), {"cnt": COUNT})


def matched_syn_ratio(packets: list[Packet]) -> list[Packet]:
    matched = {row["tb"]: row["cnt"] for row in matched_syn_count(packets)}
    attempts = {row["tb"]: row["cnt"] for row in all_syn_count(packets)}
    return [
        {"tb": tb, "ratio": matched[tb] / attempts[tb] if tb in matched else None}
        for tb in attempts
    ]


def counted_flows(packets: list[Packet]) -> dict[tuple[object, ...], Packet]:
    rows = group(ip(packets), {"tb": every(10), **by(*FIVE)}, {"cnt": COUNT})
    return {tuple(row[name] for name in ("tb", *FIVE)): row for row in rows}


def full_flow(packets: list[Packet]) -> list[Packet]:
    first = counted_flows(on(packets, "main0", "control"))
    second = counted_flows(on(packets, "main1"))
    rows = []
    for key in {**first, **second}:
        present = first.get(key) or second[key]
        counts = [side[key]["cnt"] if key in side else None for side in (first, second)]
        rows.append(present | dict(zip(("cnt", "cnt_2"), counts, strict=True)))
    return rows


def jitter(packets: list[Packet]) -> list[Packet]:
    rows = [packet | {"tb": packet["time"] // 60} for packet in tcp(packets)]
    rows = [row for row in rows if "sequence_number" in row]
    found = pairs(
        rows,
        rows,
        lambda a, b: (
            a["sequence_number"] + 1 == b["sequence_number"]
            and same(a, b, "tb", *FOUR)
            and b["time_ns"] - a["time_ns"] > 1_000_000_000
        ),
    )
    return [a | {"delay": (b["time_ns"] - a["time_ns"]) / 1e6} for a, b in found]


def heavy_flows(packets: list[Packet]) -> list[Packet]:
    flows = group(tcp(packets), {"tb": every(60), **by("srcIP", "destIP")}, {"cnt": COUNT})
    return group(flows, by("tb", "srcIP"), {"max_cnt": of(greatest, "cnt")})


def flow_pairs(packets: list[Packet]) -> list[Packet]:
    heavy = heavy_flows(packets)
    found = pairs(heavy, heavy, lambda a, b: same(a, b, "srcIP") and a["tb"] == b["tb"] + 1)
    return [a | {"max_cnt_2": b["max_cnt"]} for a, b in found]


def traffic_share(packets: list[Packet]) -> list[Packet]:
    names = ("time", "srcIP", "destIP", "id")
    ipv4 = [packet for packet in ip(packets) if packet["ipversion"] == 4]
    seen = {tuple(packet[name] for name in names) for packet in on(ipv4, "c")}
    rows = [
        packet | {"is_shared": int(tuple(packet[name] for name in names) in seen)}
        for packet in on(ipv4, "b")
    ]
    counts = group(rows, {"tb": every(60)}, {"shared": of(total, "is_shared"), "cnt": COUNT})
    return [row | {"share": row["shared"] / row["cnt"]} for row in counts]


def per_pair(packets: list[Packet]) -> list[Packet]:
    return group(tcp(packets), {"tb": every(60), **by("srcIP", "destIP")}, {"cnt": COUNT})


def tcp_count(packets: list[Packet]) -> list[Packet]:
    keys = by("time", "srcIP", "destIP", "srcPort")
    return group(tcp(packets), keys, {"cnt": COUNT})


def repeated(packets: list[Packet]) -> list[Packet]:
    return group(
        tcp(packets),
        {"tb": every(60), **by(*FOUR)},
        {"dup_cnt": of(duplicates, "sequence_number"), "full_cnt": COUNT},
    )


def flow_cnt(packets: list[Packet]) -> list[Packet]:
    return group(repeated(packets), by("tb", "srcIP", "destIP"), {"cnt": COUNT})


def hostname_counts(packets: list[Packet]) -> list[Packet]:
    return group(hostnames(packets), by("tb", "hostheader"), {"cnt": COUNT})


def snort_windows(packets: list[Packet]) -> list[list[Packet]]:
    """The connection attempts of the last 18 seconds, every 15 seconds."""
    attempts = [p for p in tcp(packets) if p.get("SYN") == 1 and p["ACK"] == 0]
    ends = {p["time"] + later for p in attempts for later in range(1, 19)}
    return [
        [p for p in attempts if end - 18 <= p["time"] < end]
        for end in sorted(ends)
        if end % 15 == 0
    ]


def snort_all(packets: list[Packet]) -> list[Packet]:
    return [{"cnt": len(window)} for window in snort_windows(packets)]


def snort_sources(packets: list[Packet]) -> list[Packet]:
    return [
        row
        for window in snort_windows(packets)
        for row in group(window, by("srcIP"), {"cnt": COUNT})
    ]


PUBLISHED_REFERENCES: dict[str, dict[str, Reference]] = {
    "published_merges": {
        "both_ways": Reference(
            ("time", "timestamp", "interface", "srcIP", "sequence_number", "flags", "len"), tcp
        ),
        "timed": Reference(("time", "timestamp", "srcIP", "destIP", "len"), union_filtered),
    },
    "snort_windows": {
        "snort_all": Reference(("cnt",), snort_all),
        "snort_paned": Reference(("cnt",), snort_all),
        "snort_sources": Reference(("srcIP", "cnt"), snort_sources),
    },
    "pair_len": {"pair_len": Reference(("time", "srcIP", "destIP", "both"), pair_len)},
    "syn_ack_delay": {"syn_ack_delay": Reference(("tb", *FOUR, "rtt"), syn_ack_delay)},
    "matched_syn_ratio": {
        "matched_syn_count": Reference(("tb", "cnt"), matched_syn_count),
        "all_syn_count": Reference(("tb", "cnt"), all_syn_count),
        "matched_syn_ratio": Reference(("tb", "ratio"), matched_syn_ratio),
    },
    "full_flow": {"full_flow": Reference(("tb", *FIVE, "cnt", "cnt_2"), full_flow)},
    "jitter": {"jitter": Reference(("tb", *FOUR, "delay"), jitter)},
    "flow_pairs": {
        "heavy_flows": Reference(("tb", "srcIP", "max_cnt"), heavy_flows),
        "flow_pairs": Reference(("tb", "srcIP", "max_cnt", "max_cnt_2"), flow_pairs),
    },
    "traffic_share": {"traffic_share": Reference(("tb", "share"), traffic_share)},
    "published_counts": {
        "per_pair": Reference(("tb", "srcIP", "destIP", "cnt"), per_pair),
        "tcp_count": Reference(("time", "srcIP", "destIP", "srcPort", "cnt"), tcp_count),
        "dup_all_count": Reference(("tb", "dup_cnt", "full_cnt"), repeated),
        "flow_dup_count": Reference(("tb", *FOUR, "dup_cnt"), repeated),
        "flow_cnt": Reference(("tb", "srcIP", "destIP", "cnt"), flow_cnt),
        "hostname_counts": Reference(("tb", "hostheader", "cnt"), hostname_counts),
    },
}
