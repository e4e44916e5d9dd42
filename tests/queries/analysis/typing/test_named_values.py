"""Texts beside protocol numbers, TCP flags and times.

The oracles are Python's socket module and datetime.
"""

from __future__ import annotations

import itertools
import re
import socket
from datetime import datetime

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.expressions import Call, Literal
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Project

NOT_IANA = {
    "IP",
    "IPIP",
    "RAW",
    "MPTCP",
    "MAX",
    "NONE",
    "DSTOPTS",
    "FRAGMENT",
    "HOPOPTS",
    "ROUTING",
}
SYSTEM_PROTOCOLS = {
    name.removeprefix("IPPROTO_"): int(getattr(socket, name))
    for name in dir(socket)
    if name.startswith("IPPROTO_") and name.removeprefix("IPPROTO_") not in NOT_IANA
}
"""Assigned numbers as the C library's headers have them."""

FLAGS = "FSRPAUEC"


def constant(comparison: str) -> object:
    """The constant that the right side of a comparison became."""
    plan = analyze([parse(f"SELECT {comparison} AS x FROM TCP")], ("a",), {}, {})
    root = plan.queries[0].root
    assert isinstance(root, Project)
    expression = root.columns[0].expression
    assert isinstance(expression, Call)
    side = expression.arguments[-1]
    assert isinstance(side, Literal)
    return side.value


def refusal(condition: str) -> str:
    with pytest.raises(GsqlError) as caught:
        analyze([parse(f"SELECT time FROM TCP WHERE {condition}")], ("a",), {}, {})
    assert caught.value.position is not None
    return caught.value.report()


@pytest.mark.parametrize("name", sorted(SYSTEM_PROTOCOLS))
def test_a_protocol_name_is_its_assigned_number(name: str) -> None:
    assert constant(f"protocol = '{name.lower()}'") == SYSTEM_PROTOCOLS[name]
    assert constant(f"inner.protocol <> '{name}'") == SYSTEM_PROTOCOLS[name]


def test_every_set_of_letters_is_exactly_these_flags() -> None:
    for size in range(1, 9):
        for letters in itertools.combinations(FLAGS, size):
            expected = sum(1 << FLAGS.index(letter) for letter in letters)
            assert constant(f"flags = '{''.join(letters)}'") == expected
            assert constant(f"flags = '{''.join(reversed(letters)).lower()}'") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S.", 18),
        ("SYN", 2),
        ("SYN,ACK", 18),
        ("SYN-ACK", 18),
        ("syn ack", 18),
        ("ECE", 64),
        ("CWR", 128),
        ("FPU", 41),
        ("W", 128),
        ("none", 0),
    ],
)
def test_flags_may_be_written_as_tcpdump_does_and_by_name(text: str, expected: int) -> None:
    assert constant(f"flags = '{text}'") == expected


def test_letters_also_mask_flags() -> None:
    assert constant("flags & 'SA' = 'S'") == 2
    assert constant("flags & 'SA' = 0") == 0


@pytest.mark.parametrize(
    "moment",
    [
        "2016-08-02",
        "2016-08-02 02:20",
        "2016-08-02 02:20:00",
        "2016-08-02T02:20:00Z",
        "2016-08-02T02:20:00+02:00",
        "2016-08-02 02:20:00 -05:30",
        "2016-08-02T02:20:00+0530",
        "1969-12-31 23:59:59",
    ],
)
def test_a_date_is_the_number_that_the_column_counts(moment: str) -> None:
    parsed = datetime.fromisoformat(re.sub(" ([+-])", r"\1", moment))
    if parsed.tzinfo is None:
        parsed = datetime.fromisoformat(moment + ("+00:00" if ":" in moment else "T00:00+00:00"))
    seconds = round(parsed.timestamp())
    assert constant(f"time > '{moment}'") == seconds
    assert constant(f"time_ns > '{moment}'") == seconds * 10**9
    assert constant(f"timestamp > '{moment}'") == seconds * 10**9


def test_all_comparisons_take_names() -> None:
    assert constant("protocol IN ('tcp', 'udp', 1)") == 1
    assert constant("protocol IN (1, 'udp', 'tcp')") == 6
    assert "unknown protocol 'xyz'" in refusal("protocol BETWEEN 'icmp' AND 'xyz'")


@pytest.mark.parametrize(
    ("condition", "reason", "remedy"),
    [
        ("protocol = 'tpc'", "unknown protocol 'tpc'", "did you mean tcp"),
        ("flags = 'X'", "invalid set of TCP flags 'X'", "letters of FSRPAUEC"),
        ("flags = 'SS'", "invalid set of TCP flags 'SS'", "letters of FSRPAUEC"),
        ("time > 'yesterday'", "invalid time 'yesterday'", "2024-05-06 07:08:09"),
        ("time > '2016-08-02 02:20:00.5'", "time counts whole seconds", "compare timestamp"),
        ("time > '2016-13-02'", "invalid time '2016-13-02'", "2024-05-06 07:08:09"),
        ("time_ns > '1470104400'", "invalid time", "without quotes: 1470104400"),
        ("time/60 > '2016-08-02'", "INT and STRING", "compare time, timestamp or time_ns"),
        ("srcPort = '80'", "INT and STRING", "without quotes: 80"),
        ("len = 'tcp'", "INT and STRING", "protocol = 'tcp'"),
        ("srcPort = 'http'", "INT and STRING", "srcPort = 80"),
        ("srcPort = INT('http')", "INT of 'http' is NULL", "'http' is not a number"),
        ("protocol = INT('tcp')", "INT of 'tcp' is NULL", "protocol = 'tcp'"),
        ("time > INT('2016-08-02 02:20:00')", "is NULL", "time >= '2016-08-02 02:20:00'"),
        ("srcIP = strtoip('10.0.0')", "strtoip of '10.0.0' is NULL", "10.0.0.1"),
        ("srcPort = INT(IPV6_VAL'2001:db8::1')", "INT of 2001:db8::1 is NULL", "IPv4"),
    ],
)
def test_what_is_not_plain_names_the_right_form(condition: str, reason: str, remedy: str) -> None:
    report = refusal(condition)
    assert reason in report
    assert remedy in report
    assert "^" in report
