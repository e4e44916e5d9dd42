"""The capture of ``make demo``: 20,000 packets of synthetic traffic over some forty seconds.

python -m benchmarks.demo_trace PATH
"""

from __future__ import annotations

import sys
from pathlib import Path

from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap

PACKETS = 20_000
PROFILE = TrafficProfile(packets_per_second=500, flows=400, clients=50, servers=30)

if __name__ == "__main__":
    write_pcap(PROFILE, Path(sys.argv[1]), PACKETS)
