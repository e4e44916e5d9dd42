"""The text of columns of addresses, compared with Python's ipaddress and with the C library."""

from __future__ import annotations

import ipaddress
import itertools
import random
import socket

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.addresses import addresses_as_text
from gscope.engine.sinks.columns import readable
from gscope.engine.sinks.parallel import ROWS_AT_ONCE
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType

_ZEROS = bytes(10)
_MANY = 5000
"""More rows than decide whether the addresses of a column are repeated."""


def expected(packed: bytes | None) -> str | None:
    """Return the text of one address, with the families of decision 24."""
    if packed is None:
        return None
    if packed[:12] == _ZEROS + b"\xff\xff":
        return str(ipaddress.IPv4Address(packed[12:]))
    if packed[:12] == _ZEROS + b"\xff\xfe":
        return f"::ffff:{ipaddress.IPv4Address(packed[12:])}"
    return str(ipaddress.IPv6Address(packed))


def shown(values: list[bytes | None], kind: pa.DataType | None = None) -> list[str | None]:
    texts = addresses_as_text(pa.array(values, kind or pa.binary(16)))
    texts.validate(full=True)
    assert texts.type == pa.string()
    return list(texts.to_pylist())


_GROUPS = st.one_of(
    st.just(0), st.sampled_from([1, 0xF, 0x10, 0x100, 0xFFF, 0x1000, 0xFFFF]), st.integers(0, 65535)
)
_SPARSE = st.lists(_GROUPS, min_size=8, max_size=8).map(
    lambda groups: b"".join(group.to_bytes(2) for group in groups)
)
_LAST_OCTETS = st.binary(min_size=4, max_size=4)
_PREFIXES = [
    bytes(12),
    _ZEROS + b"\xff\xff",
    _ZEROS + b"\xff\xfe",
    _ZEROS + b"\xff\xfd",
    bytes(8) + b"\0\1\xff\xff",
    bytes(8) + b"\xff\xff\0\0",
    bytes.fromhex("0064ff9b") + bytes(8),
]
_ADDRESSES = st.one_of(
    st.binary(min_size=16, max_size=16),
    _SPARSE,
    st.tuples(st.sampled_from(_PREFIXES), _LAST_OCTETS).map(b"".join),
)
_COLUMNS = st.lists(st.one_of(st.none(), _ADDRESSES), max_size=30)


@given(_COLUMNS, st.sampled_from([pa.binary(16), pa.binary()]))
def test_addresses_have_the_text_of_ipaddress(
    values: list[bytes | None], kind: pa.DataType
) -> None:
    assert shown(values, kind) == [expected(value) for value in values]


@given(st.lists(_ADDRESSES, min_size=1, max_size=30))
def test_addresses_of_ipv6_have_the_text_of_the_c_library(values: list[bytes]) -> None:
    # The C library writes dots into addresses that begin with 96 zero bits, too.
    plain = [v for v in values if v[:10] != _ZEROS]
    assert shown(list(plain)) == [socket.inet_ntop(socket.AF_INET6, value) for value in plain]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0:0:0:0:0:0:0:0", "::"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("1:0:0:0:0:0:0:0", "1::"),
        ("0:0:1:1:1:1:1:1", "::1:1:1:1:1:1"),
        ("1:1:1:1:1:1:0:0", "1:1:1:1:1:1::"),
        ("0:0:1:1:1:1:0:0", "::1:1:1:1:0:0"),
        ("1:0:0:1:0:0:0:1", "1:0:0:1::1"),
        ("1:0:0:1:1:0:0:1", "1::1:1:0:0:1"),
        ("0:1:1:1:1:1:1:1", "0:1:1:1:1:1:1:1"),
        ("1:1:1:1:1:1:1:0", "1:1:1:1:1:1:1:0"),
        ("1:0:1:0:1:0:1:0", "1:0:1:0:1:0:1:0"),
        ("2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"),
        ("0:0:0:0:0:0:a00:1", "::a00:1"),
        ("0:0:0:0:0:ffff:a00:1", "10.0.0.1"),
        ("0:0:0:0:0:fffe:a00:1", "::ffff:10.0.0.1"),
        ("0:0:0:0:0:fffe:0:0", "::ffff:0.0.0.0"),
        ("0:0:0:0:ffff:0:a00:1", "::ffff:0:a00:1"),
        ("64:ff9b:0:0:0:0:a00:1", "64:ff9b::a00:1"),
    ],
)
def test_the_longest_run_of_zero_groups_is_abbreviated(address: str, text: str) -> None:
    packed = b"".join(int(group, 16).to_bytes(2) for group in address.split(":"))
    assert shown([packed]) == [text]
    assert shown([packed] * _MANY) == [text] * _MANY


def test_zero_groups_may_be_anywhere() -> None:
    values = [
        b"".join(group.to_bytes(2) for group in groups)
        for groups in itertools.product((0, 0xA0), repeat=8)
    ]
    assert shown([*values]) == [expected(value) for value in values]


def test_groups_and_octets_may_have_any_value() -> None:
    groups = [bytes.fromhex("20010db8") + bytes(10) + n.to_bytes(2) for n in range(1 << 16)]
    inner = [value[:4] + value[14:] + value[4:14] for value in groups]
    octets = [_ZEROS + b"\xff\xff" + bytes(n if k == m else 9 for k in range(4))
              for n in range(256) for m in range(4)]  # fmt: skip
    values = [*groups, *inner, *octets]
    assert shown([*values]) == [expected(value) for value in values]


@pytest.mark.parametrize("distinct", [1, 3, 400, _MANY])
@pytest.mark.parametrize("has_nulls", [False, True])
def test_long_columns_of_few_and_of_many_addresses(distinct: int, has_nulls: bool) -> None:
    chance = random.Random(distinct)
    some: list[bytes | None] = [
        chance.choice(_PREFIXES) + chance.randbytes(4)
        if chance.random() < 0.7
        else b"".join(chance.choice((0, 0, 7, 0xBEEF)).to_bytes(2) for _ in range(8))
        for _ in range(distinct)
    ]
    if has_nulls:
        some[0] = None
    values = [*some, *chance.choices(some, k=3 * _MANY)]
    chance.shuffle(values)
    assert shown(values) == [expected(value) for value in values]


@pytest.mark.parametrize("kind", [pa.binary(16), pa.binary()])
@pytest.mark.parametrize("count", [0, 1, _MANY])
def test_columns_without_any_address(kind: pa.DataType, count: int) -> None:
    assert shown([None] * count, kind) == [None] * count


@given(_COLUMNS, st.integers(0, 9), st.integers(0, 9))
def test_slices_show_their_rows_alone(values: list[bytes | None], begin: int, rows: int) -> None:
    column = pa.array(values, pa.binary(16)).slice(begin, rows)
    texts = addresses_as_text(column)
    assert texts.to_pylist() == [expected(value) for value in values[begin : begin + rows]]


def test_what_lies_under_a_null_is_not_shown() -> None:
    values = b"".join(bytes([n]) * 16 for n in range(8))
    column = pa.Array.from_buffers(
        pa.binary(16), 8, [pa.py_buffer(bytes([0b1010_0101])), pa.py_buffer(values)]
    )
    assert addresses_as_text(column).to_pylist() == [
        expected(bytes([n]) * 16) if n in (0, 2, 5, 7) else None for n in range(8)
    ]


@pytest.mark.parametrize("is_encoded", [False, True])
def test_tables_of_several_chunks_longer_than_a_piece(is_encoded: bool) -> None:
    chance = random.Random(5)
    some = [None, *(chance.choice(_PREFIXES) + chance.randbytes(4) for _ in range(3000))]
    values = chance.choices(some, k=2 * ROWS_AT_ONCE + 5)
    chunks = [pa.array(values[b:e], pa.binary(16)) for b, e in itertools.pairwise(
        (0, 0, 7, ROWS_AT_ONCE + 1, len(values)))]  # fmt: skip
    if is_encoded:
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    table = pa.table({"x": pa.chunked_array(chunks)}).slice(3)
    schema = Schema((ColumnSchema("x", GsqlType.IP, True),))
    texts = readable(table, schema)["x"]
    texts.validate(full=True)
    assert texts.to_pylist() == [expected(value) for value in values[3:]]
    assert readable(table.slice(0, 0), schema)["x"].to_pylist() == []
