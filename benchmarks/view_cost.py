"""What the live view costs: CPU of the supervisor with ``-o view`` and with ``-o ndjson``.

    python -m benchmarks.view_cost [--rate 100000] [--seconds 30] [--size 160x50]

Needs root: it creates a network of its own. Each run captures packets of 16,384 flows on one side
of a veth pair and answers two queries whose epochs are seconds; one has a row for each of 2,048
sources. The CPU is that of the supervisor alone, from /proc, which delivers the rows and draws. The
first ten seconds, in which the run starts, are left out. The difference of the two runs is the
view.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from benchmarks.live_network import DEVICE, SENDER, enter_own_network

SETTLE_S = 10.0
QUERIES = (
    "DEFINE { query_name sources; } SELECT second, srcIP, count(*) AS packets, sum(len) AS bytes"
    " FROM IP GROUP BY second(time), srcIP",
    "DEFINE { query_name load; } SELECT second, interface, count(*) AS packets FROM PKT"
    " GROUP BY second(time), interface",
)
_CONTROLLED = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)
_RECEIVED = re.compile(r"([\d,]+) packets received = [^;]*")


def _cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(kind: str, rate: int, seconds: float, size: tuple[int, int]) -> str:
    """Run once, and return what the supervisor used and lost."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (size[1], size[0]))
    said: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(master, 65_536):
                said.append(data)
        except OSError:
            pass

    with tempfile.TemporaryDirectory() as work_dir:
        command = [sys.executable, "-m", "gscope", "run", "-i", DEVICE, "-o", kind]
        command += ["--work-dir", work_dir, "--no-progress"]
        for query in QUERIES:
            command += ["-e", query]
        run = subprocess.Popen(
            [sys.executable, "-c", _CONTROLLED, *command],
            stdin=slave,
            stdout=slave if kind == "view" else subprocess.DEVNULL,
            stderr=slave,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(slave)
        threading.Thread(target=read, daemon=True).start()
        sender = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.live_sender",
                SENDER,
                str(rate),
                str(seconds + SETTLE_S + 15),
            ],
            stdout=subprocess.DEVNULL,
        )
        time.sleep(SETTLE_S + 5)
        began_s, before_s = time.monotonic(), _cpu_s(run.pid)
        time.sleep(seconds)
        used_s, passed_s = _cpu_s(run.pid) - before_s, time.monotonic() - began_s
        sender.wait()
        time.sleep(2)
        run.send_signal(signal.SIGINT)
        run.wait()
    text = b"".join(said).decode(errors="replace")
    found = _RECEIVED.findall(text)
    account = _RECEIVED.search(text[text.rfind("gscope: ") :]) if found else None
    share = used_s / passed_s
    drawn = sum(map(len, said)) / (seconds + SETTLE_S + 15)
    return (
        f"{kind:7} {share:6.2%} of a core, {drawn / 1e3:.1f} kB/s to the terminal;"
        f" {account[0] if account else 'no summary'}"
    )


def main() -> None:
    """Measure both formats."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--size", default="160x50")
    options = parser.parse_args()
    columns, lines = (int(part) for part in options.size.split("x"))
    enter_own_network()
    for kind in ("ndjson", "view"):
        print(measure(kind, options.rate, options.seconds, (columns, lines)), flush=True)


if __name__ == "__main__":
    main()
