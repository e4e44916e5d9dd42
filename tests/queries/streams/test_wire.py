"""Messages survive the wire; damage never surprises."""

from __future__ import annotations

import json
import time
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.errors import StreamError
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.loss_reasons import REASONS
from gscope.queries.streams.losses import MOST_LOSSES, Losses, LossPeriod, LostRows
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
    RowGroup,
    Shed,
)
from gscope.queries.streams.thresholds import (
    FULL_THRESHOLD,
    MOST_STEPS,
    ThresholdSchedule,
    ThresholdStep,
)
from gscope.queries.streams.wire import MAX_PAYLOAD_BYTES, decode, decode_records, encode

NUMBERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
NAMES = st.text(max_size=12)
COUNTS = st.integers(0, MAX_TIME_NS)
EXTENTS = st.builds(Extent, NAMES, NUMBERS, NUMBERS)
ROW_GROUPS = st.builds(RowGroup, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
HOPS = st.builds(
    Hop,
    NAMES,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.lists(st.tuples(NAMES, NUMBERS), max_size=3).map(tuple),
)


@st.composite
def schedules(draw: st.DrawFn) -> ThresholdSchedule:
    times = [MIN_TIME_NS, *sorted(draw(st.sets(NUMBERS, max_size=3)) - {MIN_TIME_NS})]
    words = st.integers(0, FULL_THRESHOLD)
    pairs = [sorted((draw(words), draw(words))) for _ in times]
    steps = (ThresholdStep(time, *pair) for time, pair in zip(times, pairs, strict=True))
    return ThresholdSchedule(draw(NUMBERS), tuple(steps))


@st.composite
def losses(draw: st.DrawFn) -> Losses:
    packets = st.none() | st.integers(0, MAX_TIME_NS)
    periods = []
    for reason in draw(st.lists(st.sampled_from(REASONS), max_size=3)):
        first_ns, last_ns = sorted((draw(NUMBERS), draw(NUMBERS)))
        periods.append(LossPeriod(reason, first_ns, last_ns, draw(packets)))
    rows = draw(
        st.lists(st.builds(LostRows, st.lists(EXTENTS, max_size=2).map(tuple), packets), max_size=2)
    )
    return Losses(tuple(periods), tuple(rows))


SCHEDULES = schedules()
PUNCTUATIONS = st.builds(Punctuation, NAMES, NUMBERS)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        Batch,
        NAMES,
        NUMBERS,
        NAMES,
        NUMBERS,
        NUMBERS,
        st.lists(EXTENTS, max_size=3).map(tuple),
        st.lists(ROW_GROUPS, max_size=3).map(tuple),
    ),
    st.builds(
        Heartbeat,
        NAMES,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.lists(PUNCTUATIONS, max_size=3).map(tuple),
        st.lists(HOPS, max_size=3).map(tuple),
        st.none() | SCHEDULES,
        st.just(()),
        st.none() | losses(),
    ),
    st.builds(EndOfStream, NAMES, NUMBERS),
    st.builds(
        Shed, NAMES, NUMBERS, COUNTS, st.none() | COUNTS, st.lists(EXTENTS, max_size=3).map(tuple)
    ),
)
BEAT = Heartbeat(
    "flow@main1",
    7,
    3,
    1_700_000_000_000_000_000,
    (Punctuation("tb", 170_000_000),),
    (Hop("flow@main1", 1, 0, 20, (("packets_total", 5), ("late_tuples_total", 0))),),
)
BASES = st.builds(
    Base,
    NAMES,
    NUMBERS,
    st.lists(st.tuples(NAMES, NUMBERS), max_size=3).map(tuple),
    st.booleans(),
    st.sampled_from([None, BEAT]),
)


@given(MESSAGES)
def test_decode_is_the_inverse_of_encode(message: Message) -> None:
    assert decode(encode(message)) == message


@given(BASES)
def test_a_base_is_read_from_an_index_and_is_no_message(base: Base) -> None:
    record = encode(base)
    assert decode_records(record) == ([base], len(record))
    with pytest.raises(StreamError, match="not one whole message"):
        decode(record)


@given(st.lists(NUMBERS, max_size=3).map(tuple))
def test_a_merge_is_read_from_an_index_and_is_no_message(parts: tuple[int, ...]) -> None:
    merged = Merged(Batch("flow@main1", 7, "segments/x", 3, 99, (Extent("tb", 1, 2),)), parts)
    record = encode(merged)
    assert decode_records(record) == ([merged], len(record))
    with pytest.raises(StreamError, match="not one whole message"):
        decode(record)


@given(st.lists(MESSAGES, max_size=4), st.data())
def test_a_cut_tail_ends_what_is_whole(messages: list[Message], data: st.DataObject) -> None:
    records = [encode(message) for message in messages]
    stored = b"".join(records)
    cut = data.draw(st.integers(0, len(stored)))
    whole, end = decode_records(stored[:cut])
    assert whole == messages[: len(whole)]
    assert end == sum(len(record) for record in records[: len(whole)])
    assert len(whole) == len(messages) or cut < end + len(records[len(whole)])


@given(MESSAGES, st.data())
def test_a_changed_byte_is_never_taken_for_a_message(message: Message, data: st.DataObject) -> None:
    record = bytearray(encode(message))
    place = data.draw(st.integers(0, len(record) - 1))
    record[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StreamError):
        decode(bytes(record))


@given(st.binary(max_size=200))
def test_garbage_raises_nothing_but_stream_error(garbage: bytes) -> None:
    try:
        messages, _ = decode_records(garbage)
    except StreamError:
        return
    assert messages == []


@given(st.recursive(st.none() | st.booleans() | NUMBERS | NAMES, st.lists, max_leaves=20))
def test_a_whole_record_with_another_content_is_refused(content: object) -> None:
    with pytest.raises(StreamError, match="offset 0 "):
        decode_records(_framed(_json(content)))


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 100_000,
        b"[2,1,1]",
        b"[2,null,1]",
        b'[1,"s",1,1,1,{"a":1},[]]',
        b'[0,"s",1,"p",1,1,[],[[0,8,9]]]',
        b'[0,"s",1,"p",1,1,[],[[0,8,9,true]]]',
        b'[0,"s",1,"p",1,1,[],[7]]',
        b'[true,"s",1]',
        b'[2,"s",1e400]',
        b'[3,"s",1,-1,1,[]]',
        b'[3,"s",1,1,-1,[]]',
        b'[3,"s",1,1,9223372036854775808,[]]',
        b'[3,"s",1,1,1,[["tb",0,9223372036854775808]]]',
        b'[0,"s",1,"p",1,1,[["tb",-9223372036854775809,0]]]',
        b'[2,"s",' + b"9" * 5000 + b"]",
        b"\xff\xfe",
        b"",
    ],
)
def test_hostile_payloads_are_refused(payload: bytes) -> None:
    with pytest.raises(StreamError):
        decode_records(_framed(payload))


def test_damage_names_the_offset() -> None:
    record = encode(BEAT)
    damaged = bytearray(record * 2)
    damaged[-3] ^= 1
    with pytest.raises(StreamError, match=f"offset {len(record)} has a wrong checksum"):
        decode_records(bytes(damaged))


def test_a_damaged_length_is_not_taken_for_a_cut_tail() -> None:
    record = bytearray(encode(BEAT))
    record[5] ^= 1
    with pytest.raises(StreamError, match="header check"):
        decode_records(bytes(record))


def test_a_message_too_large_is_refused() -> None:
    with pytest.raises(StreamError, match="limit"):
        encode(EndOfStream("x" * MAX_PAYLOAD_BYTES, 0))


@pytest.mark.bench
def test_fifty_thousand_messages_a_second_each_way() -> None:
    count = 50_000
    begin = time.perf_counter()
    stored = b"".join(encode(BEAT) for _ in range(count))
    middle = time.perf_counter()
    messages, _ = decode_records(stored)
    end = time.perf_counter()
    assert len(messages) == count
    print(f"encode {count / (middle - begin):,.0f}/s decode {count / (end - middle):,.0f}/s")  # noqa: T201
    assert middle - begin < 1
    assert end - middle < 1


def _json(content: object) -> bytes:
    return json.dumps(content).encode()


def _framed(payload: bytes) -> bytes:
    checked = len(payload).to_bytes(4, "little") + crc32(payload).to_bytes(4, "little")
    return b"\x01\x67" + (crc32(checked) & 0xFFFF).to_bytes(2, "little") + checked + payload


FIRST = [MIN_TIME_NS, 5, 9]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [[0, 5, 9]],
        [FIRST, [7, 9, 5]],
        [FIRST, [7, -1, 5]],
        [FIRST, [7, 1, FULL_THRESHOLD + 1]],
        [FIRST, [7, 1, 5], [7, 1, 6]],
        [FIRST, [8, 1, 5], [7, 1, 5]],
        [FIRST, [7, 1.5, 5]],
        [FIRST, [7, True, 5]],
        [FIRST, [2**63, 1, 5]],
        [FIRST, [7, 1]],
        [[MIN_TIME_NS + n if n else MIN_TIME_NS, 1, 1] for n in range(MOST_STEPS + 1)],
    ],
)
def test_schedules_that_nothing_sends_are_damage(steps: list[list[object]]) -> None:
    def record(schedule: list[object]) -> bytes:
        fields = [1, "flow@main1", 7, 3, 0, [], [], schedule]
        payload = json.dumps(fields).encode()
        checked = len(payload).to_bytes(4, "little") + crc32(payload).to_bytes(4, "little")
        header = (crc32(checked) & 0xFFFF).to_bytes(2, "little")
        return (0x6701).to_bytes(2, "little") + header + checked + payload

    assert isinstance(decode(record([3, [FIRST, [7, 1, 5]]])), Heartbeat)
    with pytest.raises(StreamError, match="does not hold a message"):
        decode(record([3, steps]))


PERIOD = ["kernel", 5, 9, None]


@pytest.mark.parametrize(
    "losses",
    [
        [[["weather", 5, 9, 1]], []],
        [[["kernel", 9, 5, 1]], []],
        [[["kernel", 5, 9, -1]], []],
        [[["kernel", 5, 2**63, 1]], []],
        [[["kernel", 5.0, 9, 1]], []],
        [[["kernel", 5, 9]], []],
        [[PERIOD] * (MOST_LOSSES + 1), []],
        [[], [[-1, [["tb", 1, 2]]]]],
        [[], [[None, [["tb", 1]]]]],
        [[], [[None, "tb"]]],
        [[PERIOD]],
        5,
    ],
)
def test_losses_that_nothing_sends_are_damage(losses: object) -> None:
    assert isinstance(decode(_beat([[PERIOD], [[None, [["tb", 1, 2]]]]])), Heartbeat)
    with pytest.raises(StreamError, match="does not hold a message"):
        decode(_beat(losses))


def _beat(losses: object) -> bytes:
    payload = json.dumps([1, "flow@main1", 7, 3, 0, [], [], None, [], losses]).encode()
    checked = len(payload).to_bytes(4, "little") + crc32(payload).to_bytes(4, "little")
    header = (crc32(checked) & 0xFFFF).to_bytes(2, "little")
    return (0x6701).to_bytes(2, "little") + header + checked + payload
