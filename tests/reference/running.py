"""Queries with CLOSING_WHEN in plain Python: groups are lists of epochs, each a list of packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.reference.queries import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.reference.reference import Packet

    Life = list[list[Packet]]


def live_groups(
    packets: Iterable[Packet],
    last_epoch: int,
    seconds: int,
    keys: tuple[str, ...],
    row_of: Callable[[Life], dict[str, Any]],
    closes: Callable[[dict[str, Any]], bool],
) -> list[Packet]:
    """A row for each live group at the end of every epoch up to ``last_epoch``."""
    by_epoch: dict[int, list[Packet]] = {}
    for packet in packets:
        by_epoch.setdefault(packet["time"] // seconds, []).append(packet)
    lives: dict[tuple[Any, ...], Life] = {}
    rows = []
    for epoch in range(min(by_epoch), last_epoch + 1):
        for life in lives.values():
            life.append([])
        for packet in by_epoch.get(epoch, []):
            lives.setdefault(tuple(packet[key] for key in keys), [[]])[-1].append(packet)
        for key, life in list(lives.items()):
            row = {"tb": epoch, **dict(zip(keys, key, strict=True)), **row_of(life)}
            rows.append(row)
            if closes(row):
                del lives[key]
    return rows


def last_time(packets: list[Packet]) -> int:
    return max(int(packet["time"]) for packet in packets)


def tcp(packets: list[Packet]) -> list[Packet]:
    return [packet for packet in packets if packet.get("protocol") == 6]


def dup_seq(packets: list[Packet]) -> list[Packet]:
    def row_of(life: Life) -> dict[str, Any]:
        seqs = [p.get("sequence_number") for epoch in life for p in epoch]
        there = [seq for seq in seqs if seq is not None]
        return {
            "sum_of_dups_seq": len(there) - len(set(there)),
            "has_fin": any(p.get("FIN") for p in life[-1]),
            "packets": len(life[-1]),
        }

    return live_groups(
        tcp(packets),
        last_time(packets) // 60,
        60,
        ("srcIP", "destIP"),
        row_of,
        lambda row: row["has_fin"] or row["packets"] == 0,
    )


def talkers(packets: list[Packet]) -> list[Packet]:
    """Sources that sent more than 3 packets; forgotten after two epochs without any."""

    def row_of(life: Life) -> dict[str, Any]:
        sums = [sum(p["len"] for p in epoch) for epoch in life]
        recent = [p["len"] for epoch in life[-3:] for p in epoch]
        smooth: float | None = None
        for epoch in life:
            if epoch:
                mean = sum(p["len"] for p in epoch) / len(epoch)
                smooth = mean if smooth is None else 0.5 * mean + 0.5 * smooth
        return {
            "packets": len(life[-1]),
            "bytes": sum(sums),
            "all_packets": sum(len(epoch) for epoch in life),
            "recent": sum(sums[-3:]) if recent else None,
            "mean": sum(recent) / len(recent) if recent else None,
            "smooth": smooth,
            "longest": max((p["len"] for p in life[-1]), default=None),
            "mean_now": sum(p["len"] for p in life[-1]) / len(life[-1]) if life[-1] else None,
            "port": max((p["time_ns"], p["destPort"]) for epoch in life for p in epoch)[1],
            "is_idle": not any(life[-2:]) and len(life) > 1,
        }

    rows = live_groups(
        (p for p in packets if "ipversion" in p),
        last_time(packets) // 10,
        10,
        ("srcIP",),
        row_of,
        lambda row: row["is_idle"] is True,
    )
    return [row for row in rows if row["all_packets"] > 3]


def talkers_by_minute(packets: list[Packet]) -> list[Packet]:
    minutes: dict[int, list[Packet]] = {}
    for row in talkers(packets):
        minutes.setdefault(row["tb"] // 6, []).append(row)
    return [
        {"minute": minute, "rows": len(rows), "quiet": sum(row["packets"] == 0 for row in rows)}
        for minute, rows in minutes.items()
    ]


RUNNING_REFERENCES: dict[str, dict[str, Reference]] = {
    "dup_seq": {"dup_seq": Reference(("tb", "srcIP", "destIP", "sum_of_dups_seq"), dup_seq)},
    "talkers": {
        "talkers": Reference(
            (
                *("tb", "srcIP", "packets", "bytes", "all_packets", "recent", "mean", "smooth"),
                *("longest", "mean_now", "port"),
            ),
            talkers,
        ),
        "by_minute": Reference(("minute", "rows", "quiet"), talkers_by_minute),
    },
}
"""Golden cases whose groups live across epochs."""
