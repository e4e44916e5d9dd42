"""Names of interfaces as they are typed behind FROM: dashes, digits in front, quotes."""

from __future__ import annotations

import pytest

from gscope.queries.gsql import nodes
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.printer import print_file


def inputs(text: str) -> list[tuple[str | None, str, str | None]]:
    """The interface, name and alias of each input, also after printing the query and parsing it."""
    file = parse(text)
    assert parse(print_file(file)) == file
    (query,) = file.queries
    assert isinstance(query.body, nodes.Select)
    return [
        (each.interface, each.name, each.alias)
        for each in query.body.inputs
        if isinstance(each, nodes.NamedInput)
    ]


@pytest.mark.parametrize(
    ("source", "interface"),
    [
        ("ndpi-reddit.TCP", "ndpi-reddit"),
        ("2024-01-31.TCP", "2024-01-31"),
        ("7zip.TCP", "7zip"),
        ("1.TCP", "1"),
        ('"ndpi-reddit".TCP', "ndpi-reddit"),
        ('"my capture.v2".TCP', "my capture.v2"),
        ("'my capture.v2'.TCP", "my capture.v2"),
    ],
)
def test_an_interface_is_read_as_typed_wherever_an_input_may_stand(
    source: str, interface: str
) -> None:
    assert inputs(f"SELECT time FROM {source}") == [(interface, "TCP", None)]
    assert inputs(f"SELECT a.time FROM UDP a, {source} b WHERE a.time = b.time") == [
        (None, "UDP", "a"),
        (interface, "TCP", "b"),
    ]
    for join in ("JOIN", "LEFT_OUTER_JOIN", "LEFT OUTER JOIN"):
        text = f"SELECT a.time FROM x-1.UDP a {join} {source} b ON a.time = b.time"
        assert inputs(text) == [("x-1", "UDP", "a"), (interface, "TCP", "b")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT len IS DISTINCT FROM len-caplen as d FROM TCP",
        "SELECT time, len-caplen as d FROM TCP GROUP BY time, len-caplen",
        "SELECT time FROM TCP WHERE len IN (1, len-caplen)",
        "SELECT time FROM (SELECT time, len-caplen as d FROM TCP) x",
    ],
)
def test_a_minus_in_an_expression_stays_one(text: str) -> None:
    assert print_file(parse(text)) == print_file(parse(text.replace("-", " - ")))
