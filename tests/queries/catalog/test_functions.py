"""What the scalar functions mean, and that the table of them is sound."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.addresses import parse_ip
from gscope.queries.catalog.scalar.conversions import format_float
from gscope.queries.expressions.expressions import Column, Literal, PacketField, Value
from gscope.queries.expressions.types import GsqlType

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
NAN = math.nan


def ip(text: str) -> int:
    value = parse_ip(text)
    assert value is not None
    return value


CASES: list[tuple[str, tuple[Value, ...], Value]] = [
    ("add_int", (HIGHEST, 1), LOWEST),
    ("idiv_int", (-7, 2), -3),
    ("idiv_int", (LOWEST, -1), LOWEST),
    ("idiv_int", (1, 0), None),
    ("mod_int", (-7, 2), -1),
    ("mod_int", (7, -2), 1),
    ("shl", (1, 63), LOWEST),
    ("shl", (1, 64), 0),
    ("shl", (5, LOWEST), None),
    ("shr", (-8, 1), -4),
    ("shr", (-8, 64), -1),
    ("shr", (7, HIGHEST), 0),
    ("shr", (7, -1), None),
    ("abs_int", (LOWEST,), LOWEST),
    ("div_float", (1.0, 0.0), None),
    ("eq", (NAN, NAN), True),
    ("gt", (NAN, math.inf), True),
    ("eq", (-0.0, 0.0), True),
    ("lt", (b"\x7f", b"\x80"), True),
    ("and", (None, False), False),
    ("and", (None, True), None),
    ("or", (None, True), True),
    ("case", (None, 1, True, 2, 3), 2),
    ("case", (False, 1, 3), 3),
    ("coalesce", (None, 2), 2),
    ("in", (3, 1, 3), True),
    ("like", (b"GET /a\nb", b"GET%b"), True),
    ("like", (b"a%", rb"a\%"), True),
    ("like", (b"ab", rb"a\%"), False),
    ("float_to_int", (1e300,), None),
    ("float_to_int", (2.0**63,), None),
    ("float_to_int", (-(2.0**63),), LOWEST),
    ("float_to_int", (math.inf,), None),
    ("float_to_int", (NAN,), None),
    ("bool_to_string", (True,), b"true"),
    ("float_to_int", (-1.9,), -1),
    ("round_float", (-2.5,), -3.0),
    ("round_float", (0.49999999999999994,), 0.0),
    ("pow", (-8.0, 1 / 3), None),
    ("pow", (-10.0, 309.0), -math.inf),
    ("sqrt", (-1.0,), None),
    ("string_to_int", (b"12x",), None),
    ("string_to_int", (b"9223372036854775808",), None),
    ("string_to_int", (b"-12",), -12),
    ("ip_to_int", (ip("1.2.3.4"),), 0x01020304),
    ("ip_to_int", (ip("::1"),), None),
    ("ip_mask", (ip("10.1.2.255"), 0xFFFFFFF0), ip("10.1.2.240")),
    ("ip_mask", (ip("2001:db8::1:ff"), 0xFFFFFFF0), ip("2001:db8::1:f0")),
    ("ip_mask", (ip("2001:db8::1:2:3:4"), -1 << 32), ip("2001:db8::1:2:0:0")),
    ("ip_mask", (ip("::ffff:10.0.0.1"), 0x3FF000000FF), ip("::3ff:0:1")),
    ("ip_mask", (ip("::ffff:10.0.0.1"), -256), ip("::ffff:10.0.0.0")),
    ("prefix", (ip("10.1.2.3"), 24, 64), ip("10.1.2.0")),
    ("prefix", (ip("2001:db8:1:2:3::"), 24, 32), ip("2001:db8::")),
    ("in_net", (ip("10.1.2.3"), ip("10.0.0.0"), 104), True),
    ("is_private", (ip("172.32.0.1"),), False),
    ("is_private", (ip("fd00::1"),), True),
    ("string_to_ip", (b"10.0.0.1",), ip("10.0.0.1")),
    ("string_to_ip", (b"10.0.0.256",), None),
    ("ip_to_string", (ip("2001:0db8::0"),), b"2001:db8::"),
    ("mac_to_string", (0x0001020A0B0C,), b"00:01:02:0a:0b:0c"),
    ("ts_diff", (2_500_000, 1_000_000), 1.5),
    ("ts_idiv", (120_000_000_000, 60_000_000_000), 2),
    ("timestamp_to_string", (1_500_000_000,), b"1970-01-01 00:00:01.500000000Z"),
    ("min_of", (None, 3, 2), 2),
    ("max_of", (None, None), None),
    ("str_match_start", (b"GET /", b"GET"), True),
    ("str_match_offset", (4, b"/", b"GET /"), True),
    ("str_match_offset", (-1, b"/", b"GET /"), False),
    ("byte_match_offset", (0, 71, b"GET"), True),
    ("byte_match_offset", (3, 71, b"GET"), False),
    ("str_extract_regex", (b"x\r\nHost: a.b\r\n", b"[Hh]ost: [a-z.]*"), b"Host: a.b"),
    ("str_extract_regex", (b"", b"a"), None),
    ("str_truncate", (b"abc", 2), b"ab"),
    ("str_truncate", (b"abc", -2), b""),
    ("str_suffix", (b"abc", 2), b"bc"),
    ("str_suffix", (b"abc", 9), b"abc"),
    ("str_find", (b"abc", b"c"), 2),
    ("lower", (b"\xc4A",), b"\xc4a"),
    ("to_hex", (b"\x00\xff",), b"00ff"),
    ("to_int", (b"\x01\x00",), 256),
    ("string_hash", (b"a",), 0xAF63DC4C8601EC8C - (1 << 64)),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), CASES)
def test_functions_mean_what_they_say(
    function: str, arguments: tuple[Value, ...], expected: Value
) -> None:
    assert FUNCTIONS[function].evaluate(*arguments) == expected


def test_every_entry_is_filed_under_its_name() -> None:
    assert all(name == entry.name for name, entry in FUNCTIONS.items())


@settings(deadline=None)
@given(INT64, INT64)
def test_division_and_remainder_belong_together(a: int, b: int) -> None:
    quotient = FUNCTIONS["idiv_int"].evaluate(a, b)
    rest = FUNCTIONS["mod_int"].evaluate(a, b)
    if b == 0:
        assert quotient is None
        assert rest is None
    else:
        product = FUNCTIONS["mul_int"].evaluate(quotient, b)
        assert FUNCTIONS["add_int"].evaluate(product, rest) == a


@settings(deadline=None)
@given(INT64, INT64)
def test_integer_results_stay_in_64_bits(a: int, b: int) -> None:
    for name in ("add_int", "sub_int", "mul_int", "bit_xor", "shl", "shr"):
        result = FUNCTIONS[name].evaluate(a, b)
        is_undefined = name in ("shl", "shr") and b < 0
        assert result is None if is_undefined else LOWEST <= result <= HIGHEST  # type: ignore[operator]


@settings(deadline=None)
@given(st.floats())
def test_a_float_comes_back_from_its_text(value: float) -> None:
    back = float(format_float(value).replace("Infinity", "inf"))
    assert back == value or math.isnan(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.5, "12.5"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (1e-3, "0.001"),
        (-1.25e-4, "-1.25E-4"),
    ],
)
def test_floats_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert format_float(value) == text


def test_a_strict_function_of_null_is_null() -> None:
    expression = call("add_int", Column("a", GsqlType.INT, True), Literal(1, GsqlType.INT))
    assert expression.is_nullable
    assert evaluate(expression, lambda _: None) is None
    assert evaluate(expression, lambda _: 2) == 3


def test_division_by_a_constant_is_not_nullable() -> None:
    time = PacketField("time", GsqlType.INT, False)
    assert not call("idiv_int", time, Literal(60, GsqlType.INT)).is_nullable
    assert call("idiv_int", time, Literal(0, GsqlType.INT)).is_nullable
    assert call("idiv_int", time, time).is_nullable


def test_case_is_null_only_by_its_results() -> None:
    condition = Column("c", GsqlType.BOOL, True)
    one = Literal(1, GsqlType.INT)
    assert not call("case", condition, one, one).is_nullable
    assert call("case", condition, one, Literal(None, GsqlType.INT)).is_nullable
    assert call("case", condition, one, one).type is GsqlType.INT
