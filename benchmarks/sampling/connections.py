"""The workload of D1 to D3: TCP connections with losses, and a SYN flood in one minute.

    python -m benchmarks.sampling.connections [--per-minute 200000]

The experiments of the dissertation (2007) ran on live links of a carrier, which are not public. In
this trace connections begin evenly at random; nine in ten are answered, and the others repeat their
SYN twice. Servers send a heavy-tailed number of segments (Pareto, 1.3, at most 2,000). Four in five
connections lose nothing; of the others each segment is sent again with a probability that differs
from one to the next, a tenth in the mean. Clients acknowledge nothing: pure acknowledgements repeat
a sequence number, so they would hide the retransmissions that D2 is about.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.trace import OUT

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[Any]

PER_MINUTE = 200_000
MINUTES = 3
FLOODED = 1
"""The number of the minute with the flood."""

BEGIN_S = 1_700_000_040
"""The beginning of a minute, in seconds since 1970."""

SYN, ACK = 2, 16
"""Flags of TCP."""

_VERSION = 1
_SEGMENT = 1400
_HEADERS = 54
_RECORD = np.dtype([("s", "<u4"), ("ns", "<u4"), ("cap", "<u4"), ("len", "<u4"), ("data", "V54")])


@dataclass(frozen=True, slots=True)
class Packets:
    """Columns of packets: seconds since the beginning, addresses, ports and fields of TCP."""

    at: Array
    source: Array
    target: Array
    source_port: Array
    target_port: Array
    sequence: Array
    acknowledged: Array
    flags: Array
    payload: Array

    def taken(self, rows: Array) -> Packets:
        """Return the packets at ``rows``."""
        return Packets(*(getattr(self, name)[rows] for name in self.__slots__))

    @staticmethod
    def of_all(parts: list[Packets]) -> Packets:
        """Return the packets of all parts."""
        columns = ([getattr(part, name) for part in parts] for name in Packets.__slots__)
        return Packets(*(np.concatenate(column) for column in columns))


def connections(per_minute: int = PER_MINUTE, seed: int = 1) -> Packets:
    """Return the packets of all minutes in the order of time."""
    random = np.random.default_rng(seed)
    count = per_minute * MINUTES
    begin = random.random(count) * MINUTES * 60
    client = 0x0A000000 + np.minimum(random.pareto(0.6, count) * 40, 60_000).astype(np.int64)
    server = 0xC0A80000 + np.minimum(random.pareto(0.6, count) * 4, 2_000).astype(np.int64)
    ports = random.integers(1024, 65536, count), np.full(count, 443)
    numbers = random.integers(0, 1 << 32, (2, count))
    up = _packets(begin, (client, server), ports, numbers[0], 0, SYN)
    is_answered = random.random(count) < 0.9
    again = np.flatnonzero(~is_answered)
    answered_at = begin + random.lognormal(np.log(0.05), 0.8, count)
    down = _packets(
        answered_at, (server, client), ports[::-1], numbers[1], numbers[0] + 1, SYN | ACK
    )
    parts = [up, _later(up.taken(again), 1), _later(up.taken(again), 3)]
    parts += [down.taken(np.flatnonzero(is_answered))]
    parts += _segments(down, np.flatnonzero(is_answered), random)
    parts.append(_flood(per_minute * 3 // 2, int(server.min()), random))
    packets = Packets.of_all(parts)
    within = np.flatnonzero(packets.at < MINUTES * 60)
    return packets.taken(within[np.argsort(packets.at[within], kind="stable")])


def _segments(down: Packets, answered: Array, random: np.random.Generator) -> list[Packets]:
    """Return what servers send, and what they send again 200 ms later."""
    counts = np.minimum(1 + random.pareto(1.3, len(answered)), 2_000).astype(np.int64)
    rows = np.repeat(answered, counts)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    sent = down.taken(rows)
    segments = _packets(
        sent.at + 0.01 + number * 0.004,
        (sent.source, sent.target),
        (sent.source_port, sent.target_port),
        sent.sequence + 1 + number * _SEGMENT,
        sent.acknowledged,
        ACK,
        _SEGMENT,
    )
    losing = random.random(len(answered)) < 0.2
    loss = np.where(losing, random.beta(1, 9, len(answered)), 0)
    lost = np.flatnonzero(random.random(len(rows)) < np.repeat(loss, counts))
    return [segments, _later(segments.taken(lost), 0.2)]


def _flood(count: int, server: int, random: np.random.Generator) -> Packets:
    """Return SYNs from forged addresses in the flooded minute."""
    return _packets(
        (FLOODED + random.random(count)) * 60,
        (0xC6120000 + random.integers(0, 1 << 17, count), np.full(count, server)),
        (random.integers(1024, 65536, count), np.full(count, 443)),
        random.integers(0, 1 << 32, count),
        0,
        SYN,
    )


def _packets(
    at: Array,
    addresses: tuple[Array, Array],
    ports: tuple[Array, Array],
    sequence: Array,
    acknowledged: Array | int,
    flags: int,
    payload: int = 0,
) -> Packets:
    none = np.zeros(len(at), np.int64)
    numbers = (sequence % (1 << 32), (none + acknowledged) % (1 << 32), none + flags)
    return Packets(at, *addresses, *ports, *numbers, none + payload)


def _later(packets: Packets, seconds: float) -> Packets:
    columns = {name: getattr(packets, name) for name in Packets.__slots__}
    return Packets(**(columns | {"at": packets.at + seconds}))


def capture(per_minute: int = PER_MINUTE) -> Path:
    """Return the path of the trace as a capture; make it if it does not exist."""
    path = OUT / f"connections-v{_VERSION}-{per_minute}.pcap"
    if path.exists():
        return path
    OUT.mkdir(exist_ok=True)
    write_capture(connections(per_minute), path)
    return path


def write_capture(packets: Packets, path: Path) -> None:
    """Write packets as a capture with nanoseconds, replacing any file there."""
    records = np.zeros(len(packets.at), _RECORD)
    nanoseconds = np.round(packets.at * 1e9).astype(np.int64)
    records["s"] = BEGIN_S + nanoseconds // 10**9
    records["ns"] = nanoseconds % 10**9
    records["cap"] = _HEADERS
    records["len"] = _HEADERS + packets.payload
    records["data"] = _frames(packets).view("V54").reshape(-1)
    partial = path.with_suffix(".partial")
    magic = np.array([0xA1B23C4D, 4 << 16 | 2, 0, 0, 65535, 1], "<u4")
    with partial.open("wb") as file:
        file.write(magic.tobytes())
        records.tofile(file)
    partial.rename(path)


def _frames(packets: Packets) -> Array:
    """Return the first 54 bytes of each packet, a row each."""
    head = bytes.fromhex("020000000002020000000001" + "0800")
    ip = bytes.fromhex("4500000000000000400600000000000000000000")
    tcp = bytes.fromhex("0000000000000000000000005000ffff00000000")
    data = np.tile(np.frombuffer(head + ip + tcp, np.uint8), (len(packets.at), 1))
    fields = (
        (16, 2, 40 + packets.payload),
        (26, 4, packets.source),
        (30, 4, packets.target),
        (34, 2, packets.source_port),
        (36, 2, packets.target_port),
        (38, 4, packets.sequence),
        (42, 4, packets.acknowledged),
        (47, 1, packets.flags),
    )
    for begin, length, values in fields:
        shown = values.astype(f">u{length}").view(np.uint8).reshape(-1, length)
        data[:, begin : begin + length] = shown
    return data


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--per-minute", type=int, default=PER_MINUTE)
    print(capture(parser.parse_args().per_minute))


if __name__ == "__main__":
    _main()
