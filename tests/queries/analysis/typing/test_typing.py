"""Which canonical functions an expression of the text becomes."""

from __future__ import annotations

import pytest

from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Filter, Project


def typed(expression: str, protocol: str = "TCP") -> Expression:
    plan = analyze([parse(f"SELECT {expression} AS x FROM {protocol}")], ("a",), {}, {})
    root = plan.queries[0].root
    assert isinstance(root, Project)
    return root.columns[0].expression


def shown(expression: Expression) -> str:
    match expression:
        case Call(function, arguments):
            return f"{function}({', '.join(shown(a) for a in arguments)})"
        case Literal(value):
            return f"{value:#x}" if isinstance(value, int) and value > 1 << 32 else repr(value)
        case PacketField(name) | Column(name):
            return name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time/60", "idiv_int(time, 60)"),
        ("time/(5*12)", "idiv_int(time, 60)"),
        ("time/60.0", "div_float(int_to_float(time), 60.0)"),
        ("len/caplen", "div_float(int_to_float(len), int_to_float(caplen))"),
        ("10/len", "div_float(10.0, int_to_float(len))"),
        ("len DIV caplen", "idiv_int(len, caplen)"),
        ("7/2", "3"),
        ("-7 % 2", "-1"),
        ("- len", "neg_int(len)"),
        ("~flags & 2", "bit_and(bit_not(flags), 2)"),
        ("0xFFFFFFFFFFFFFFFF", "-1"),
        ("srcIP & 0xFFFFFFF0", "ip_mask(srcIP, 4294967280)"),
        ("0xFFFFFFF0 & srcIP", "ip_mask(srcIP, 4294967280)"),
        ("srcIP = '10.0.0.1'", "eq(srcIP, 0xffff0a000001)"),
        ("srcIP = IP_VAL'10.0.0.1'", "eq(srcIP, 0xffff0a000001)"),
        ("srcIP > 5", "gt(srcIP, 0xffff00000005)"),
        ("srcIP IN ('10.0.0.1', '::1')", "in(srcIP, 0xffff0a000001, 1)"),
        ("srcMAC = 'aa:bb:cc:dd:ee:ff'", "eq(srcMAC, 0xaabbccddeeff)"),
        ("flags = TRUE", "eq(flags, 1)"),
        ("(len > 5) + 1", "add_int(bool_to_int(gt(len, 5)), 1)"),
        ("NOT SYN", "not(int_to_bool(SYN))"),
        ("len > 1.5", "gt(int_to_float(len), 1.5)"),
        ("len = NULL", "eq(len, None)"),
        ("len IS NOT NULL", "not(is_null(len))"),
        ("len BETWEEN 1 AND 5", "and(ge(len, 1), le(len, 5))"),
        ("len NOT IN (1, 2)", "not(in(len, 1, 2))"),
        ("len IN (1, NULL)", "or(in(len, 1), None)"),
        ("len IN (caplen, 1)", "or(in(len, 1), eq(len, caplen))"),
        ("TCP_data LIKE 'GET%'", "like(TCP_data, b'GET%')"),
        ("CASE WHEN len > 5 THEN 1 ELSE 2.5 END", "case(gt(len, 5), 1.0, 2.5)"),
        ("CASE len WHEN 5 THEN 1 END", "case(eq(len, 5), 1, None)"),
        ("if_else(SYN, len, 0)", "case(int_to_bool(SYN), len, 0)"),
        ("timestamp - timestamp", "ts_diff(timestamp, timestamp)"),
        ("timestamp + INTERVAL '1 sec'", "ts_add(timestamp, 1000000000)"),
        ("timestamp / INTERVAL '60 sec'", "ts_idiv(timestamp, 0xdf8475800)"),
        (
            "timestamp - timestamp > INTERVAL '2 sec'",
            "gt(ts_diff(timestamp, timestamp), 2000.0)",
        ),
        ("timestamp > '1970-01-01 00:00:01'", "gt(timestamp, 1000000000)"),
        ("in_net[srcIP, '10.0.0.0/8']", "in_net(srcIP, 0xffff0a000000, 104)"),
        ("in_net[srcIP, IP_VAL'10.0.0.0', 8]", "in_net(srcIP, 0xffff0a000000, 104)"),
        ("prefix(srcIP, 24)", "prefix(srcIP, 24, 128)"),
        ("abs(len)", "abs_int(len)"),
        ("FLOAT(len)", "int_to_float(len)"),
        ("floor(len/2.5)", "floor_float(div_float(int_to_float(len), 2.5))"),
        ("STRING(srcIP)", "ip_to_string(srcIP)"),
        ("min_of(len, 2.5)", "min_of(int_to_float(len), 2.5)"),
        ("sqrt(len)", "sqrt(int_to_float(len))"),
        ("str_match_start[TCP_data, 'GET']", "str_match_start(TCP_data, b'GET')"),
        ("inner.dstIP", "inner.destIP"),
        ("CAST(len AS DOUBLE)", "int_to_float(len)"),
        ("cast('12' AS bigint) + 1", "13"),
        ("'a' || srcPort", "concat(b'a', int_to_string(srcPort))"),
        ("concat(vlan, 'x')", "concat(coalesce(int_to_string(vlan), b''), b'x')"),
        ("substr('abcdef', 2, 3)", "b'bcd'"),
        ("substring('abcdef', 3)", "b'cdef'"),
        ("substr(TCP_data, 1, 4)", "str_truncate(TCP_data, 4)"),
        ("nullif(vlan, 0)", "case(eq(vlan, 0), None, vlan)"),
        ("greatest(len, 2.5)", "max_of(int_to_float(len), 2.5)"),
        ("least(len, 5)", "min_of(len, 5)"),
        ("mod(len, 7)", "mod_int(len, 7)"),
        ("time - time % 60", "mul_int(idiv_int(time, 60), 60)"),
        ("time - (len % 60)", "sub_int(time, mod_int(len, 60))"),
        ("INTERVAL '1 min' * 3", "0x29e8d60800"),
        ("INTERVAL '1 week' - INTERVAL '6 day 23 hour'", "0x34630b8a000"),
        ("timestamp + INTERVAL '1 min 30 sec'", "ts_add(timestamp, 0x14f46b0400)"),
        ("SYN IS TRUE", "is_true(int_to_bool(SYN))"),
        ("SYN IS NOT FALSE", "not(is_true(not(int_to_bool(SYN))))"),
        ("vlan IS DISTINCT FROM 7", "is_distinct(vlan, 7)"),
        ("vlan IS NOT DISTINCT FROM 7", "not(is_distinct(vlan, 7))"),
        ("in_net[srcIP, destIP]", "eq(srcIP, destIP)"),
        ("in_net[srcIP, destIP, 24]", "in_subnet(srcIP, destIP, 24)"),
        ("prefix(srcIP, ttl)", "prefix_of(srcIP, ttl, 128)"),
        (
            "srcIP IN ('10.0.0.1', 5, '2001:db8::/32')",
            "or(in(srcIP, 0xffff0a000001, 0xffff00000005), "
            "in_net(srcIP, 0x20010db8000000000000000000000000, 32))",
        ),
        ("srcIP NOT IN ('10.0.0.0/8')", "not(in_net(srcIP, 0xffff0a000000, 104))"),
        ("SrcIP", "srcIP"),
        ("tcp.FYN", "FIN"),
        ("NULL", "None"),
    ],
)
def test_text_becomes_canonical_functions(text: str, expected: str) -> None:
    protocol = "TCP tcp" if text.startswith("tcp.") else "TCP"
    assert shown(typed(text, protocol)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("5", "gt(len, 5)"), ("-0x10", "gt(len, -16)")],
)
def test_parameters_are_put_in_place(given: str, expected: str) -> None:
    query = parse("PARAM { least INT; } SELECT time FROM TCP WHERE len > $least")
    root = analyze([query], ("a",), {}, {"least": given}).queries[0].root
    assert isinstance(root, Project)
    assert isinstance(root.input, Filter)
    assert shown(root.input.predicate) == expected


def test_definitions_are_put_in_place() -> None:
    query = parse("DEFINE { PATTERN 41; } SELECT time FROM TCP WHERE flags = #PATTERN#")
    root = analyze([query], ("a",), {}, {}).queries[0].root
    assert isinstance(root, Project)
    assert isinstance(root.input, Filter)
    assert shown(root.input.predicate) == "eq(flags, 41)"
