"""The LFTA stage alone: a capture in the page cache → partial aggregates on disk.

    python -m benchmarks.lfta_stage [--packets N] [--runs 5] [--bits 14 16 18]

gscope runs in a fresh process with a compiled kernel: the race measures the whole process, a second
table the stage itself. The C twin shows what a compiler makes of the same work, and ``tcpdump -w
/dev/null`` the cost of merely reading the packets with libpcap. Outputs stay in the page cache;
no process calls fsync.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import RUNS, Contestant, chosen, race, run_once, table, write_csv
from benchmarks.trace import OUT, PACKETS, trace, warm

TWIN_SOURCE = Path(__file__).parent / "lfta_twin.c"
SLOT_BITS = (14, 16, 18)
STAGE_OPTIONS = {
    "gscope": (),
    "gscope, reader thread": ("--read-ahead",),
    "gscope, 64 partitions": ("--partitions", "64"),
    "gscope, two links, one thread": ("--links", "2", "--threads", "1"),
    "gscope, two links, two threads": ("--links", "2", "--threads", "2"),
}
LINKS = {name: 2 for name in STAGE_OPTIONS if "two links" in name}
"""The links of contestants that have several; each has all packets of the capture."""


def compile_twin(folder: Path = OUT) -> Path:
    """Compile the C twin for this machine; return the program."""
    folder.mkdir(exist_ok=True)
    program = folder / "lfta_twin"
    flags = ["-O3", "-march=native", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, str(TWIN_SOURCE), "-o", str(program)], check=True)
    return program


def contestants(capture: Path, slot_bits: tuple[int, ...]) -> list[Contestant]:
    """Return the contestants whose program is installed."""
    found = [Contestant(name, (_stage_command(name, capture),)) for name in STAGE_OPTIONS]
    if shutil.which("gcc"):
        program = str(compile_twin())
        output = str(OUT / "lfta_twin.rows")
        found += [
            Contestant(f"C twin, 2^{bits} slots", ((program, str(capture), output, str(bits)),))
            for bits in slot_bits
        ]
    if shutil.which("tcpdump"):
        command = ("tcpdump", "-r", str(capture), "-w", "/dev/null")
        found.append(Contestant("tcpdump -w /dev/null", (command,)))
    return found


def _figures(name: str) -> Path:
    """Return the file in which runs of gscope record the cost of the stage itself."""
    return OUT / f"{name.replace(', ', '-').replace(' ', '-')}.figures"


def _stage_command(name: str, capture: Path) -> tuple[str, ...]:
    figures, folder = str(_figures(name)), str(OUT / "stage-log")
    module = (sys.executable, "-m", "benchmarks.stage_once")
    return (*module, str(capture), folder, figures, *STAGE_OPTIONS[name])


def stage_table(names: list[str], packets: int, runs: int) -> str:
    """Return medians of the last ``runs`` records of the stage itself as a Markdown table."""
    lines = ["| the stage itself | wall s | CPU s | Mpkt/s (wall) | Mpkt/s (CPU) |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name in names:
        records = [line.split() for line in _figures(name).read_text().splitlines()[-runs:]]
        wall, cpu = (statistics.median(float(line[n]) for line in records) for n in range(2))
        passed = packets * LINKS.get(name, 1)
        rates = f"{passed / wall / 1e6:.2f} | {passed / cpu / 1e6:.2f}"
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {rates} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--bits", type=int, nargs="+", default=SLOT_BITS, help="log2 of the slots")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these contestants")
    arguments = parser.parse_args()
    capture = trace(arguments.packets)
    warm(capture)
    field = chosen(contestants(capture, tuple(arguments.bits)), arguments.only)
    for contestant in field:
        # Compilation and caching on first use are not part of the race.
        run_once(contestant)
    costs = race(field, arguments.runs)
    print(table(costs, arguments.packets))
    ours = [one.name for one in field if one.name in STAGE_OPTIONS]
    print(stage_table(ours, arguments.packets, arguments.runs) if ours else "")
    write_csv(costs, OUT / "lfta_stage.csv")


if __name__ == "__main__":
    _main()
