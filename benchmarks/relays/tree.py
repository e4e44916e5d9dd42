"""A tree of four sensors, two relays and a run, each on a host (network namespace) of its own.

    python -m benchmarks.relays.tree [--seconds 60] [--rate 5000] [--addresses 500]
    python -m benchmarks.relays.tree --kills 10

Without ``--kills`` each sensor replays a capture of its own at ``--speed``, and the answers must be
those of one replay of all four captures. It reports the bytes of all frames between sensors and
relays and between relays and run, as the interfaces count them, beside those of a run that reads
the four sensors itself. ``--kills`` is ``benchmarks/relays/kills.py``. Needs root and ``openssl``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.gscope_command import command

from benchmarks.records import write_records
from benchmarks.relays.hosts import Hosts
from benchmarks.relays.kills import kill_rounds
from benchmarks.relays.roles import NAMES, RELAYS, ROOT, SENSORS, Place, Tree, report
from benchmarks.trace import OUT
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUERIES = """
DEFINE { query_name flows; }
SELECT tb, destIP, count(*) AS packets, sum(len) AS bytes FROM UDP GROUP BY time/5 AS tb, destIP;
DEFINE { query_name windows; }
SELECT window_end, destIP, count(*) AS packets FROM UDP [RANGE 20 SLIDE 5] GROUP BY destIP;
DEFINE { query_name lookups; }
SELECT time, srcIP, destIP, srcPort FROM UDP WHERE destPort = 53
"""
RESULTS = ("flows", "windows", "lookups")


@dataclass(frozen=True, slots=True)
class Level:
    """The links of one level of a tree.

    Attributes:
        way: ``tree``, or ``direct`` without relays.
        link: what it joins.
        up_bytes: frames towards the run.
        down_bytes: frames towards the sensors: requests and acknowledgements.
        rows: partial tuples and rows of selections that were served.
    """

    way: str
    link: str
    up_bytes: int
    down_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Load:
    """The traffic of each sensor.

    Attributes:
        seconds: length of a capture.
        rate: packets a second.
        addresses: number of clients, and of servers, which are the same for all sensors.
    """

    seconds: int
    rate: int
    addresses: int


def captures(folder: Path, load: Load) -> dict[str, Path]:
    """Write a capture for each sensor."""
    made = {}
    for number, name in enumerate(SENSORS, 1):
        made[name] = folder / f"{name}.pcap"
        profile = TrafficProfile(
            seed=number,
            packets_per_second=load.rate,
            flows=2_000,
            clients=load.addresses,
            servers=load.addresses,
        )
        write_pcap(profile, made[name], load.seconds * load.rate)
    return made


def answers(folder: Path) -> dict[str, list[str]]:
    """Return the sorted lines of each result."""
    return {name: sorted((folder / f"{name}.csv").read_text().splitlines()) for name in RESULTS}


def run_tree(
    hosts: Hosts,
    folder: Path,
    relays: Mapping[str, tuple[str, ...]],
    sources: Sequence[tuple[str, ...]],
) -> tuple[dict[str, list[str]], list[Level]]:
    """Return the answers of a tree over captures, and its traffic."""
    folder.mkdir()
    folder.chmod(0o755)
    before = {name: hosts.traffic(name) for name in NAMES}
    words = dict(zip(SENSORS, sources, strict=True))
    tree = Tree(
        Place(hosts, folder, ("-e", QUERIES)),
        relays,
        lambda name: ("replay", *words[name]),
    )
    try:
        tree.wait()
    finally:
        tree.close()

    def level(link: str, senders: Sequence[str]) -> Level:
        up = sum(hosts.traffic(name).sent - before[name].sent for name in senders)
        down = sum(hosts.traffic(name).received - before[name].received for name in senders)
        rows = sum(tree.roles[name].served() for name in senders)
        return Level("tree" if relays else "direct", link, up, down, rows)

    levels = [level("sensors to relays" if relays else "sensors to run", SENSORS)]
    if relays:
        root, first = hosts.traffic(ROOT), before[ROOT]
        up, down = root.received - first.received, root.sent - first.sent
        served = sum(tree.roles[name].served() for name in relays)
        levels.append(Level("tree", "relays to run", up, down, served))
    return answers(tree.out), levels


def measure(folder: Path, load: Load, speed: float) -> list[Level]:
    """Compare a tree, a run that reads all sensors, and one replay; return bytes by level."""
    made = captures(folder, load)
    one = folder / "one"
    named = [f"{name}={path}" for name, path in made.items()]
    subprocess.run(
        command("replay", *named, "-e", QUERIES, "-o", "csv", "-w", one, "--no-progress"),
        check=True,
    )
    expected = answers(one)
    sources = [(each, "--speed", str(speed)) for each in named]
    rows = []
    ways: dict[str, Mapping[str, tuple[str, ...]]] = {"direct": {}, "tree": RELAYS}
    for name, relays in ways.items():
        with Hosts(NAMES) as hosts:
            found, levels = run_tree(hosts, folder / name, relays, sources)
        for result in RESULTS:
            assert found[result] == expected[result], f"{name}: other rows of {result}"
            report(f"{name}: {len(found[result]) - 1:,} rows of {result} as of one replay")
        rows += levels
    return rows


def table(levels: Sequence[Level]) -> str:
    """Return the bytes as a Markdown table."""
    lines = [
        "| way | links | bytes up | bytes down | rows served |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {each.way} | {each.link} | {each.up_bytes:,} | {each.down_bytes:,} | {each.rows:,} |"
        for each in levels
    ]
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=int, default=60, help="length of each capture")
    parser.add_argument("--rate", type=int, default=5_000, help="packets a second of each capture")
    parser.add_argument("--addresses", type=int, default=500, help="clients, and servers")
    parser.add_argument("--speed", type=float, default=4.0, help="of the replays")
    parser.add_argument("--kills", type=int, default=0, help="rounds of kills")
    parser.add_argument("--seed", type=int, default=1, help="of the order and moments of kills")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gscope-tree-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if arguments.kills:
            print(kill_rounds(folder, QUERIES, arguments.kills, arguments.seed))
            return
        load = Load(arguments.seconds, arguments.rate, arguments.addresses)
        levels = measure(folder, load, arguments.speed)
    write_records(levels, OUT / "relays_tree.csv")
    print(table(levels))


if __name__ == "__main__":
    _main()
