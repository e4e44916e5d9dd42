"""Two sensors, a relay and a run as processes: killed ones change no answer of the run."""

from __future__ import annotations

import csv
import itertools
import random
import re
import socket
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import DEVICE
from tests.faults.faulty_run import Sender, number_of
from tests.faults.role import Role
from tests.support.certificates import make_certificate, token_file
from tests.support.gscope_command import command, run, wait_for
from tests.support.requirements import needs

from gscope.cli.supervision.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow, needs("openssl")]

PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP FROM UDP"
ROWS_BETWEEN_KILLS = 200


class Tree:
    """Sensors ``a`` and ``b``, which share the packets of one device, a relay and a run."""

    def __init__(self, folder: Path) -> None:
        token_file(folder)
        made = make_certificate(folder, "host")
        served = ("--tls-certificate", made.certificate, "--tls-key", made.key)
        trusted = ("--tls-ca", made.certificate)
        ports = [_free_port() for _ in range(3)]
        a, b, top = (f"127.0.0.1:{port}" for port in ports)
        query = ("-e", PACKETS)
        self.out = folder / "out"
        self.sensors = [
            Role(
                folder,
                name,
                [
                    *("run", *query, "-i", f"{name}={DEVICE}", "-f", f"ip[15] & 1 = {bit}"),
                    *("--no-job", "--listen", place, *served),
                ],
            )
            for name, place, bit in (("a", a, 0), ("b", b, 1))
        ]
        inputs = ("--from", f"a={a}", "--from", f"b={b}")
        self.relay = Role(
            folder, "relay", ["relay", *query, *inputs, *trusted, "--listen", top, *served]
        )
        self.root = Role(
            folder,
            "root",
            ["run", *query, "--from", f"top={top}", *trusted, "-w", self.out, "-o", "csv"],
        )

    @property
    def roles(self) -> list[Role]:
        return [*self.sensors, self.relay, self.root]

    def answers(self) -> list[int]:
        try:
            with (self.out / "packets.csv").open(newline="") as file:
                return [number_of(row["srcIP"]) for row in csv.DictReader(file) if row["srcIP"]]
        except FileNotFoundError:
            return []

    def await_answers(self, rows: int) -> None:
        wanted = len(self.answers()) + rows

        def have_come() -> bool:
            for role in self.roles:
                role.ensure_alive()
            return len(self.answers()) >= wanted

        try:
            wait_for(have_come, f"{rows} more rows")
        except AssertionError as error:
            raise AssertionError({role.name: role.reported for role in self.roles}) from error

    def close(self) -> None:
        for role in self.roles:
            role.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize("rounds", [0, pytest.param(10, marks=pytest.mark.long)])
def test_processes_that_are_killed_lose_and_repeat_no_row(
    network: None, tmp_path: Path, sender: Sender, rounds: int
) -> None:
    tree = Tree(tmp_path)
    try:
        sender.start()
        tree.await_answers(1)
        kills = [
            tree.relay.kill_daemon,
            tree.root.kill_daemon,
            tree.relay.kill_supervisor,
            tree.root.kill_supervisor,
            tree.sensors[0].kill_daemon,
        ]
        chance = random.Random(rounds)
        orders = [
            # The supervisor of a sensor is not killed: it gives up after more restarts than these.
            chance.sample(kills, len(kills)) if number < RestartPolicy().budget else kills[:-1]
            for number in range(rounds)
        ]
        # Each start takes seconds: the default form kills the two whose state is new here.
        for kill in [kill for order in orders for kill in order] or [kills[0], kills[3]]:
            kill()
            tree.await_answers(ROWS_BETWEEN_KILLS)
        sender.stop()
        for sensor in tree.sensors:
            sensor.stop()
        for role in tree.roles:
            role.end()
    finally:
        tree.close()
    said = {role.name: role.reported for role in tree.roles}
    served = [re.search(r"([\d,]+) rows served", said[name]) for name in ("a", "b")]
    logged = sum(int(match[1].replace(",", "")) for match in served if match)
    numbers = Counter(tree.answers())
    assert set(numbers.values()) == {1}, "a row was answered twice"
    assert len(numbers) == logged, said
    # Sensor b was never killed: of its packets none is missing in between.
    odd = sorted(number for number in numbers if number % 2)
    assert all(second == first + 2 for first, second in itertools.pairwise(odd))


@pytest.mark.long
def test_a_tree_gives_the_groups_of_one_run(tmp_path: Path) -> None:
    token = token_file(tmp_path)
    query = (
        "SELECT tb, srcIP, destIP, count(*), sum(len), min(len), max(len), count_distinct(len)"
        " FROM IP GROUP BY time/10 AS tb, srcIP, destIP"
    )
    captures = [tmp_path / f"{name}.pcap" for name in "ab"]
    for number, path in enumerate(captures):
        write_capture(path, number)
    inputs = [f"{path.stem}={path}" for path in captures]
    ports = [_free_port() for _ in range(3)]
    places = [f"127.0.0.1:{port}" for port in ports]
    common = ("-e", query, "--token-file", token)
    processes = [
        subprocess.Popen(
            command(
                *("replay", one, *common, "--no-job", "--listen", place),
                *("--work-dir", tmp_path / f"work{place}"),
            )
        )
        for one, place in zip(inputs, places, strict=False)
    ]
    processes.append(
        subprocess.Popen(
            command(
                *("relay", *common, "--from", places[0], "--from", places[1]),
                *("--listen", places[2], "--work-dir", tmp_path / "relay"),
            )
        )
    )
    try:
        tree = run("run", *common, "--from", places[2], "-o", "csv", "--work-dir", tmp_path / "r")
        assert [process.wait(120) for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    one = run("replay", *inputs, "-e", query, "-o", "csv", "--work-dir", tmp_path / "one")
    assert tree.returncode == one.returncode == 0, tree.stderr
    assert sorted(tree.stdout.splitlines()) == sorted(one.stdout.splitlines())
    assert len(one.stdout.splitlines()) > 50


def write_capture(path: Path, number: int) -> None:
    """Write packets of 100 seconds, whose addresses occur in other captures, too."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap

    chance = random.Random(number)
    packets = []
    for n in range(400):
        source = f"10.0.0.{chance.randint(1, 5)}"
        packet = Ether() / IP(src=source, dst="10.0.1.1") / UDP() / (b"x" * chance.randint(0, 9))
        packet.time = 1_700_000_000 + n / 4
        packets.append(packet)
    wrpcap(str(path), packets)
