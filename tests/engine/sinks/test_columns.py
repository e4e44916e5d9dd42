from __future__ import annotations

import ipaddress
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.columns import as_text, escape, readable, readable_schema
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType

_V4 = bytes(10) + b"\xff\xff"


def _one(kind: GsqlType, values: pa.Array) -> pa.ChunkedArray:
    schema = Schema((ColumnSchema("x", kind, True),))
    table = readable(pa.table({"x": values}), schema)
    assert table.schema == readable_schema(schema)
    return table["x"]


@given(st.lists(st.one_of(st.none(), st.ip_addresses(v=4), st.ip_addresses(v=6))))
def test_addresses_are_written_as_people_write_them(
    addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address | None],
) -> None:
    packed = [
        None if a is None else (_V4 + a.packed if a.version == 4 else a.packed) for a in addresses
    ]
    expected = [
        None if p is None else str(ipaddress.IPv6Address(p).ipv4_mapped or ipaddress.IPv6Address(p))
        for p in packed
    ]
    shown = _one(GsqlType.IP, pa.array(packed, pa.binary(16))).to_pylist()
    assert [s and ipaddress.ip_address(s) for s in shown] == [
        e and ipaddress.ip_address(e) for e in expected
    ]
    assert all("." not in s or s.count(".") == 3 for s in shown if s)


@given(st.lists(st.ip_addresses(v=4), min_size=1))
def test_plain_ipv4_columns_take_the_fast_way_to_the_same_text(
    addresses: list[ipaddress.IPv4Address],
) -> None:
    column = pa.array([_V4 + a.packed for a in addresses], pa.binary())
    assert _one(GsqlType.IP, column).to_pylist() == [str(a) for a in addresses]
    assert _one(GsqlType.IP, column.slice(1)).to_pylist() == [str(a) for a in addresses[1:]]


@given(st.binary())
def test_escaped_bytes_are_printable(value: bytes) -> None:
    assert escape(value).isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"GET /", "GET /"),
        ("Grüße 本".encode(), "Grüße 本"),
        (b"a\nb\t\r\x00\x1b[31m", r"a\nb\t\r\x00\x1b[31m"),
        (b"\xff\xfe", r"\xff\xfe"),
        (rb"\x00 \n", r"\\x00 \\n"),
        ("\x85\u200b\U000e0001".encode(), r"\u0085\u200b\U000e0001"),
    ],
)
def test_control_characters_and_other_bytes_are_escaped(value: bytes, shown: str) -> None:
    assert escape(value) == shown


ESCAPE = re.compile(r"\\\\|\\x(..)|\\u(....)|\\U(........)|\\([nrt])")


def unescaped(shown: str) -> bytes:
    """Return the bytes that an escaped text represents, by the rules of the documentation."""
    made, at = b"", 0
    for match in ESCAPE.finditer(shown):
        made += shown[at : match.start()].encode()
        at = match.end()
        byte, short, long, letter = match.groups()
        if byte:
            made += bytes.fromhex(byte)
        elif short or long:
            made += chr(int(short or long, 16)).encode()
        else:
            made += {"n": b"\n", "r": b"\r", "t": b"\t", None: b"\\"}[letter]
    return made + shown[at:].encode()


@given(
    st.one_of(
        st.binary(max_size=20),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(str.encode),
        st.text("\\xn0u\x00\n\x85\ue000\U000e0001", max_size=8).map(str.encode),
    )
)
def test_escaped_bytes_can_be_distinguished_from_their_text(value: bytes) -> None:
    assert unescaped(escape(value)) == value


def test_bytes_of_packets_stay_bytes_and_have_a_text() -> None:
    schema = Schema((ColumnSchema("x", GsqlType.STRING, True, is_binary=True),))
    values = [b"\x00", b"\\x00", b"", None]
    for column in (
        pa.array(values, pa.binary()),
        pa.array([v and v.decode("iso-8859-1") for v in values[:2]] + ["", None], pa.string()),
    ):
        table = readable(pa.table({"x": column}), schema)
        assert table.schema == readable_schema(schema)
        assert table["x"].to_pylist() == values
        shown = as_text(table["x"].combine_chunks()).to_pylist()
        assert shown == [r"\x00", r"\\x00", "", None]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=20))))
def test_strings_of_spark_and_of_the_log_show_the_same(values: list[bytes | None]) -> None:
    logged = pa.array(values, pa.binary())
    spark = pa.array([v and v.decode("iso-8859-1") for v in values], pa.string())
    spark = pa.array(
        ["" if v == b"" else s for v, s in zip(values, spark.to_pylist(), strict=True)]
    )
    spark = spark.cast(pa.string())
    assert _one(GsqlType.STRING, logged) == _one(GsqlType.STRING, spark)


def test_other_types_have_their_text() -> None:
    assert _one(GsqlType.MAC, pa.array([0x0102030A0B0C, None])).to_pylist() == [
        "01:02:03:0a:0b:0c",
        None,
    ]
    times = _one(GsqlType.TIMESTAMP, pa.array([1_000_000_001, None]))
    assert as_text(times.combine_chunks()).to_pylist() == ["1970-01-01 00:00:01.000000001Z", None]
    assert _one(GsqlType.INT, pa.array([1], pa.int32())).type == pa.int64()
    assert _one(GsqlType.BOOL, pa.array([True])).to_pylist() == [True]


def test_an_empty_column_stays_empty() -> None:
    for kind, values in (
        (GsqlType.IP, pa.array([], pa.binary(16))),
        (GsqlType.MAC, pa.array([], pa.int64())),
    ):
        assert len(_one(kind, values)) == 0


def test_a_dictionary_column_is_decoded() -> None:
    values = pa.array([b"eth0", b"eth0"]).dictionary_encode()
    assert _one(GsqlType.STRING, values).to_pylist() == ["eth0", "eth0"]
