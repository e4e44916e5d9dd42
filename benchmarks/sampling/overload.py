"""An overloaded capture on virtual Ethernet, with thresholds that follow the load and without.

    python -m benchmarks.sampling.overload [--share 0.1] [--calm 15000] [--load 100000]
        [--seconds 10 30 40] [--flows 2000] [--bytes 512] [--ring 16M] [--mode off auto]

Needs root, control groups and tcpdump. The daemon may use a share of one core. The query searches
each packet for twelve texts and groups by addresses and ports, in epochs of a second. Packets come
at a rate that the daemon can take, then at about twice of what it can take, then again at the first
rate. tcpdump captures the same packets with the same timestamps (a socket that wants timestamps
lets the kernel stamp each packet once), and a replay of its file gives the full answer.

A second query, which is not sampled, counts packets of each 10 ms: where it counts fewer than the
replay does, the kernel dropped packets. Rows are compared as they are. The rows of an epoch are the
sample of one threshold if no missing group has a hash below one that is there. Writes
``benchmarks/sampling/overload.csv``, one row for each second, and ``benchmarks/out/overload.png``
if matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.records import write_records
from benchmarks.sampling.lost_groups import Second, Verdict, compared
from benchmarks.sampling.slow_daemon import Look, daemon_of, limited, wait_until, watched
from benchmarks.trace import OUT
from gscope.capture.settings import CaptureSettings
from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CSV = Path(__file__).with_name("overload.csv")
PATIENCE_S = 120.0
SETTLE_S = 3.0
SO_TIMESTAMPNS = 35
TEXTS = (
    "select from passwd", "GET /admin", "shadow", "cmd.exe", "powershell", "eval(base64",
    "/etc/hosts", "wget http", "xp_cmdshell", "<script>", "union all", "../../",
)  # fmt: skip
_FOUND = ", ".join(f"bool_or(str_exists_substr[data, '{t}']) AS t{n}" for n, t in enumerate(TEXTS))
QUERIES = f"""
DEFINE {{ query_name scan; }}
SELECT tb, srcIP, destIP, srcPort, destPort, count(*) AS packets, sum(len) AS bytes, {_FOUND}
FROM IP GROUP BY time AS tb, srcIP, destIP, srcPort, destPort;

DEFINE {{ query_name arrivals; }}
SELECT slot, count(*) AS packets FROM IP GROUP BY time_ns/10000000 AS slot NOT SAMPLED;
"""


@dataclass(frozen=True, slots=True)
class Observed:
    """What one run left.

    Attributes:
        live: the folder of its answers.
        full: the folder of the answers of a replay of what tcpdump captured.
        seed: the seed of its sample.
        began_s: when each phase began, and the last one ended.
        looks: what the daemon reported.
        summary: what the run reported at its end.
        witness: what tcpdump reported at its end.
    """

    live: Path
    full: Path
    seed: int
    began_s: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    summary: str = ""
    witness: str = ""


def observe(given: argparse.Namespace, mode: str, folder: Path) -> Observed:
    """Run the queries while packets are sent, then replay what tcpdump captured."""
    pcap, live = folder / "witness.pcap", folder / "live"
    with _witness(pcap, folder / "witness.txt"), _run(given, mode, folder) as process:
        wait_until(lambda: (live / "scan.csv").exists(), PATIENCE_S, "the start of the run")
        (run_dir,) = (folder / "work").glob("run-*")
        settings = CaptureSettings.from_json((run_dir / CAPTURE_SETTINGS_FILE).read_bytes())
        seed = settings.shedding.seed if settings.shedding is not None else 0
        found = Observed(live, folder / "full", seed)
        wait_until(lambda: bool(_statistics(run_dir)), PATIENCE_S, "the counters")
        with limited(daemon_of(run_dir), given.share), watched(run_dir) as looks:
            # Until Spark has answered an epoch.
            _send(given, given.calm, 1.0)
            rows = live / "scan.csv"
            wait_until(lambda: rows.read_bytes().count(b"\n") > 1, PATIENCE_S, "the first row")
            time.sleep(SETTLE_S)
            for rate, seconds in zip(
                (given.calm, given.load, given.calm), given.seconds, strict=True
            ):
                found.began_s.append(time.time())
                _send(given, rate, seconds)
            found.began_s.append(time.time())
            time.sleep(SETTLE_S)
            found.looks.extend(looks)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    command = [*_gscope("replay", f"main={pcap}"), "-w", str(found.full), "--quiet"]
    subprocess.run(command, check=True)
    summary = (folder / "summary.txt").read_text()
    return Observed(
        live, found.full, seed, found.began_s, found.looks, summary,
        (folder / "witness.txt").read_text(),
    )  # fmt: skip


def _gscope(*words: str) -> list[str]:
    return [sys.executable, "-m", "gscope", *words, "-e", QUERIES, "-o", "csv"]


def _statistics(run_dir: Path) -> str:
    path = run_dir / "capture" / "stats.json"
    return path.read_text() if path.exists() else ""


@contextmanager
def _run(given: argparse.Namespace, mode: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = _gscope("run", "-i", f"main={DEVICE}", "--shedding", mode, "--ring", given.ring)
    command += ["-w", str(folder / "live"), "--work-dir", str(folder / "work"), "--no-progress"]
    with (folder / "summary.txt").open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def _witness(pcap: Path, words: Path) -> Iterator[None]:
    """Capture all packets with tcpdump, stamped once for all who capture them."""
    command = ["tcpdump", "-n", "-i", DEVICE, "-w", str(pcap), "-B", str(256 << 10), "-Z", "root"]
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stamped,
        words.open("wb") as errors,
    ):
        stamped.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        process = subprocess.Popen([*command, "--time-stamp-precision=nano"], stderr=errors)
        try:
            wait_until(lambda: b"istening" in words.read_bytes(), PATIENCE_S, "tcpdump")
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _send(given: argparse.Namespace, rate: int, seconds: float) -> None:
    sizes = ("--flows", str(given.flows), "--bytes", str(given.bytes))
    command = (sys.executable, "-m", "benchmarks.live_sender", SENDER, str(rate), str(seconds))
    done = subprocess.run([*command, *sizes], check=True, capture_output=True)
    sent = json.loads(done.stdout)
    print(f"sent {sent['sent']:,} packets in {sent['seconds']:.1f} s", file=sys.stderr)


def report(mode: str, found: Observed, verdict: Verdict) -> None:
    """Print what a run showed."""
    print(f"--shedding {mode}: {found.summary.strip()}")
    print(f"  {' '.join(found.witness.split()[-15:])}")
    if verdict.last_drop_s is None:
        print("  the kernel dropped nothing")
    else:
        print(
            f"  {verdict.dropped:,} packets dropped, from {verdict.first_drop_s:.2f} to"
            f" {verdict.last_drop_s:.2f} s after the onset; {verdict.dropped_later:,} of them later"
            " than one second after it"
        )
    print(f"  {verdict.text}")
    least = min(each.rate for each in found.looks)
    print(f"  least rate reported {least:.3g}")
    ended_s = found.began_s[2]
    whole = [x.at_s for x in found.looks if x.at_s > ended_s and x.rate == 1]
    if least < 1:
        print(
            f"  the rate was 1 again {whole[0] - ended_s:.1f} s after the load had gone"
            if whole
            else f"  the rate was {found.looks[-1].rate:.3g} at the end"
        )


def plot(rows: Sequence[Second], path: Path) -> None:
    """Plot packets, drops, rates and exact groups over the time."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, PercentFormatter
    except ImportError:
        return
    modes = list(dict.fromkeys(row.mode for row in rows))
    figure = Figure(figsize=(6.4 * len(modes), 6.4))
    axes = figure.subplots(2, len(modes), squeeze=False, sharex=True, sharey="row")
    for number, mode in enumerate(modes):
        shown = [row for row in rows if row.mode == mode]
        at = [row.second for row in shown]
        upper, lower = axes[0][number], axes[1][number]
        upper.plot(at, [row.packets for row in shown], label="packets that arrive")
        upper.plot(at, [row.dropped for row in shown], label="packets that the kernel drops")
        upper.set_title(f"--shedding {mode}")
        upper.set_ylabel("packets in a second")
        upper.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
        for part, label in (("exact", "groups with exact values"), ("wrong", "wrong groups")):
            lower.plot(at, [getattr(row, part) / max(1, row.groups) for row in shown], label=label)
        lower.plot(at, [row.rate for row in shown], "--", label="sampling rate")
        lower.set_ylabel("share of the groups of a second")
        lower.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        lower.set_xlabel("seconds after the onset of the overload")
        for axis in (upper, lower):
            axis.legend(fontsize=8, loc="best")
            axis.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--share", type=float, default=0.1, help="of one core, for the daemon")
    parser.add_argument("--calm", type=int, default=15_000, help="packets a second")
    parser.add_argument("--load", type=int, default=100_000, help="packets a second")
    parser.add_argument("--seconds", type=float, nargs=3, default=(10.0, 30.0, 40.0))
    parser.add_argument("--flows", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=512)
    parser.add_argument("--ring", default="16M")
    parser.add_argument("--mode", nargs="+", default=("off", "auto"))
    parser.add_argument("--keep", type=Path, help="keep the files of each run in this folder")
    given = parser.parse_args()
    enter_own_network()
    rows: list[Second] = []
    for mode in given.mode:
        with tempfile.TemporaryDirectory() as name:
            found = observe(given, mode, Path(name))
            verdict = compared(mode, given.load, found)
            rows += verdict.seconds
            report(mode, found, verdict)
            if given.keep is not None:
                shutil.copytree(name, given.keep / mode, dirs_exist_ok=True)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    write_records(rows, CSV)
    OUT.mkdir(exist_ok=True)
    plot(rows, OUT / "overload.png")


if __name__ == "__main__":
    _main()
