"""``gscope run`` on a UDP port, end to end.

Beside tcpdump, softflowd and nfcapd, and after a kill.
"""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.answers.test_flow_records import of_nfdump, unread_bytes
from tests.capture.sources.flows.exports import set_of, template, v5, v5_record, v9
from tests.capture.sources.udp.port import free_port, sender
from tests.live.test_run import live, network
from tests.support.gscope_command import run, wait_for
from tests.support.requirements import needs

from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.live, pytest.mark.slow]

__all__ = ["live", "network"]

RECORDS = "SELECT time_ns, exporter, srcIP, destPort, bytes FROM FLOW"
TOTALS = """SELECT srcIP, sum(packets) AS p, sum(bytes) AS b, count(*) AS n
FROM FLOW GROUP BY time/60 AS tb, srcIP"""
FIELDS = template(300, [(8, 4), (12, 4), (1, 4)])
ROW = bytes((10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 9))


@needs("tcpdump")
def test_rows_are_those_of_a_capture_of_the_same_datagrams(live: Any, tmp_path: Path) -> None:
    port = 2055  # in a network of the test's own; a capture has exports for other ports, too
    capture = tmp_path / "exports.pcap"
    running = live("-e", RECORDS, "-i", f"udp://127.0.0.1:{port}")
    options = ("--time-stamp-precision=nano", "-U", "-Z", "root", "-w", capture)
    with subprocess.Popen(
        ["tcpdump", "-i", "lo", *options, f"udp port {port}"], stderr=subprocess.PIPE
    ) as tcpdump:
        assert tcpdump.stderr is not None
        assert b"listening on lo" in tcpdump.stderr.readline()
        with sender(port) as send:
            send([v9([set_of(300, ROW)], 0), v9([set_of(0, FIELDS), set_of(300, ROW * 40)], 1)])
            send(v5([v5_record(f"10.1.0.{n % 9}")] * 30, 30 * n) for n in range(50))
            send([v9([set_of(300, ROW)], 4), b"no export"])
        running.wait_for_lines(1 + 40 + 1500 + 1 + 1)
        wait_for(lambda: capture.stat().st_size > 70_000, "the capture")
        tcpdump.send_signal(signal.SIGINT)
        tcpdump.wait(60)
    assert running.end() == 128 + signal.SIGINT
    replayed = run("replay", capture, "-e", RECORDS, "-o", "csv")
    assert replayed.returncode == 0, replayed.stderr
    assert b"".join(running.lines).decode() == replayed.stdout
    counts = "1,545 packets received = 1,541 accepted + 1 malformed + 1 unsupported + 2 dropped"
    assert counts in running.summary
    assert counts in replayed.stderr


@needs("softflowd", "nfcapd", "nfdump")
@pytest.mark.parametrize("version", [9, pytest.param(10, marks=pytest.mark.long)])
def test_sums_of_what_softflowd_sends_are_those_of_nfcapd(
    version: int, live: Any, tmp_path: Path
) -> None:
    ports = free_port(), free_port()
    traffic, folder = tmp_path / "traffic.pcap", tmp_path / "nfcapd"
    write_pcap(TrafficProfile(seed=version, packets_per_second=500), traffic, 5000)
    folder.mkdir()
    running = live("-e", TOTALS, "-i", f"routers=udp://:{ports[0]}")
    collector = ["nfcapd", "-b", "127.0.0.1", "-p", str(ports[1]), "-w", str(folder)]
    targets = ",".join(f"127.0.0.1:{port}" for port in ports)
    exporter = ["softflowd", "-r", str(traffic), "-n", targets, "-v", str(version), "-d"]
    with subprocess.Popen(collector, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as it:
        wait_for(lambda: unread_bytes(ports[1]) is not None, "nfcapd")
        places = ["-p", str(tmp_path / "pid"), "-c", "none"]
        subprocess.run([*exporter, *places], check=True, capture_output=True, timeout=60)
        wait_for(lambda: not any(map(unread_bytes, ports)), "the datagrams")
        it.send_signal(signal.SIGTERM)
        it.wait(60)
    assert running.end() == 128 + signal.SIGINT
    (file,) = folder.glob("nfcapd.2*")
    expected: Counter[tuple[str, str]] = Counter()
    for (source, *_, packets, octets), count in of_nfdump(file).items():
        expected[source, "p"] += int(packets) * count
        expected[source, "b"] += int(octets) * count
        expected[source, "n"] += count
    found: Counter[tuple[str, str]] = Counter()
    for row in csv.DictReader(line.decode() for line in running.lines):
        for name in ("p", "b", "n"):
            found[row["srcIP"], name] += int(row[name])
    assert found == expected
    assert sum(n for (_, name), n in found.items() if name == "n") > 400
    assert "dropped" not in running.summary


def test_a_killed_daemon_takes_its_port_again_also_one_of_root(live: Any) -> None:
    port = 514 if os.geteuid() == 0 else free_port()
    running = live("-e", RECORDS, "-i", f"udp://127.0.0.1:{port}")
    with sender(port) as send:
        send([v5([v5_record()] * 30)])
        running.wait_for_lines(31)
        os.kill(running.daemon, signal.SIGKILL)
        # Datagrams are lost until the port is bound again.
        number = 0

        def send_more() -> None:
            nonlocal number
            number += 1
            send([v5([v5_record(counts=(1, number))], 30 + number)])

        running.wait_for_lines(32, send_more)
    threading.Event().wait(0.5)
    assert running.end() == 128 + signal.SIGINT
    assert 32 <= len(running.lines) <= 31 + number


def test_a_quiet_port_closes_windows(live: Any) -> None:
    port = free_port()
    counts = "SELECT tb, count(*) AS n FROM FLOW GROUP BY time/1 AS tb"
    running = live("-e", counts, "-i", f"udp://127.0.0.1:{port}")
    with sender(port) as send:
        send([v5([v5_record()] * 7)])
    # Only heartbeats say that the second is over.
    running.wait_for_lines(2)
    assert running.lines[1].endswith(b",7\n")
    assert running.end() == 128 + signal.SIGINT


def test_what_cannot_be_received_is_one_sentence() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = run("run", "-e", RECORDS, "-i", f"udp://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"another process receives on port {port}" in done.stderr
    done = run("run", "-e", RECORDS, "-i", "udp://router:2055")
    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid address udp://router:2055: expected udp://ADDRESS:PORT" in done.stderr
