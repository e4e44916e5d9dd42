"""Kinds of joins that no published query has, as nested loops over all packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference_published import same
from tests.reference_queries import FOUR, Reference, ip, tcp

if TYPE_CHECKING:
    from tests.reference import Packet

LOOKBACK = 3


def called_back(packets: list[Packet]) -> list[Packet]:
    """TCP packets to whose sender their receiver had sent one in the three seconds before."""
    rows = tcp(packets)
    return [
        a
        for a in rows
        if any(
            (b["srcIP"], b["srcPort"]) == (a["destIP"], a["destPort"])
            and (b["destIP"], b["destPort"]) == (a["srcIP"], a["srcPort"])
            and a["time"] - LOOKBACK <= b["time"] <= a["time"]
            and b["len"] > 60
            for b in rows
        )
    ]


def near(packets: list[Packet]) -> list[Packet]:
    """IP packets of one protocol for which there was a smaller one at most half a second before, of its addresses."""
    rows = ip(packets)
    return [
        a
        for a in rows
        if a["len"] > 62
        and any(
            same(a, b, "protocol", "srcIP", "destIP")
            and a["time_ns"] - 500_000_000 <= b["time_ns"] <= a["time_ns"]
            and b["len"] <= 62
            for b in rows
        )
    ]


JOIN_REFERENCES: dict[str, dict[str, Reference]] = {
    "filter_join": {
        "called_back": Reference(("time", *FOUR, "len"), called_back),
        "near": Reference(("time_ns", "protocol", "srcIP", "destIP", "len"), near),
    },
}
