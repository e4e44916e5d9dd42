"""Whole columns of DNS messages against the reader of one payload."""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.functions.application import READERS, read
from gscope.engine.functions.base import Outcome
from gscope.engine.functions.dns_columns import ITEMS, DnsMessages
from gscope.engine.spark.tasks.columns import TaskRows
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.application import SEGMENT_BYTES
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

PAYLOAD = Column("payload", GsqlType.STRING, is_nullable=True)
TAIL = b"\x00\x1c\x00\x01"
PLAIN = b"\x12\x34\x85\x83\x00\x01\x00\x02\x00\x00\x00\x00\x03wWw\x07eXample\x03com\x00" + TAIL


def name_of(labels: Sequence[bytes]) -> bytes:
    return b"".join(bytes([len(each)]) + each for each in labels) + b"\x00"


LABELS = st.one_of(
    st.sampled_from([b"www", b"Example", b"COM", b"a.", b".", b"\xc3\xbc", b"\xff", b"x" * 63]),
    st.binary(min_size=1, max_size=70),
)
NAMES = st.lists(LABELS, max_size=5).map(name_of)
COUNTS = st.sampled_from([0, 1, 2, 65_535])
HEADERS = st.builds(
    lambda *words: struct.pack(">HHHHHH", *words),
    st.sampled_from([0, 20, 0x1234, 65_535]),
    st.integers(0, 0xFFFF),
    *(COUNTS for _ in range(4)),
)
MESSAGES = st.builds(
    lambda header, name, tail, end: (header + name + tail)[:end],
    HEADERS,
    st.one_of(NAMES, st.just(b"\xc0\x0c")),
    st.one_of(st.just(TAIL), st.binary(max_size=6)),
    st.none() | st.integers(0, 60),
)
PAYLOADS = st.one_of(
    st.none(),
    st.binary(max_size=30),
    MESSAGES,
    # Behind its length, as in TCP, and padded beyond what functions read.
    MESSAGES.map(lambda message: len(message).to_bytes(2) + message),
    MESSAGES.map(lambda message: message + bytes(1500)),
    st.just(PLAIN),
)


def check(payloads: list[bytes | None], column: pa.Array | pa.ChunkedArray) -> None:
    """Compare the functions of a column with what the reader finds in each payload."""
    rows = TaskRows.of_table(pa.table({"payload": column}))
    for function in READERS:
        found = [(None, None) if each is None else read(function, each) for each in payloads]
        values = [value for value, _ in found]
        if function == "dns_address":
            values = [None if each is None else int(each).to_bytes(16) for each in values]
        assert rows.column(call(function, PAYLOAD)).to_pylist() == values, function
        outcomes = Counter(outcome for _, outcome in found)
        for outcome in (Outcome.DAMAGED, Outcome.FOREIGN):
            assert rows.outcomes[function][outcome] == outcomes[outcome], function


@given(payloads=st.lists(PAYLOADS, max_size=12), begin=st.integers(0, 3))
def test_a_column_has_the_items_that_the_reader_finds(
    payloads: list[bytes | None], begin: int
) -> None:
    whole = pa.array(payloads, pa.binary())
    check(payloads, whole)
    check(payloads[begin:], whole.slice(begin))
    check(payloads, pa.chunked_array([whole[:begin], whole[begin:]]))
    check(payloads, whole.dictionary_encode())


def test_a_name_of_the_longest_kind_is_read_and_a_longer_one_is_not() -> None:
    def message(last: int) -> bytes:
        return PLAIN[:12] + name_of([b"a" * 63] * 3 + [b"b" * last]) + TAIL

    check([message(62), message(63)], pa.array([message(62), message(63)]))


@pytest.mark.parametrize("function", sorted(ITEMS))
def test_plain_messages_are_not_left_to_the_reader(function: str) -> None:
    root = PLAIN[:12] + b"\x00" + TAIL
    other = b"GET / HTTP/1.1\r\n"
    request = PLAIN[:2] + b"\x01\x00" + PLAIN[4:]
    payloads = pa.array([PLAIN, other, root, None, request], pa.binary())
    item = DnsMessages(payloads).item(function)
    assert item.rest.tolist() == [False, True, False, False, False]
    of_request = function not in ("dns_rcode", "dns_authoritative")
    assert item.values.is_valid().to_pylist() == [True, False, True, False, of_request]


def test_items_are_read_from_as_many_bytes_as_the_catalog_says() -> None:
    assert {FUNCTIONS[function].needs_bytes for function in ITEMS} == {SEGMENT_BYTES}


def test_names_that_are_not_plain_ascii_are_left_to_the_reader() -> None:
    names = [[b"www", b"com"], [b"\xc3\xbc", b"com"], [b"com", b"a."], [b"www", b"x.y"]]
    messages = pa.array([PLAIN[:12] + name_of(each) + TAIL for each in names], pa.binary())
    assert DnsMessages(messages).qname().rest.tolist() == [False, True, True, False]
    assert not DnsMessages(messages).qtype().rest.any()
