"""A live run on a device of the test's own, its processes to be killed.

With it is what it should have answered.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.capture.sources.af_packet.network import DEVICE, SENDER
from tests.faults.kept_log import KeptLog
from tests.support.gscope_command import command, descendants, is_alive, wait_for

from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE
from gscope.queries.run_folder.snapshot import read_snapshot

if TYPE_CHECKING:
    from pathlib import Path

PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
FLOWS = """DEFINE { query_name flows; } SELECT tb, srcPort, count(*) AS packets, sum(len) AS bytes
FROM UDP GROUP BY time AS tb, srcPort"""
PORTS = 5
PATIENCE_S = 120.0

_MODULES = {"daemon": "gscope.capture.daemon", "job": "gscope.engine.job", "java": "SparkSubmit"}
PROCESS_OF = {"daemon": "capture", "job": "job", "java": "job"}
"""The process of ``run.json`` under which the end of a victim is reported."""


class Sender:
    """Sends packets at an even pace; each has a source address of its own.

    Args:
        every_s: the pause between two groups of packets.
        group: packets.
    """

    def __init__(self, every_s: float = 0.02, group: int = 4) -> None:
        self.sent = 0
        self._every_s = every_s
        self._group = group
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _send(self) -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
            sender.bind((SENDER, 0))
            while not self._is_over.wait(self._every_s):
                for _ in range(self._group):
                    with suppress(OSError):  # the device is down
                        sender.send(frame(self.sent))
                        self.sent += 1


def frame(number: int) -> bytes:
    """An Ethernet frame with an IPv4 UDP datagram whose source address is the number."""
    datagram = struct.pack(">HHHH", 1000 + number % PORTS, 53, 8, 0)
    addresses = bytes([10]) + number.to_bytes(3, "big") + bytes([10, 0, 0, 9])
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0)
    return b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00" + head + addresses + datagram


def number_of(address: str) -> int:
    """The number of the packet with that source address."""
    _, *rest = map(int, address.split("."))
    return int.from_bytes(bytes(rest), "big")


class FaultyRun:
    """``gscope run --run NAME`` with NDJSON files, which a supervisor after it goes on writing.

    Args:
        folder: for all it leaves.
        options: of the command.
        queries: what is asked.
    """

    def __init__(
        self, folder: Path, *options: str, queries: tuple[str, ...] = (PACKETS, FLOWS)
    ) -> None:
        self.folder = folder
        self.run_dir = folder / "work" / "run-faulty"
        self.answers = folder / "answers"
        self.errors: list[bytes] = []
        self._options = (*options, *(word for query in queries for word in ("-e", query)))
        self._process: subprocess.Popen[bytes] | None = None
        self._has_ended = False
        self._reader = threading.Thread(target=self._read)
        self.log = KeptLog(self.run_dir / "log", folder / "kept")

    def start(self) -> None:
        """Start it, or resume what was killed; returns when packets are let in."""
        self._process = subprocess.Popen(
            command(
                *("run", "--run", "faulty", "-i", f"main={DEVICE}"),
                *("-o", "ndjson", "-w", self.answers, "--work-dir", self.folder / "work"),
                *("--failure-timeout", "60s"),
                *self._options,
            ),
            stderr=subprocess.PIPE,
        )
        self._has_ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_until_working()

    @property
    def record(self) -> dict[str, Any]:
        """Its ``run.json``."""
        value: dict[str, Any] = json.loads((self.run_dir / "run.json").read_text())
        return value

    @property
    def status(self) -> dict[str, Any]:
        """What ``gscope status --json`` reports about it."""
        asked = command("status", "--json", "--work-dir", self.folder / "work")
        value: dict[str, Any] = json.loads(subprocess.check_output(asked))
        return value

    def wait_until_working(self) -> None:
        """Until both processes do their work."""

        def are_working() -> bool:
            self.ensure_alive()
            with suppress(OSError, ValueError):
                record = self.record
                states = {each["state"] for each in record["processes"].values()}
                # A supervisor that was killed left a record, too.
                is_ours = record["pid"] == self.victim("supervisor")
                return is_ours and record["state"] == "running" and states == {"running"}
            return False

        wait_for(are_working, "work of all processes")

    def wait_for_lines(self, count: int) -> None:
        """Wait until a number of further rows have arrived."""
        wanted = self.lines("packets") + count

        def have_come() -> bool:
            self.ensure_alive()
            return self.lines("packets") >= wanted

        wait_for(have_come, f"{count} rows")

    def wait_for_packet(self, number: int) -> None:
        """Until that packet, or a later one, is in the rows."""

        def has_come() -> bool:
            self.ensure_alive()
            return max(self.answered_packets()) >= number

        wait_for(has_come, f"packet {number}")

    def ensure_alive(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, b"".join(self.errors).decode()

    def victim(self, name: str) -> int:
        """The process id of ``daemon``, ``job``, ``java`` or ``supervisor``."""
        assert self._process is not None
        if name == "supervisor":
            return self._process.pid
        found = [p for p, line in descendants(self._process.pid).items() if _MODULES[name] in line]
        return found[0]

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill a process, and wait until it, or what is left of it, is started again."""
        children = descendants(self.victim(name))
        before = self.restarts(PROCESS_OF[name])
        os.kill(self.victim(name), number)

        def is_noted() -> bool:
            self.ensure_alive()
            return self.restarts(PROCESS_OF[name]) > before

        wait_for(is_noted, f"the restart of {PROCESS_OF[name]}")
        self.wait_until_working()
        assert not any(map(is_alive, children)), f"{name} left {children}"

    def kill_all(self) -> None:
        """Kill the supervisor; everything below it must end by itself."""
        assert self._process is not None
        children = descendants(self._process.pid)
        self._process.kill()
        self.wait()
        wait_for(lambda: not any(map(is_alive, children)), "the end of all children")

    def restarts(self, process: str) -> int:
        """How often a process was started again."""
        with suppress(OSError, ValueError):
            return int(self.record["processes"][process]["restarts_total"])
        return 0

    def end(self) -> int:
        """Close the windows and answer everything; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        code = self.wait()
        self.log.stop()
        return code

    def wait(self) -> int:
        assert self._process is not None
        code = self._process.wait(PATIENCE_S)
        self._reader.join()
        self._has_ended = True
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def close(self) -> None:
        """End whatever is left of it."""
        if self._process is not None and not self._has_ended:
            self._process.kill()
            self.wait()
        self.log.stop()

    @property
    def reported(self) -> str:
        """What was written to standard error."""
        return b"".join(self.errors).decode()

    def lines(self, query: str) -> int:
        """Return the number of whole rows of a query."""
        return self._answer(query).count(b"\n")

    def answered(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        lines = self._answer(query).splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def _answer(self, query: str) -> bytes:
        try:
            return (self.answers / f"{query}.ndjson").read_bytes()
        except FileNotFoundError:
            return b""

    def wait_for_state(self, state: str) -> None:
        """Wait until the state of the first interface is ``state``.

        It is as the capture daemon records it.
        """

        def is_recorded() -> bool:
            self.ensure_alive()
            found = read_snapshot(self.run_dir / CAPTURE_STATISTICS_FILE)
            return found is not None and found["interfaces"][0]["state"] == state

        wait_for(is_recorded, f"the state {state}")

    def answered_packets(self) -> Counter[int]:
        """How often each packet is in the rows."""
        return Counter(number_of(row["srcIP"]) for row in self.answered("packets"))

    def answered_flows(self) -> Counter[tuple[int, int]]:
        """Packets by epoch and port; each pair must be answered once."""
        rows = self.answered("flows")
        keys = [(row["tb"], row["srcPort"]) for row in rows]
        assert len(set(keys)) == len(keys), "an epoch was answered twice"
        return Counter({key: row["packets"] for key, row in zip(keys, rows, strict=True)})

    def logged_flows(self) -> Counter[tuple[int, int]]:
        """Packets by epoch and port, of all partial tuples of the log."""
        counts: Counter[tuple[int, int]] = Counter()
        for row in self.log.rows("flows@main"):
            counts[_number(row["tb"]), _number(row["srcPort"])] += _number(row["count0"])
        return counts

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        self.errors.extend(self._process.stderr)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
