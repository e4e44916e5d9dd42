"""Filters as one types them, against plain loops over rows."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.cli.view.answers import answers

from gscope.cli.view.rows.filters import InvalidFilterError, parse_filter

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = """SELECT tb, srcIP, destPort, name, count(*) AS packets, avg(len) AS mean FROM IP
GROUP BY time/60 AS tb, srcIP, destPort, str_cast(srcIP) AS name"""
_ADDRESSES = ["10.0.0.1", "10.1.0.1", "192.0.2.80", "2001:db8::1", "::1", None, "255.255.255.255"]
_NAMES = ["Example.org", "a b", "NULL", "", None, "ü.de", "x"]
ROWS: list[dict[str, Any]] = [
    {
        "tb": 28_333_320 + number % 2,
        "srcIP": _ADDRESSES[number % 7],
        "destPort": number * 111,
        "name": _NAMES[number * 3 % 7],
        "packets": number * 1000,
        "mean": number / 4,
    }
    for number in range(40)
]


@pytest.fixture(scope="module")
def answer() -> Any:
    text = TEXT.replace("str_cast(srcIP) AS name", "protocol AS name")
    (found,) = answers(text).values()
    # The name stands for any column of texts.
    from dataclasses import replace

    from gscope.queries.expressions.types import GsqlType

    columns = tuple(
        replace(column, type=GsqlType.STRING) if column.name == "name" else column
        for column in found.columns
    )
    return replace(found, columns=columns)


def _net(text: str) -> Callable[[dict[str, Any]], bool]:
    network = ipaddress.ip_network(text)
    return lambda row: row["srcIP"] is not None and ipaddress.ip_address(row["srcIP"]) in network


CASES: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("", lambda row: True),
    ("packets>5k", lambda row: row["packets"] > 5000),
    ("packets>=5000 packets<0.01M", lambda row: 5000 <= row["packets"] < 10_000),
    ("PACK<=3k", lambda row: row["packets"] <= 3000),
    ("mean=2.5", lambda row: row["mean"] == 2.5),
    ("destPort!=111", lambda row: row["destPort"] != 111),
    ("!destPort=111", lambda row: row["destPort"] != 111),
    ("srcIP=10.0.0.0/8", _net("10.0.0.0/8")),
    ("srcIP=2001:db8::/32", _net("2001:db8::/32")),
    ("srcIP=::1", _net("::1/128")),
    ("srcIP!=10.0.0.0/8", lambda row: row["srcIP"] is not None and not _net("10.0.0.0/8")(row)),
    ("srcIP>192.0.2.80", lambda row: row["srcIP"] in ("255.255.255.255", "2001:db8::1")),
    ("srcIP=NULL", lambda row: row["srcIP"] is None),
    ("srcIP!=null", lambda row: row["srcIP"] is not None),
    ("EXAMPLE", lambda row: row["name"] == "Example.org"),
    ("name~ü", lambda row: row["name"] == "ü.de"),
    ('name="a b"', lambda row: row["name"] == "a b"),
    ('name=""', lambda row: row["name"] == ""),
    ("!name~e", lambda row: row["name"] not in ("Example.org", "ü.de")),
    ("2001", lambda row: any("2001" in str(v) for k, v in row.items() if k != "tb")),
]


@pytest.mark.parametrize(("text", "accepts"), CASES, ids=[case[0] or "nothing" for case in CASES])
def test_rows_that_pass(answer: Any, text: str, accepts: Callable[[dict[str, Any]], bool]) -> None:
    table = pa.Table.from_pylist(ROWS)
    mask = parse_filter(text, answer).mask(answer, table)
    assert mask.tolist() == [accepts(row) for row in ROWS]
    assert text == "" or 0 < mask.sum() < len(ROWS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour=3", "colour: no column of that name: tb, srcIP"),
        ("packets>", "a value is missing after >"),
        ("packets>many", "many: expected a number such as 1500"),
        ("srcIP=10.0.0", "10.0.0: expected an address or a network"),
        ("srcIP=10.0.0.0/40", "expected an address or a network"),
    ],
)
def test_an_invalid_term_says_why(answer: Any, text: str, reason: str) -> None:
    with pytest.raises(InvalidFilterError) as caught:
        parse_filter(text, answer)
    assert reason in str(caught.value)


def test_the_beginning_of_several_names_is_ambiguous() -> None:
    (found,) = answers(
        "SELECT tb, srcIP, srcPort, count(*) FROM TCP GROUP BY time AS tb, srcIP, srcPort"
    ).values()
    with pytest.raises(InvalidFilterError, match="src: several columns: srcIP, srcPort"):
        parse_filter("src=1", found)
