"""The golden queries without a temporal term once more.

They are plain functions over all packets together.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.reference.queries import COUNT, Reference, by, every, ip, of, tcp, udp
from tests.reference.reference import (
    Aggregate,
    average,
    distinct,
    duplicates,
    greatest,
    group,
    least,
    total,
)

if TYPE_CHECKING:
    from tests.reference.reference import Packet


def single(rows: list[Packet], **aggregates: Aggregate) -> list[Packet]:
    """The one row of all ``rows`` together, which is there even if they are none."""
    return group(rows, {}, aggregates) or [
        {name: aggregate.function([]) for name, aggregate in aggregates.items()}
    ]


def middle(values: list[int]) -> float | None:
    """``median``."""
    return float(median(values)) if values else None


def totals(packets: list[Packet]) -> list[Packet]:
    return single(
        ip(packets),
        cnt=COUNT,
        bytes=of(total, "len"),
        lowest=of(least, "srcIP"),
        latest=of(greatest, "time"),
        mean=of(average, "len"),
        targets=of(distinct, "destIP"),
    )


def by_source(packets: list[Packet]) -> list[Packet]:
    groups = group(ip(packets), by("srcIP"), {"cnt": COUNT, "bytes": of(total, "len")})
    return [row for row in groups if row["cnt"] > 3]


def ports(packets: list[Packet]) -> list[Packet]:
    return group(ip(packets), by("protocol", "destPort"), {})


def nothing(packets: list[Packet]) -> list[Packet]:
    return [{"cnt": 0, "sources": 0, "about": 0}]


def nothing_high(packets: list[Packet]) -> list[Packet]:
    return [{"cnt": 0}]


def per_period(packets: list[Packet]) -> list[Packet]:
    return group(ip(packets), {"tb": every(10), **by("protocol")}, {"cnt": COUNT})


def busiest(packets: list[Packet]) -> list[Packet]:
    aggregates = {"most": of(greatest, "cnt"), "periods": COUNT}
    return group(per_period(packets), by("protocol"), aggregates)


def sources(packets: list[Packet]) -> list[Packet]:
    return single(by_source(packets), cnt=COUNT, bytes=of(total, "bytes"))


def heard(packets: list[Packet]) -> list[Packet]:
    return [{"cnt": 0}]


def pairs(packets: list[Packet]) -> list[Packet]:
    rows = per_period(packets)
    counts = {(row["tb"], row["protocol"]): row["cnt"] for row in rows}
    met = [
        {"protocol": protocol, "cnt": counts[tb + 1, protocol]}
        for tb, protocol in counts
        if (tb + 1, protocol) in counts
    ]
    return group(met, by("protocol"), {"cnt": COUNT, "later": of(total, "cnt")})


def bytes_of_both(packets: list[Packet]) -> list[Packet]:
    return single([*tcp(packets), *udp(packets)], bytes=of(total, "len"), cnt=COUNT)


def spread(packets: list[Packet]) -> list[Packet]:
    aggregates = {
        "sources": of(distinct, "srcIP"),
        "again": of(duplicates, "destPort"),
        "middle": of(middle, "len"),
    }
    return group(ip(packets), by("protocol"), aggregates)


def lengths(packets: list[Packet]) -> list[Packet]:
    return group(group(ip(packets), by("srcIP", "destIP"), {"cnt": COUNT}), by("cnt"), {})


WHOLE_INPUT_REFERENCES = {
    "whole_input": {
        "totals": Reference(("cnt", "bytes", "lowest", "latest", "mean", "targets"), totals),
        "by_source": Reference(("srcIP", "cnt", "bytes"), by_source),
        "ports": Reference(("protocol", "destPort"), ports),
        "nothing": Reference(("cnt", "bytes", "sources", "ttl", "deviation", "about"), nothing),
        "nothing_high": Reference(("cnt", "middle"), nothing_high),
        "empty": Reference(("cnt",), lambda _: []),
        "busiest": Reference(("protocol", "most", "periods"), busiest),
        "sources": Reference(("cnt", "bytes"), sources),
        "heard": Reference(("cnt", "most"), heard),
        "pairs": Reference(("protocol", "cnt", "later"), pairs),
        "bytes_of_both": Reference(("bytes", "cnt"), bytes_of_both),
        "spread": Reference(("protocol", "sources", "again", "middle"), spread),
        "lengths": Reference(("cnt",), lengths),
    },
}
