"""The captures of the benchmarks, made once in ``benchmarks/out/`` from a fixed profile.

    python -m benchmarks.trace [--packets 10000000]

A capture is written to a temporary name and renamed when complete. ``warm`` reads it into the page
cache.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).parent / "out"
PACKETS = 10_000_000
_VERSION = 1
"""Part of the file name; raise it whenever the traffic of the generator changes."""


def trace(packets: int = PACKETS) -> Path:
    """Return the path of the capture of ``packets`` packets; make it if it does not exist."""
    path = OUT / f"flows-v{_VERSION}-{packets}.pcap"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        print(f"making {path} …", file=sys.stderr)
        # In a process of its own: numpy's memory would count towards the contestants' peak.
        code = (
            "import sys; "
            "from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap; "
            "write_pcap(TrafficProfile(), sys.argv[1], int(sys.argv[2]))"
        )
        partial = path.with_suffix(".partial")
        subprocess.run([sys.executable, "-c", code, str(partial), str(packets)], check=True)
        partial.rename(path)
    return path


def warm(path: Path) -> None:
    """Read a file once, so that it is in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    print(trace(parser.parse_args().packets))


if __name__ == "__main__":
    _main()
