"""PARAM entries take typed values from outside.

DEFINE entries are typed by how they are written.
"""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.catalog.scalar.addresses import parse_ip
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Literal, Value, walk
from gscope.queries.plan.logical import Project


def column(text: str, **parameters: str) -> Value:
    """The constant that the query selects."""
    context = CompileContext(("main1",), parameters=parameters)
    plan = compile_queries([QueryText(text, "q")], context).stages[-1][1]
    root = plan.queries[0].root
    assert isinstance(root, Project)
    (found,) = [p for p in walk(root.columns[1].expression) if isinstance(p, Literal)]
    return found.value


VALUES: list[tuple[str, str, Value]] = [
    ("INT", "42", 42),
    ("UINT", "0xff", 255),
    ("INT", "-3", -3),
    ("LLONG", "9223372036854775807", (1 << 63) - 1),
    ("FLOAT", "2", 2.0),
    ("FLOAT", "-1.5", -1.5),
    ("STRING", "it's = $this", b"it's = $this"),
    ("STRING", "", b""),
    ("STRING", "42", b"42"),
    ("BOOL", "true", True),
    ("IP", "10.0.0.1", parse_ip("10.0.0.1")),
    ("IPV6", "2001:db8::1", parse_ip("2001:db8::1")),
    ("MAC", "02:00:00:00:00:01", 0x020000000001),
    ("TIMESTAMP", "1970-01-01 00:01:00", 60_000_000_000),
    ("INTERVAL", "5 sec", 5_000_000_000),
    ("INTERVAL", "INTERVAL '5 min'", 300_000_000_000),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_a_parameter_is_read_as_its_type(kind: str, text: str, value: Value) -> None:
    query = f"PARAM {{ x {kind}; }} SELECT time, $x as x FROM IP"
    assert column(query, x=text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *[("INT", text) for text in ("", "x", "1.5", "1 + 1", "9223372036854775808999", "time")],
        *[("BOOL", "maybe"), ("IP", "10.0.0.300"), ("MAC", "02:00"), ("FLOAT", "1,5")],
        *[("INTERVAL", text) for text in ("5", "5 sec' or '1", "soon")],
        ("TIMESTAMP", "yesterday"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(GsqlError) as caught:
        column(f"PARAM {{ x {kind}; }} SELECT time, $x as x FROM IP", x=text)
    assert f"invalid value of the parameter x: expected {kind}, got {text!r}" in str(caught.value)


def test_an_undeclared_parameter_gets_a_suggestion() -> None:
    with pytest.raises(GsqlError, match=r"no query declares a parameter limmit\n.*did you mean"):
        column("PARAM { limit INT; } SELECT time, $limit as x FROM IP", limit="1", limmit="2")


@pytest.mark.parametrize(
    ("written", "value"),
    [("40", 40), ("'40'", 40), ("0xFF", 255), ("1.5", 1.5), ("'GET'", b"GET"), ("'a b'", b"a b")],
)
def test_a_definition_is_the_literal_it_spells(written: str, value: Value) -> None:
    assert column(f"DEFINE {{ X {written}; }} SELECT time, #X# as x FROM IP") == value
    assert column(f"DEFINE {{ X {written}; }} SELECT time, #X as x FROM IP") == value
