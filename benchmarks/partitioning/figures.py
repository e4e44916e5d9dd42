"""What the plots of D5 to D8 show: the points of the CSV files, and what was published.

Each experiment has four panels: the load of the aggregating host, the bytes that it receives, and
both as shares of what they are on the curve *naive* with the same number of hosts. Publications
state ratios and loads of another machine, so a published figure is a span in a panel of shares if
it is a ratio, and a note above all panels in any case.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path(__file__).parent
"""The folder of the CSV files and of the plots made from them."""

NAIVE = "naive"
EXPERIMENTS = {
    "D5": "suspicious flows",
    "D6": "jitter",
    "D7": "subnets and jitter",
    "D8": "flows, heavy flows, flow pairs",
}
RATES = {"D5": 44_000, "D6": 8_200, "D7": 8_200, "D8": 8_200}
"""Packets for each second of the trace in the runs of the committed files."""

LOAD_NOISE = 0.006
"""By how much a load may be off, since the CPU time of a start varies by about a second."""

LOAD = "load of the aggregating host, % of a core"
RECEIVED = "received by the aggregating host, kB/s"
LOAD_SHARE = "load, share of naive"
RECEIVED_SHARE = "received bytes, share of naive"
PANELS = (LOAD, RECEIVED, LOAD_SHARE, RECEIVED_SHARE)
LOGARITHMIC = frozenset({RECEIVED, RECEIVED_SHARE})
"""Panels with a logarithmic axis of values: curves differ by a factor of up to a hundred."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a row of a CSV file says of a number of hosts.

    Attributes:
        hosts: their number.
        is_simulated: whether the figures are computed, not measured.
        load: CPU seconds of the aggregating host for each second of the trace.
        received_bytes_s: bytes that it received for each second of the trace.
    """

    hosts: int
    is_simulated: bool
    load: float
    received_bytes_s: float


@dataclass(frozen=True, slots=True)
class Published:
    """A published share of the curve *naive*.

    Attributes:
        panel: the panel of shares to which it belongs.
        curve: the curve of ours that it is about; None if that is not stated.
        least: the least share.
        most: the greatest share.
        hosts: the first and the last number of hosts.
        label: what to write beside it.
    """

    panel: str
    curve: str | None
    least: float
    most: float
    hosts: tuple[int, int]
    label: str


SUBOPTIMAL = "suboptimal set: ports and addresses"
FULLY_COMPATIBLE = "fully compatible: source"

PUBLISHED: Mapping[str, Sequence[Published]] = {
    "D5": (Published(LOAD_SHARE, "partial", 0.78, 0.80, (2, 4), "published: 20 to 22 % less"),),
    "D6": (),
    "D7": (
        Published(LOAD_SHARE, SUBOPTIMAL, 0.53, 0.57, (2, 4), "published: 43 to 47 % less"),
        Published(RECEIVED_SHARE, None, 0.30, 0.36, (2, 4), "published: 64 to 70 % less"),
    ),
    "D8": (
        Published(
            LOAD_SHARE, FULLY_COMPATIBLE, 0.0, 0.084, (4, 4), "published: at most 0.084, on 4 hosts"
        ),
    ),
}
"""Published shares. Naive is overloaded in D8: 8.4 % is at most that share of its load."""

NOTES = {
    "D5": "Published: naive grows linearly to overload, partial takes 20 to 22 % less load, and"
    " partitioned falls with the number of hosts.",
    "D6": "Published: naive reaches a load of 90 %, and partitioned scales"
    " (no ratio was published).",
    "D7": "Published: the suboptimal set takes 43 to 47 % less load, the optimal one is flattest,"
    " and 64 to 70 % less is received.",
    "D8": "Published: on four hosts naive is overloaded, and the load of the fully compatible set"
    " is 8.4 %.",
}
"""What was published of each experiment. Loads are those of the machines of that time."""


def read_curves(path: Path) -> dict[str, list[Reading]]:
    """Return the curves of a CSV file that ``hosts_load`` wrote, by their names."""
    curves: dict[str, list[Reading]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            reading = Reading(
                int(row["hosts"]),
                row["is_simulated"] == "True",
                float(row["load"]),
                float(row["received_bytes_s"]),
            )
            curves.setdefault(row["curve"], []).append(reading)
    return curves


def panel_points(
    panel: str, curve: str, curves: Mapping[str, Sequence[Reading]], *, is_simulated: bool
) -> list[tuple[int, float]]:
    """Return the measured or simulated points of a curve in a panel: hosts and value.

    One host receives nothing and is the same on all curves, so only loads have a point for it.
    """
    naive = {each.hosts: each for each in curves[NAIVE]}
    return [
        (each.hosts, _value(panel, each, naive[each.hosts]))
        for each in curves[curve]
        if each.is_simulated == is_simulated and (each.hosts > 1 or panel == LOAD)
    ]


def _value(panel: str, reading: Reading, naive: Reading) -> float:
    if panel == LOAD:
        return 100 * reading.load
    if panel == RECEIVED:
        return reading.received_bytes_s / 1e3
    if panel == LOAD_SHARE:
        return reading.load / naive.load
    return reading.received_bytes_s / naive.received_bytes_s


def read_orders(path: Path) -> dict[str, list[tuple[str, float, float]]]:
    """Return the candidates of each query set in a CSV file that ``set_orders`` wrote.

    Each has its name, and the predicted and measured bytes of all operators for each packet.
    """
    found: dict[str, list[tuple[str, float, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cost = float(row["predicted_total"]), float(row["measured_total"])
            found.setdefault(row["queries"], []).append((row["candidate"], *cost))
    return found
