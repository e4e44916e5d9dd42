"""Messages as bytes: one framed, checked record each, for the log's index and between processes.

A record is a header of 12 bytes and a payload of compact JSON (ASCII)::

    u16 version (0x6701) | u16 check of the next 8 bytes
    | u32 length | u32 CRC-32 of payload | payload

all little-endian. The header has a check of its own, which distinguishes a damaged length from a
record that a crash cut off: the first is an error, the second ends the whole records.
"""

from __future__ import annotations

import json
import struct
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

from gscope.errors import StreamError
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.streams.gaps import HostGap
from gscope.queries.streams.loss_reasons import LOG
from gscope.queries.streams.losses import LossPeriod, LostRows, losses_of
from gscope.queries.streams.messages import (
    Base,
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Hop,
    Merged,
    Message,
    Punctuation,
    Record,
    RowGroup,
    Shed,
    Thinned,
)
from gscope.queries.streams.thresholds import ThresholdStep, schedule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.thresholds import ThresholdSchedule

VERSION = 0x6701
"""The first two bytes of every record; to be changed with the layout."""

MAX_PAYLOAD_BYTES = 16 << 20
"""A longer payload counts as damage, and is neither awaited nor allocated."""

_HEADER = struct.Struct("<HHII")
_CHECKED = struct.Struct("<II")


def encode(message: Record) -> bytes:
    """Return the record of ``message``.

    Raises:
        StreamError: the message is larger than a record may be.
    """
    payload = _to_json(_fields(message)).encode("ascii")
    if len(payload) > MAX_PAYLOAD_BYTES:
        problem = (
            f"a message of stream {message.stream!r} has {len(payload)} bytes, "
            f"limit {MAX_PAYLOAD_BYTES}"
        )
        raise StreamError(problem)
    checked = _CHECKED.pack(len(payload), crc32(payload))
    return VERSION.to_bytes(2, "little") + _header_check(checked) + checked + payload


def decode(record: bytes) -> Message:
    """Return the message of exactly one whole record.

    Raises:
        StreamError: the record is damaged or cut off, or followed by further bytes.
    """
    messages, end = decode_records(record)
    if len(messages) != 1 or end != len(record) or isinstance(messages[0], Base | Merged | Thinned):
        problem = f"{len(record)} bytes are not one whole message"
        raise StreamError(problem)
    return messages[0]


def decode_records(data: bytes) -> tuple[list[Record], int]:
    """Return all whole records from the beginning of ``data``, and the offset where the last ends.

    The bytes after that offset, if any, are the beginning of a record whose rest is missing.

    Raises:
        StreamError: a record is damaged; the message names its offset.
    """
    messages: list[Record] = []
    offset = 0
    size = len(data)
    while size - offset >= _HEADER.size:
        version, _, length, checksum = _HEADER.unpack_from(data, offset)
        if version != VERSION:
            raise _damaged(offset, f"begins with {version:#06x} instead of {VERSION:#06x}")
        if data[offset + 2 : offset + 4] != _header_check(data[offset + 4 : offset + 12]):
            raise _damaged(offset, "has a wrong header check")
        if length > MAX_PAYLOAD_BYTES:
            raise _damaged(offset, f"claims {length} bytes, limit {MAX_PAYLOAD_BYTES}")
        begin = offset + _HEADER.size
        if begin + length > size:
            break
        payload = data[begin : begin + length]
        if crc32(payload) != checksum:
            raise _damaged(offset, "has a wrong checksum")
        try:
            messages.append(_message(json.loads(payload)))
        except (ValueError, TypeError, RecursionError) as error:
            raise _damaged(offset, f"does not hold a message ({error})") from error
        offset = begin + length
    return messages, offset


def _damaged(offset: int, what: str) -> StreamError:
    return StreamError(f"the record at offset {offset} {what}")


def _header_check(checked: bytes) -> bytes:
    return (crc32(checked) & 0xFFFF).to_bytes(2, "little")


_to_json: Callable[[object], str] = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, allow_nan=False
).encode

_BATCH, _HEARTBEAT, _END, _SHED, _BASE, _MERGED, _THINNED = range(7)


def _fields(message: Record) -> list[object]:
    match message:
        case Batch():
            return [
                _BATCH,
                message.stream,
                message.sequence,
                message.path,
                message.rows,
                message.size_bytes,
                _extents(message),
                *([[astuple(group) for group in message.row_groups]] if message.row_groups else []),
            ]
        case Heartbeat():
            return [
                _HEARTBEAT,
                message.stream,
                message.sequence,
                message.identity,
                message.clock_ns,
                [(promise.column, promise.bound) for promise in message.punctuations],
                [
                    (hop.node, hop.arrived_ns, hop.queued_ns, hop.worked_ns, hop.counters)
                    for hop in message.trace
                ],
                *_optional_fields(message),
            ]
        case EndOfStream():
            return [_END, message.stream, message.sequence]
        case Shed():
            return [
                _SHED,
                message.stream,
                message.sequence,
                message.tuples,
                message.packets,
                _extents(message),
            ]
        case Base():
            return [
                _BASE,
                message.stream,
                message.sequence,
                message.counters,
                int(message.has_ended),
                None if message.beat is None else _fields(message.beat)[1:],
            ]
        case Merged():
            return [_MERGED, message.parts, *_fields(message.batch)[1:]]
        case Thinned():
            counts = [message.tuples, message.packets, message.freed_bytes]
            return [_THINNED, counts, *_fields(message.batch)[1:]]


def _optional_fields(message: Heartbeat) -> list[object]:
    """Return the last fields of a heartbeat, as far as it has them."""
    schedule = None if message.schedule is None else _schedule_fields(message.schedule)
    gaps = [(gap.host, gap.column, gap.least, gap.end) for gap in message.gaps]
    if message.losses is not None:
        return [schedule, gaps, _losses_fields(message.losses)]
    if gaps:
        return [schedule, gaps]
    return [] if schedule is None else [schedule]


def _losses_fields(losses: Losses) -> list[object]:
    periods = [(each.reason, each.first_ns, each.last_ns, each.packets) for each in losses.periods]
    return [periods, [_lost_fields(each) for each in losses.rows]]


def _lost_fields(rows: LostRows) -> list[object]:
    reason = [] if rows.reason == LOG else [rows.reason]
    return [rows.packets, _extents(rows), *reason]


def _schedule_fields(schedule: ThresholdSchedule) -> list[object]:
    steps = [(step.from_ns, step.threshold, step.ceiling) for step in schedule.steps]
    return [schedule.bound_ns, steps]


def _extents(message: Batch | Shed | LostRows) -> list[tuple[str, int, int]]:
    return [(extent.column, extent.least, extent.greatest) for extent in message.extents]


# Unpacking raises ValueError or TypeError for an invalid shape, ``_ensure`` for an invalid type.


def _message(fields: list[object]) -> Record:
    kind, *rest = fields
    if type(kind) is not int or kind not in _MAKERS:
        problem = f"unknown kind of message {kind!r}"
        raise ValueError(problem)
    return _MAKERS[kind](*rest)


def _batch(
    stream: str,
    sequence: int,
    path: str,
    rows: int,
    size_bytes: int,
    extents: list[list[object]],
    row_groups: list[list[object]] | None = None,
) -> Batch:
    _ensure(str, (stream, path))
    _ensure(int, (sequence, rows, size_bytes))
    return Batch(
        stream,
        sequence,
        path,
        rows,
        size_bytes,
        tuple(_extent(*e) for e in extents),
        () if row_groups is None else tuple(_row_group(*group) for group in row_groups),
    )


def _row_group(*numbers: Any) -> RowGroup:
    _ensure(int, numbers)
    return RowGroup(*numbers)


def _extent(column: object, least: object, greatest: object) -> Extent:
    if type(column) is not str or type(least) is not int or type(greatest) is not int:
        problem = "wrong type in an extent"
        raise TypeError(problem)
    if not MIN_INT <= least <= MAX_INT or not MIN_INT <= greatest <= MAX_INT:
        problem = "an extent exceeds 64 bits"
        raise ValueError(problem)
    return Extent(column, least, greatest)


def _heartbeat(
    stream: str,
    sequence: int,
    identity: int,
    clock_ns: int,
    punctuations: list[list[object]],
    trace: list[list[object]],
    schedule: list[Any] | None = None,
    gaps: list[list[object]] | None = None,
    losses: list[Any] | None = None,
) -> Heartbeat:
    _ensure(str, (stream,))
    _ensure(int, (sequence, identity, clock_ns))
    return Heartbeat(
        stream,
        sequence,
        identity,
        clock_ns,
        tuple(_punctuation(*p) for p in punctuations),
        tuple(_hop(*h) for h in trace),
        None if schedule is None else _schedule(*schedule),
        () if gaps is None else tuple(_gap(*gap) for gap in gaps),
        None if losses is None else _losses(*losses),
    )


def _punctuation(column: object, bound: object) -> Punctuation:
    if type(column) is not str or type(bound) is not int:
        problem = "wrong type in a punctuation"
        raise TypeError(problem)
    return Punctuation(column, bound)


def _gap(host: object, column: object, least: object, end: object) -> HostGap:
    if type(host) is not str or type(column) is not str:
        problem = "wrong type in a gap"
        raise TypeError(problem)
    if type(least) is not int or type(end) is not int:
        problem = "wrong type in a gap"
        raise TypeError(problem)
    return HostGap(host, column, least, end)


def _hop(*fields: object) -> Hop:
    node, arrived_ns, queued_ns, worked_ns, counters = fields
    if type(node) is not str or type(counters) is not list:
        problem = "wrong type in a hop"
        raise TypeError(problem)
    if type(arrived_ns) is not int or type(queued_ns) is not int or type(worked_ns) is not int:
        problem = "wrong type in a hop"
        raise TypeError(problem)
    return Hop(node, arrived_ns, queued_ns, worked_ns, _counters(counters))


def _schedule(bound_ns: object, steps: list[list[object]]) -> ThresholdSchedule:
    _ensure(int, (bound_ns,))
    return schedule_of(cast("int", bound_ns), [_step(*step) for step in steps])


def _step(from_ns: object, threshold: object, ceiling: object) -> ThresholdStep:
    if type(from_ns) is not int or type(threshold) is not int or type(ceiling) is not int:
        problem = "wrong type in a step of thresholds"
        raise TypeError(problem)
    return ThresholdStep(from_ns, threshold, ceiling)


def _losses(periods: list[list[object]], rows: list[list[object]]) -> Losses:
    return losses_of([_period(*each) for each in periods], [_lost_rows(*each) for each in rows])


def _period(reason: object, first_ns: object, last_ns: object, packets: object) -> LossPeriod:
    _ensure(str, (reason,))
    _ensure(int, (first_ns, last_ns, *(() if packets is None else (packets,))))
    return LossPeriod(
        cast("str", reason),
        cast("int", first_ns),
        cast("int", last_ns),
        cast("int | None", packets),
    )


def _lost_rows(packets: object, extents: object, reason: object = LOG) -> LostRows:
    _ensure(str, (reason,))
    _ensure(int, () if packets is None else (packets,))
    _ensure(list, (extents,))
    listed = cast("list[list[object]]", extents)
    return LostRows(
        tuple(_extent(*each) for each in listed), cast("int | None", packets), cast("str", reason)
    )


def _counters(value: list[object]) -> tuple[tuple[str, int], ...]:
    pairs: tuple[tuple[str, int], ...] = tuple((name, count) for name, count in value)  # type: ignore[misc, has-type]
    _ensure(str, (name for name, _ in pairs))
    _ensure(int, (count for _, count in pairs))
    return pairs


def _end(stream: str, sequence: int) -> EndOfStream:
    _ensure(str, (stream,))
    _ensure(int, (sequence,))
    return EndOfStream(stream, sequence)


def _shed(
    stream: str, sequence: int, tuples: int, packets: int | None, extents: list[list[object]]
) -> Shed:
    _ensure(str, (stream,))
    _ensure(int, (sequence, tuples, *(() if packets is None else (packets,))))
    if not 0 <= tuples <= MAX_INT or (packets is not None and not 0 <= packets <= MAX_INT):
        problem = "an invalid number of tuples or packets"
        raise ValueError(problem)
    return Shed(stream, sequence, tuples, packets, tuple(_extent(*e) for e in extents))


def _base(
    stream: str,
    sequence: int,
    counters: list[object],
    has_ended: int,
    beat: list[Any] | None = None,
) -> Base:
    _ensure(str, (stream,))
    _ensure(list, (counters, *(() if beat is None else (beat,))))
    _ensure(int, (sequence, has_ended))
    latest = None if beat is None else _heartbeat(*beat)
    return Base(stream, sequence, _counters(counters), bool(has_ended), latest)


def _merged(parts: list[int], *batch: Any) -> Merged:
    _ensure(list, (parts,))
    _ensure(int, parts)
    return Merged(_batch(*batch), tuple(parts))


def _thinned(counts: list[Any], *batch: Any) -> Thinned:
    tuples, packets, freed_bytes = counts
    _ensure(int, (tuples, freed_bytes, *(() if packets is None else (packets,))))
    return Thinned(_batch(*batch), tuples, packets, freed_bytes)


_MAKERS: dict[int, Callable[..., Record]] = {
    _BATCH: _batch,
    _HEARTBEAT: _heartbeat,
    _END: _end,
    _SHED: _shed,
    _BASE: _base,
    _MERGED: _merged,
    _THINNED: _thinned,
}


def _ensure(expected: type, values: Iterable[object]) -> None:
    """Refuse values of another type; ``bool`` is not accepted as ``int``, nor JSON's ``true``."""
    for value in values:
        if type(value) is not expected:
            problem = f"{value!r} is not of type {expected.__name__}"
            raise TypeError(problem)
