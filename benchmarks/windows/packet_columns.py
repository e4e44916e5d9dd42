"""The times, IPv4 addresses and lengths of a capture of ``benchmarks.trace`` as Parquet.

    python -m benchmarks.windows.packet_columns CAPTURE PARQUET

A packet that is not IPv4 is left out. The capture has one record format (pcap, nanoseconds or
microseconds) and Ethernet without VLAN tags.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_HEADER = 24
_RECORD = 16
_ETHERNET = 14
_NANOSECONDS = 0xA1B23C4D


def columns(capture: Path) -> pa.Table:
    """Return the columns of a capture."""
    data = np.fromfile(capture, np.uint8)
    (magic,) = data[:4].view("<u4")
    fraction_ns = 1 if magic == _NANOSECONDS else 1000
    places = _places(data)
    words = data[places[:, None] + np.arange(_RECORD)].view("<u4")
    frames = places + _RECORD
    is_v4 = (data[frames + 12] == 8) & (data[frames + 13] == 0)
    frames, words = frames[is_v4], words[is_v4]
    addresses = data[frames[:, None] + np.arange(_ETHERNET + 12, _ETHERNET + 20)].view(">u4")
    times = words[:, 0].astype(np.int64) * 10**9 + words[:, 1].astype(np.int64) * fraction_ns
    return pa.table(
        {
            "time_ns": times,
            "src": addresses[:, 0].astype(np.int64),
            "dst": addresses[:, 1].astype(np.int64),
            "len": words[:, 3].astype(np.int64),
        }
    )


def _places(data: np.ndarray) -> np.ndarray:
    """Return where each record begins."""
    places, at, view = [], _HEADER, memoryview(data)
    while at + _RECORD <= len(data):
        places.append(at)
        at += _RECORD + int.from_bytes(view[at + 8 : at + 12], "little")
    return np.array(places)


if __name__ == "__main__":
    pq.write_table(columns(Path(sys.argv[1])), sys.argv[2])
