"""The exports over which the example of ``docs/flow_records.md`` is answered.

``python -m tests.docs.exports DIR`` writes them as the capture ``exports.pcap``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.capture.sources.flows.exports import (
    capture_of,
    set_of,
    template,
    udp_packet,
    v5,
    v5_record,
    v9,
    v9_options,
)

WEB, DNS = (50000, 443), (50001, 53)


def write_exports(folder: Path) -> Path:
    """Write records of two routers: one samples one in 100 packets, one datagram is missing."""
    elements = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (2, 4), (1, 4)]
    options = v9_options(257, [(1, 4)], [(34, 4)])
    first = v9([set_of(0, template(256, elements)), set_of(1, options)], 0)
    interval = v9([set_of(257, bytes((0, 0, 0, 0, 0, 0, 0, 100)))], 1)
    flows = [
        (10, 0, 0, 1, 192, 0, 2, 80, 195, 80, 1, 187, 6, 0, 0, 0, 4, 0, 0, 20, 0),
        (10, 0, 0, 2, 192, 0, 2, 80, 195, 81, 1, 187, 6, 0, 0, 0, 1, 0, 0, 5, 220),
    ]
    sampled = [
        v9([set_of(256, bytes(flow) * 2, 2)], number)
        for flow, number in zip(flows, (2, 4), strict=True)
    ]
    whole = [
        v5(
            [
                v5_record("10.0.0.1", "192.0.2.80", WEB, 6, (10, 9000)),
                v5_record("10.0.0.3", "192.0.2.53", DNS, 17, (1, 70)),
            ]
        ),
        v5([v5_record("10.0.0.3", "192.0.2.80", WEB, 6, (7, 3000))], 2),
    ]
    packets = [
        *(udp_packet(each, "198.51.100.1") for each in (first, interval, *sampled)),
        *(udp_packet(each, "198.51.100.2") for each in whole),
    ]
    path = folder / "exports.pcap"
    path.write_bytes(capture_of(packets, 20 * 10**9))
    return path


if __name__ == "__main__":
    write_exports(Path(sys.argv[1]))
