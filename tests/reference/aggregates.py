"""Aggregates of golden cases by brute force, from the standard library and lists."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.reference.reference import Aggregate, average, group, order, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.reference.reference import Packet

_Values = list[Any]


def variance(divisor: int) -> Callable[[_Values], Any]:
    """``var`` (1) and ``var_pop`` (0)."""

    def of(values: _Values) -> Any:
        if len(values) <= divisor:
            return None
        mean = Fraction(sum(values), len(values))
        return float(sum((value - mean) ** 2 for value in values) / (len(values) - divisor))

    return of


def deviation(divisor: int) -> Callable[[_Values], Any]:
    """``stddev`` (1) and ``stddev_pop`` (0)."""

    def of(values: _Values) -> Any:
        square = variance(divisor)(values)
        return None if square is None else math.sqrt(square)

    return of


def truth(function: Callable[[Iterable[Any]], bool]) -> Callable[[_Values], Any]:
    """``bool_or`` and ``bool_and``."""
    return lambda values: str(function(values)).lower() if values else None


def quantile(part: float) -> Callable[[_Values], Any]:
    """``quantile`` and ``median``."""

    def of(values: _Values) -> Any:
        if not values:
            return None
        ordered, place = sorted(values), (len(values) - 1) * part
        low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
        return low + (place - math.floor(place)) * (high - low) + 0.0

    return of


def most_frequent(k: int) -> Callable[[_Values], Any]:
    """``approx_top_k``."""

    def of(values: _Values) -> Any:
        counts = Counter(values)
        best = sorted(counts, key=lambda value: (-counts[value], order(value)))[:k]
        return ", ".join(f"{value}={counts[value]}" for value in best) or None

    return of


def along_time(function: Callable[[_Values], Any], name: str) -> Aggregate:
    """An aggregate of the values of a field in the order of time and value."""

    def of(moments: list[tuple[str, Any]]) -> Any:
        ordered = sorted(moments, key=lambda moment: (moment[0], order(moment[1])))
        return function([value for _, value in ordered])

    def moment(packet: Packet) -> Any:
        value = packet.get(name)
        return None if value is None else (packet["timestamp"], value)

    return Aggregate(of, moment)


def earliest(values: _Values) -> Any:
    """``first``."""
    return values[0] if values else None


def newest(values: _Values) -> Any:
    """``last``."""
    return values[-1] if values else None


def changes(values: _Values) -> int:
    """``count_diff``."""
    return sum(n == 0 or value != values[n - 1] for n, value in enumerate(values))


EVERY = (
    *("tb", "protocol", "packets", "spread", "deviation", "ttl_spread", "id_deviation"),
    *("any_large", "all_far", "tenth", "middle", "ports", "targets", "sizes", "mean_ttl"),
    *("opened", "latest", "first_id", "is_near"),
)
"""The columns of ``every_aggregate`` that both queries of the case have."""


def every_aggregate(packets: list[Packet]) -> list[Packet]:
    """The golden case ``all_aggregates``."""
    marked = [
        packet
        | {
            "large": packet["len"] > 1000,
            "far": packet["ttl"] > 32,
            "time_ns": _nanoseconds(packet["timestamp"]),
            "target": str(packet["destIP"]),
        }
        for packet in packets
        if "ipversion" in packet
    ]
    groups = group(
        marked,
        {"tb": lambda packet: packet["time"] // 20, "protocol": lambda packet: packet["protocol"]},
        {
            "packets": Aggregate(len),
            "spread": _of(variance(1), "len"),
            "deviation": _of(deviation(1), "len"),
            "ttl_spread": _of(variance(0), "ttl"),
            "id_deviation": _of(deviation(0), "id"),
            "any_large": _of(truth(any), "large"),
            "all_far": _of(truth(all), "far"),
            "tenth": _of(quantile(0.9), "len"),
            "middle": _of(quantile(0.5), "id"),
            "ports": _of(most_frequent(3), "destPort"),
            "targets": _of(most_frequent(2), "destIP"),
            "sizes": _of(lambda values: total(list(set(values))), "len"),
            "mean_ttl": _of(lambda values: average(list(set(values))), "ttl"),
            "opened": along_time(earliest, "srcIP"),
            "latest": along_time(newest, "destPort"),
            "first_id": along_time(earliest, "id"),
            "changes": along_time(changes, "ttl"),
            "id_changes": along_time(changes, "id"),
            "time_spread": _of(variance(1), "time_ns"),
            "first_target": along_time(earliest, "target"),
        },
    )
    return [row | {"is_near": "true"} for row in groups]


def _of(function: Callable[[_Values], Any], name: str) -> Aggregate:
    return Aggregate(function, lambda packet: packet.get(name))


def _nanoseconds(shown_time: str) -> int:
    moment = datetime.strptime(shown_time[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 10**9 + int(shown_time[20:29])
