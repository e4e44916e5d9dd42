"""Rounds of ``kill -9`` in a tree of live sensors; what the sensors logged is answered once.

In each round a part of each of the seven runs is killed, in random order and at random moments: the
supervisor, the daemon (of a relay: its only process), and of the run the job or its Java. A killed
supervisor is started again with the same words, which resumes its run by its name. Packets have
five destinations, the same at all sensors, and each has a source of its own.

What should be answered is counted in a plain loop over the rows of the sensors' logs, which a
second reader of theirs makes them keep (``witness.py``). Packets that are in no log must be those
that were sent while a sensor was away: at most one gap in their numbers for each of its kills.
"""

from __future__ import annotations

import csv
import itertools
import json
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.relays.hosts import DEVICE, Hosts
from benchmarks.relays.roles import NAMES, RELAYS, ROOT, SENSORS, Place, Tree, report
from gscope.capture.log.log import read_log
from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PARTS = {ROOT: ("java", "supervisor", "daemon", "job")}
"""Parts to kill in turn; of all others the daemon and the supervisor."""

_ROWS = 200
"""The further rows of each sensor that must be answered after each round."""
_LONGEST_S = 2.0
"""The longest pause between two kills of a round, seconds."""
_PATIENCE_S = 300.0
_SLICE_S = 5
_SLICES = 4
_Groups = Counter[tuple[int, str]]


class Senders:
    """Sends packets into all sensors at an even pace, in a thread.

    Args:
        sockets: of the sensors.
    """

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self.sent = 0
        self._sockets = sockets
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _send(self) -> None:
        while not self._is_over.wait(0.02):
            for _ in range(4):
                for sensor, each in enumerate(self._sockets):
                    with suppress(OSError):  # the device's queue is full
                        each.send(_frame(sensor, self.sent))
                self.sent += 1


class Logs:
    """The logs of sensors whose input has ended.

    Args:
        folder: of the tree.
    """

    def __init__(self, folder: Path) -> None:
        self._folders = {name: _log(folder, name) for name in SENSORS}
        self._messages = {name: read_log(each) for name, each in self._folders.items()}

    def rows(self, query: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query's LFTA in all logs."""
        for name, messages in self._messages.items():
            for each in messages:
                if isinstance(each, Batch) and each.stream.split("@")[0] == query:
                    yield from pq.read_table(self._folders[name] / each.path).to_pylist()

    def ends(self, name: str) -> dict[str, int]:
        """Return the number behind the last message of each stream of a sensor."""
        return {each.stream: each.sequence + 1 for each in self._messages[name]}


def kill_rounds(folder: Path, queries: str, rounds: int, seed: int) -> str:
    """Kill, resume and compare; return what was found.

    Raises:
        AssertionError: a row was lost, or is there twice.
    """
    with Hosts(NAMES) as hosts:
        sockets = [hosts.add_pair(name) for name in SENSORS]
        tree = Tree(
            Place(hosts, folder, ("-e", queries, "--failure-timeout", "60s")),
            RELAYS,
            lambda _: ("run", "-i", DEVICE),
        )
        senders = Senders(sockets)
        try:
            _witness(tree, {name: {} for name in SENSORS})
            senders.start()
            _await_rows(tree)
            kills = _kill_all(tree, rounds, random.Random(seed))
            senders.stop()
            for name in SENSORS:
                tree.roles[name].process.send_signal(signal.SIGTERM)
            tree.wait((*RELAYS, ROOT))
            logs = Logs(folder)
            found = _compare(logs, tree.out, senders.sent, kills)
            _witness(tree, {name: logs.ends(name) for name in SENSORS})
            tree.wait(SENSORS)
        finally:
            senders.stop()
            tree.close()
    return f"{kills.total()} kills in {rounds} rounds\n{found}"


def _log(folder: Path, name: str) -> Path:
    return folder / f"work-{name}" / f"run-{name}" / "log"


def _witness(tree: Tree, cursors: Mapping[str, Mapping[str, int]]) -> None:
    """Register the reader that keeps the sensors' logs, and acknowledge ``cursors`` for it."""
    wanted = json.dumps({tree.place.address(name): each for name, each in cursors.items()})
    words = [sys.executable, "-m", "benchmarks.relays.witness", str(tree.place.folder), wanted]
    subprocess.run(tree.place.hosts.command(ROOT, words), check=True)


def _kill_all(tree: Tree, rounds: int, chance: random.Random) -> Counter[str]:
    """Return how often each run was killed."""
    kills: Counter[str] = Counter()
    turns = {
        name: itertools.cycle(PARTS.get(name, chance.sample(("daemon", "supervisor"), 2)))
        for name in NAMES
    }
    for number in range(1, rounds + 1):
        begun, said = time.monotonic(), []
        for name in chance.sample(NAMES, len(NAMES)):
            time.sleep(chance.uniform(0, _LONGEST_S))  # a moment of no meaning
            part = next(turns[name])
            tree.roles[name].kill(part)
            kills[name] += 1
            said.append(f"{name} {part}")
        _await_rows(tree)
        report(f"round {number}: {', '.join(said)}; {time.monotonic() - begun:.0f} s")
    return kills


def _await_rows(tree: Tree) -> None:
    """Wait for further rows of all sensors."""
    before = _counted(tree.out)
    until = time.monotonic() + _PATIENCE_S
    now = before
    while any(now[sensor] < before[sensor] + _ROWS for sensor in range(len(SENSORS))):
        for role in tree.roles.values():
            role.ensure_alive()
        if time.monotonic() > until:
            said = "\n".join(f"{role.name}: {role.reported}" for role in tree.roles.values())
            message = f"no further rows within {_PATIENCE_S:.0f} s: {before}, {now}\n{said}"
            raise AssertionError(message)
        time.sleep(0.3)
        now = _counted(tree.out)


def _counted(out: Path) -> Counter[int]:
    """Return the rows of ``lookups`` by sensor, quickly."""
    try:
        text = (out / "lookups.csv").read_bytes()
    except FileNotFoundError:
        return Counter()
    return Counter(int(byte) >> 6 for byte in re.findall(rb"^\d+,10\.(\d+)\.", text, re.M))


def _compare(logs: Logs, out: Path, sent: int, kills: Mapping[str, int]) -> str:
    """Compare the answers with the rows of the sensors' logs."""
    flows: _Groups = Counter()
    sizes: _Groups = Counter()
    for row in logs.rows("flows"):
        group = row["tb"], _address(row["destIP"])
        flows[group] += row["count0"]
        sizes[group] += row["sum1"]
    windows: _Groups = Counter()
    for row in logs.rows("windows"):
        for ahead in range(1, _SLICES + 1):
            end = (row["$slice"] + ahead) * _SLICE_S
            windows[end, _address(row["destIP"])] += row["count0"]
    logged = Counter(_origin(_address(row["srcIP"])) for row in logs.rows("lookups"))
    _ensure_same("flows", flows, _answer(out, "flows", "packets"))
    _ensure_same("flows' bytes", sizes, _answer(out, "flows", "bytes"))
    _ensure_same("windows", windows, _answer(out, "windows", "packets"))
    lookups = Counter(map(_origin, _addresses(out)))
    _ensure_same("lookups", logged, lookups)
    assert set(lookups.values()) == {1}, "a packet was logged twice"
    lines = [f"flows {len(flows):,}, windows {len(windows):,}, lookups {len(lookups):,} rows"]
    for sensor, name in enumerate(SENSORS):
        numbers = sorted(number for origin, number in lookups if origin == sensor)
        gaps = [b - a - 1 for a, b in itertools.pairwise(numbers) if b != a + 1]
        assert len(gaps) <= kills[name], (name, gaps)
        lines.append(
            f"{name}: {sent:,} packets sent, {len(numbers):,} answered, {kills[name]} kills, "
            f"{sum(gaps):,} sent in {len(gaps)} gaps"
        )
    return "\n".join(lines)


def _ensure_same(what: str, expected: Counter[Any], found: Counter[Any]) -> None:
    missing, more = expected - found, found - expected
    assert expected == found, f"{what}: missing {_few(missing)}; more {_few(more)}"


def _few(found: Counter[Any]) -> str:
    return f"{len(found)} ({dict(itertools.islice(found.items(), 5))})"


def _answer(out: Path, query: str, column: str) -> _Groups:
    """Return a column of a result by its group; each group must be there once."""
    groups: _Groups = Counter()
    with (out / f"{query}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = int(row["tb"]) if "tb" in row else _seconds(row["window_end"])
            group = key, row["destIP"]
            assert group not in groups, f"{query}: {group} was answered twice"
            groups[group] = int(row[column])
    return groups


def _addresses(out: Path) -> list[str]:
    """Return the sources of the rows of ``lookups``."""
    with (out / "lookups.csv").open(newline="") as file:
        return [row["srcIP"] for row in csv.DictReader(file)]


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _address(value: bytes) -> str:
    return format_ip(int.from_bytes(value, "big"))


def _origin(address: str) -> tuple[int, int]:
    """Return sensor and number of the packet with that source."""
    _, *rest = map(int, address.split("."))
    return divmod(int.from_bytes(bytes(rest), "big"), 1 << 22)


def _frame(sensor: int, number: int) -> bytes:
    """Return an Ethernet frame with a UDP datagram to port 53, whose source is its number."""
    payload = bytes(number % 7)
    datagram = struct.pack(">4H", 5353, 53, 8 + len(payload), 0) + payload
    source = bytes([10]) + ((sensor << 22) + number).to_bytes(3, "big")
    addresses = source + bytes([10, 0, 0, number % 5])
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0)
    return b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00" + head + addresses + datagram
