"""A slow reader of files of nfcapd in plain Python, the oracle of the kernel.

It shares no code with it, and uses nothing of gscope. Only blocks without compression are read.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Any

Record = dict[str, Any]
ODD = "odd"
MAX_INT = 2**63 - 1
MAX_MS = MAX_INT // 10**6 - 1


def read_file(data: bytes) -> list[tuple[int, Record | str]]:
    """Time and fields of each record, ``ODD`` for something that cannot be decoded."""
    created_s, appendix, blocks = (
        struct.unpack_from("<q", data, 8)[0],
        struct.unpack_from("<q", data, 24)[0],
        struct.unpack_from("<I", data, 36)[0],
    )
    found: list[tuple[int, Record | str]] = []
    state = State(min(max(created_s, 0), MAX_INT // 10**9) * 10**9)
    at = number = 0
    at = 40
    while appendix <= 0 or number < blocks:
        if at + 12 > len(data):
            if at < len(data):
                found.append((state.latest_ns, ODD))
            break
        _, size, kind, _ = struct.unpack_from("<IIHH", data, at)
        number += 1
        if size > 32 << 20:
            found.append((state.latest_ns, ODD))
            break
        content = data[at + 12 : at + 12 + size]
        if kind == 3:
            found += state.read_block(content)
        if len(content) < size:
            break
        at += 12 + size
    return found


class State:
    """What the records of a file have said so far."""

    def __init__(self, latest_ns: int) -> None:
        self.latest_ns = latest_ns
        self.exporters: dict[int, tuple[Any, int]] = {}
        self.intervals: dict[int, list[int]] = {}

    def read_block(self, data: bytes) -> list[tuple[int, Record | str]]:
        found: list[tuple[int, Record | str]] = []
        at = 0
        while at < len(data):
            kind, size = struct.unpack("<HH", data[at : at + 4].ljust(4, b"\0"))
            if size < 4 or at + max(size, 4) > len(data):
                return [*found, (self.latest_ns, ODD)]
            part = data[at : at + size]
            at += size
            if kind == 11:
                found.append(self.flow(part))
            elif kind == 7 and size >= 32:
                self.note_exporter(part)
            elif kind == 15 and size >= 24:
                number, packets, space = struct.unpack_from("<H10xII", part, 4)
                if packets:
                    self.note_interval(number, (packets + space) // packets)
            elif kind == 9 and size >= 16:
                interval, number = struct.unpack_from("<I2xH", part, 8)
                self.note_interval(number, interval)
        return found

    def note_exporter(self, part: bytes) -> None:
        high, low, family, number, domain = struct.unpack_from("<QQHHI", part, 8)
        self.intervals.pop(number, None)
        self.exporters.pop(number, None)
        if family == 2:
            self.exporters[number] = IPv4Address(low & 0xFFFFFFFF), domain
        elif family == 10 and (high or low):
            self.exporters[number] = IPv6Address(high << 64 | low), domain

    def note_interval(self, number: int, interval: int) -> None:
        seen = self.intervals.setdefault(number, [])
        if interval != (seen[-1] if seen else 0):
            seen.append(interval)

    def flow(self, part: bytes) -> tuple[int, Record | str]:
        try:
            values, received_ms, flags, number = self.fields(part)
        except ValueError:
            return self.latest_ns, ODD
        intervals = self.intervals.get(number, [])
        values["sampling_interval"] = 1
        if flags & 2 and len(intervals) == 1 and intervals[0] > 1 and "packets" in values:
            counts = [divmod(values[name], intervals[0]) for name in ("packets", "bytes")]
            if not any(rest for _, rest in counts):
                values["packets"], values["bytes"] = (whole for whole, _ in counts)
                values["sampling_interval"] = intervals[0]
        if 0 < received_ms <= MAX_MS:
            self.latest_ns = received_ms * 10**6
        elif "last" in values:
            self.latest_ns = values["last"]
        return self.latest_ns, values

    def fields(self, part: bytes) -> tuple[Record, int, int, int]:
        if len(part) < 12:
            raise ValueError
        count, number, flags = struct.unpack_from("<H2xHB", part, 4)
        values: Record = {"srcPort": 0, "destPort": 0}
        if number in self.exporters:
            values["exporter"], values["domain"] = self.exporters[number]
        received_ms = 0
        at = 12
        for _ in range(count):
            if at + 4 > len(part):
                raise ValueError
            kind, size = struct.unpack_from("<HH", part, at)
            if size < 4 or at + size > len(part):
                raise ValueError
            data = part[at + 4 : at + size]
            at += size
            if kind == 1 and len(data) >= 48:
                received_ms = take_generic(values, data)
            else:
                take(values, kind, data)
        finish(values)
        return values, received_ms, flags, number


def take_generic(values: Record, data: bytes) -> int:
    first, last, received, packets, octets, *ports = struct.unpack_from("<5Q2H", data)
    protocol, flags, _, tos = data[44:48]
    for name, ms in (("first", first), ("last", last)):
        if 0 < ms <= MAX_MS:
            values[name] = ms * 10**6
    values |= {"packets": min(packets, MAX_INT), "bytes": min(octets, MAX_INT)}
    values |= {"srcPort": ports[0], "destPort": ports[1]}
    values |= {"protocol": protocol, "flags": flags, "tos": tos}
    return int(received)


def take(values: Record, kind: int, data: bytes) -> None:
    if kind == 2 and len(data) >= 8:
        values["srcIP"], values["destIP"] = v4(data), v4(data[4:])
    elif kind == 3 and len(data) >= 32:
        values["srcIP"], values["destIP"] = v6(data), v6(data[16:])
    elif kind == 4 and len(data) >= 12:
        values["input_interface"], values["output_interface"] = struct.unpack_from("<II", data)
        values["src_mask"], values["dest_mask"], values["direction"] = data[8:11]
    elif kind == 6 and len(data) >= 8:
        values["vlan"] = min(struct.unpack_from("<I", data)[0], 0xFFFF)
    elif kind == 7 and len(data) >= 8:
        values["srcAS"], values["destAS"] = struct.unpack_from("<II", data)
    elif kind in (10, 12) and len(data) >= 4:
        values["next_hop" if kind == 10 else "exporter"] = v4(data)
    elif kind in (11, 13) and len(data) >= 16:
        values["next_hop" if kind == 11 else "exporter"] = v6(data)


def v4(data: bytes) -> IPv4Address:
    return IPv4Address(struct.unpack_from("<I", data)[0])


def v6(data: bytes) -> IPv6Address:
    high, low = struct.unpack_from("<QQ", data)
    return IPv6Address(high << 64 | low)


def finish(values: Record) -> None:
    if "srcIP" in values:
        values["ipversion"] = values["srcIP"].version
    protocol = values.get("protocol")
    if protocol is not None and protocol not in (6, 17, 132):
        if protocol in (1, 58):
            values["type"], values["code"] = divmod(values["destPort"], 256)
        values["srcPort"] = values["destPort"] = 0
