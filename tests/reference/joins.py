"""Kinds of joins that no published query has, as nested loops over all packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.published import same
from tests.reference.queries import FOUR, Reference, ip, tcp

if TYPE_CHECKING:
    from tests.reference.reference import Packet

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
    """IP packets of one protocol for which there was a smaller one just before.

    It was at most half a second before, of its addresses.
    """
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


def _answers(a: Packet, b: Packet) -> bool:
    """Whether ``b`` goes the way back."""
    there = (a["srcIP"], a["srcPort"], a["destIP"], a["destPort"])
    return there == (b["destIP"], b["destPort"], b["srcIP"], b["srcPort"])


def replies(packets: list[Packet]) -> list[Packet]:
    """Pairs of a TCP packet and a large one the way back.

    It comes in the two seconds after by their whole seconds.
    """
    rows = tcp(packets)
    return [
        {**a, "asked_ns": a["time_ns"], "replied_ns": b["time_ns"]}
        for a in rows
        for b in rows
        if a["len"] > 60 and b["len"] > 62
        if _answers(a, b) and a["time"] <= b["time"] <= a["time"] + 2
    ]


def first_replies(packets: list[Packet]) -> list[Packet]:
    """The first reply that is later than its packet, and how many there are."""
    found: dict[tuple[object, ...], list[Packet]] = {}
    for pair in replies(packets):
        if pair["replied_ns"] > pair["asked_ns"]:
            key = tuple(pair[name] for name in (*FOUR, "asked_ns"))
            found.setdefault(key, []).append(pair)
    return [
        {
            **pairs[0],
            "replied_ns": min(pair["replied_ns"] for pair in pairs),
            "replies": len(pairs),
        }
        for pairs in found.values()
    ]


def without_reply(packets: list[Packet]) -> list[Packet]:
    """TCP packets with none the way back in the 700 ms after."""
    rows = tcp(packets)
    return [
        a
        for a in rows
        if a["len"] > 60
        and not any(
            _answers(a, b) and a["time_ns"] < b["time_ns"] <= a["time_ns"] + 700_000_000
            for b in rows
        )
    ]


JOIN_REFERENCES: dict[str, dict[str, Reference]] = {
    "filter_join": {
        "called_back": Reference(("time", *FOUR, "len"), called_back),
        "near": Reference(("time_ns", "protocol", "srcIP", "destIP", "len"), near),
    },
    "intervals": {
        "replies": Reference(("time", *FOUR, "asked_ns", "replied_ns"), replies),
        "first_replies": Reference(
            ("time", *FOUR, "asked_ns", "replied_ns", "replies"), first_replies
        ),
        "without_reply": Reference(("time", "srcIP", "destIP", "len"), without_reply),
    },
}
