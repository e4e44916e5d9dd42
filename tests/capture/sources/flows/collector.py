"""A slow collector: decodes exports in plain Python, with dictionaries and exceptions.

It is the oracle of the kernels, with which it shares no code; of gscope it uses nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

Record = dict[str, Any]
MALFORMED, WITHOUT_TEMPLATE = "malformed", "without template"
VARIABLE = 65535

NUMBERS = {
    1: ("bytes", 8),
    2: ("packets", 8),
    4: ("protocol", 1),
    5: ("tos", 1),
    7: ("srcPort", 2),
    9: ("src_mask", 1),
    10: ("input_interface", 4),
    11: ("destPort", 2),
    13: ("dest_mask", 1),
    14: ("output_interface", 4),
    16: ("srcAS", 4),
    17: ("destAS", 4),
    29: ("src_mask", 1),
    30: ("dest_mask", 1),
    58: ("vlan", 2),
    60: ("ipversion", 1),
    61: ("direction", 1),
    85: ("bytes", 8),
    86: ("packets", 8),
    176: ("type", 1),
    177: ("code", 1),
    178: ("type", 1),
    179: ("code", 1),
    243: ("vlan", 2),
}
ADDRESSES = {
    8: ("srcIP", 4),
    12: ("destIP", 4),
    15: ("next_hop", 4),
    27: ("srcIP", 16),
    28: ("destIP", 16),
    62: ("next_hop", 16),
}
TIMES = {
    21: ("last", "uptime"),
    22: ("first", "uptime"),
    150: ("first", "s"),
    151: ("last", "s"),
    152: ("first", "ms"),
    153: ("last", "ms"),
    154: ("first", "ntp"),
    155: ("last", "ntp"),
    156: ("first", "ntp"),
    157: ("last", "ntp"),
    158: ("first", "back"),
    159: ("last", "back"),
}
NOTES = {
    34: "interval",
    50: "interval",
    305: "interval",
    306: "space",
    309: "size",
    310: "population",
    48: "sampler",
    302: "sampler",
    160: "start",
}


class Damaged(Exception):
    """The datagram contradicts itself."""


@dataclass
class Template:
    fields: list[tuple[int, int]]
    is_options: bool

    @property
    def least(self) -> int:
        return sum(1 if n == VARIABLE else n for _, n in self.fields)


@dataclass
class Stream:
    templates: dict[int, Template] = field(default_factory=dict)
    samplers: dict[int, int] = field(default_factory=dict)
    interval: int = 0
    start_ms: int = 0


class Collector:
    """Datagrams in, records and oddities out."""

    def __init__(self) -> None:
        self.streams: dict[tuple[Any, ...], Stream] = {}

    def take(self, data: bytes, exporter: str) -> list[Record | str]:
        """The records of an export, and a word for what could not be decoded."""
        version = int.from_bytes(data[:2], "big")
        if version == 5:
            return self._v5(data, exporter)
        if version == 10:
            _, _, seconds, _, domain = struct.unpack(">2H3I", data[:16])
            uptime, at = None, 16
        else:
            _, _, uptime, seconds, _, domain = struct.unpack(">2H4I", data[:20])
            at = 20
        stream = self.streams.setdefault((exporter, domain, version), Stream())
        head = {
            "exporter": ip_address(exporter),
            "domain": domain,
            "exported": seconds * 10**9,
        }
        found: list[Record | str] = []
        try:
            while at + 4 <= len(data):
                number, length = struct.unpack(">2H", data[at : at + 4])
                if length < 4 or at + length > len(data):
                    raise Damaged
                body = data[at + 4 : at + length]
                if number in ((0, 1) if version == 9 else (2, 3)):
                    is_options = number in (1, 3)
                    self._templates(stream, body, is_ipfix=version == 10, is_options=is_options)
                elif number >= 256 and number not in stream.templates:
                    found.append(WITHOUT_TEMPLATE)
                elif number >= 256:
                    self._data(stream, stream.templates[number], body, head, uptime, found)
                at += length
        except Damaged:
            found.append(MALFORMED)
        return found

    def _templates(self, stream: Stream, data: bytes, *, is_ipfix: bool, is_options: bool) -> None:
        at = 0
        while at + 4 <= len(data):
            number, count = struct.unpack(">2H", data[at : at + 4])
            if number < 256:
                if number == 0 or is_ipfix:
                    return
                raise Damaged
            at += 4
            skipped = 0
            if is_options and not (is_ipfix and count == 0):
                if at + 2 > len(data):
                    raise Damaged
                (word,) = struct.unpack(">H", data[at : at + 2])
                at += 2
                if not is_ipfix:
                    skipped = count // 4
                    count = skipped + word // 4
            fields = []
            stream.templates.pop(number, None)
            for index in range(count):
                if at + 4 > len(data):
                    raise Damaged
                element, length = struct.unpack(">2H", data[at : at + 4])
                at += 4
                if is_ipfix and element & 0x8000:
                    if at + 4 > len(data):
                        raise Damaged
                    at += 4
                    element = 0
                fields.append((0 if index < skipped else element, length))
            new = Template(fields, is_options)
            if 0 < new.least <= 65535:
                stream.templates[number] = new

    def _data(
        self,
        stream: Stream,
        template: Template,
        data: bytes,
        head: Record,
        uptime: int | None,
        found: list[Record | str],
    ) -> None:
        at = 0
        while at + template.least <= len(data):
            begin, values = at, []
            for element, length in template.fields:
                size = length
                if length == VARIABLE:
                    size, at = self._number(data, at, 1), at + 1
                    if size == 255:
                        size, at = self._number(data, at, 2), at + 2
                if at < 0 or at + size > len(data):
                    if len(data) - begin <= 3:
                        return
                    raise Damaged
                values.append((element, data[at : at + size]))
                at += size
            record, notes = self._record(stream, values, head, uptime)
            interval = self._interval(notes)
            if template.is_options:
                if notes.get("start", 0) > 0:
                    stream.start_ms = notes["start"]
                if interval:
                    stream.interval = interval
                    if "sampler" in notes:
                        stream.samplers[notes["sampler"]] = interval
                continue
            if not interval:
                interval = stream.samplers.get(notes.get("sampler", -1), 0) or stream.interval
            found.append(finished(record, interval))

    @staticmethod
    def _number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "big") if at + size <= len(data) else 1 << 20

    @staticmethod
    def _record(
        stream: Stream, values: list[tuple[int, bytes]], head: Record, uptime: int | None
    ) -> tuple[Record, dict[str, int]]:
        record, notes = dict(head), {}
        for element, data in values:
            if not data:
                continue
            number = int.from_bytes(data[-8:], "big")
            if element in NOTES:
                notes[NOTES[element]] = number if number < 1 << 63 else 0
            elif element in NUMBERS:
                name, width = NUMBERS[element]
                record[name] = min(number, (1 << 63) - 1 if width == 8 else (1 << 8 * width) - 1)
            elif element == 6:
                record["flags"] = number & 255
            elif element in ADDRESSES:
                name, size = ADDRESSES[element]
                if len(data) == size and (name not in record or any(data)):
                    record[name] = IPv4Address(data) if size == 4 else IPv6Address(data)
            elif element in (32, 139) and (number or "type" not in record):
                record["type"], record["code"] = number >> 8 & 255, number & 255
            elif element in TIMES:
                name, kind = TIMES[element]
                start = notes.get("start", 0) or stream.start_ms
                time = time_of(kind, data, number, head["exported"], uptime, start)
                if time is not None and 0 <= time < 1 << 63:
                    record[name] = time
        return record, notes

    @staticmethod
    def _interval(notes: dict[str, int]) -> int:
        if notes.get("population", 0) > 0 and notes.get("size", 0) > 0:
            return max(1, notes["population"] // notes["size"])
        interval, space = notes.get("interval", 0), notes.get("space", 0)
        if interval > 0 and space > 0:
            return (interval + min(space, (1 << 32) - 1)) // interval
        return interval

    @staticmethod
    def _v5(data: bytes, exporter: str) -> list[Record | str]:
        if len(data) < 24:
            return [MALFORMED]
        _, count, uptime, seconds, ns, _, engine, sampling = struct.unpack(">2H4I2H", data[:24])
        head = {
            "exporter": ip_address(exporter),
            "domain": engine,
            "exported": seconds * 10**9 + min(ns, 10**9 - 1),
        }
        found: list[Record | str] = []
        for at in range(24, 24 + 48 * count, 48):
            part = data[at : at + 48]
            if len(part) < 48:
                return [*found, MALFORMED]
            names = (
                *("input_interface", "output_interface", "packets", "bytes", "first", "last"),
                *("srcPort", "destPort", "flags", "protocol", "tos", "srcAS", "destAS"),
                *("src_mask", "dest_mask"),
            )
            record = dict(zip(names, struct.unpack(">2H4I2Hx3B2H2B2x", part[12:]), strict=True))
            for name in ("first", "last"):
                record[name] = uptime_time(head["exported"], uptime, record[name])
            for index, name in enumerate(("srcIP", "destIP", "next_hop")):
                record[name] = IPv4Address(part[4 * index : 4 * index + 4])
            found.append(finished(head | record | {"ipversion": 4}, sampling & 0x3FFF))
        return found


def uptime_time(exported: int, uptime: int, then: int) -> int:
    back = (uptime - then) % (1 << 32)
    return exported - (back - (1 << 32) if back >= 1 << 31 else back) * 10**6


def time_of(
    kind: str, data: bytes, number: int, exported: int, uptime: int | None, start_ms: int
) -> int | None:
    if kind == "uptime":
        if uptime is None and start_ms <= 0:
            return None
        at_export = exported // 10**6 - start_ms if uptime is None else uptime
        return uptime_time(exported, at_export, number)
    if kind == "ntp":
        if len(data) != 8:
            return None
        seconds = number >> 32
        seconds += (1 << 32 if seconds < 2_208_988_800 else 0) - 2_208_988_800
        return seconds * 10**9 + ((number & 0xFFFFFFFF) * 10**9 >> 32)
    if kind == "back":
        return exported - (number & 0xFFFFFFFF) * 1000
    largest_ms = ((1 << 63) - 1) // 10**6 - 1
    limit = largest_ms if kind == "ms" else largest_ms // 1000
    return number * (10**6 if kind == "ms" else 10**9) if number <= limit else None


def finished(record: Record, interval: int) -> Record:
    """The record with the fields that follow from others."""
    record = {"srcPort": 0, "destPort": 0, **record}
    record["sampling_interval"] = min(max(interval, 1), (1 << 32) - 1)
    address = record.get("srcIP", record.get("destIP"))
    if "ipversion" not in record and address is not None:
        record["ipversion"] = address.version
    protocol = record.get("protocol")
    if protocol is not None and protocol not in (6, 17, 132):
        if protocol in (1, 58) and "type" not in record:
            record["type"], record["code"] = divmod(record["destPort"], 256)
        record["srcPort"] = record["destPort"] = 0
    return record
