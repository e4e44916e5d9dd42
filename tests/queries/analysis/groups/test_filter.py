"""FILTER (WHERE …): an aggregate of the tuples that a condition selects."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.running import RUNNING
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import GroupBy, Project, RunningGroupBy


def group(text: str) -> GroupBy | RunningGroupBy:
    (query,) = analyze([parse(text)], (), {}, {}).queries
    node = query.root
    while isinstance(node, Project):
        node = node.input
    assert isinstance(node, GroupBy | RunningGroupBy)
    return node


def arguments(text: str) -> list[tuple[str, object]]:
    return [(call.function, call.arguments) for call in group(text).aggregates]


@pytest.mark.parametrize(
    ("filtered", "written_out"),
    [
        ("count(*) FILTER (WHERE SYN = 1)", "count(if_else(SYN = 1, 1, NULL))"),
        ("sum(len) FILTER (WHERE SYN)", "sum(if_else(SYN, len, NULL))"),
        (
            "count(DISTINCT srcIP) filter (where len > 9)",
            "count_distinct(if_else(len > 9, srcIP, NULL))",
        ),
        ("first(destPort) FILTER(WHERE SYN)", "first(if_else(SYN, destPort, NULL))"),
        ("quantile(len, 0.9) FILTER (WHERE SYN)", "quantile(if_else(SYN, len, NULL), 0.9)"),
        ("approx_top_k(srcIP, 2) FILTER (WHERE SYN)", "approx_top_k(if_else(SYN, srcIP, NULL), 2)"),
    ],
)  # fmt: skip
def test_what_the_condition_rejects_is_null(filtered: str, written_out: str) -> None:
    text = "SELECT {} AS x FROM TCP GROUP BY srcIP"
    assert arguments(text.format(filtered)) == arguments(text.format(written_out))


@pytest.mark.parametrize("name", sorted({*AGGREGATES, *RUNNING} - {"at_end"}))
def test_every_aggregate_takes_it(name: str) -> None:
    entry = AGGREGATES.get(name) or RUNNING[name]
    constants = "".join(f", {0.5 if c.type.value == 'FLOAT' else 2}" for c in entry.constants)
    called = f"{name}(len{constants}) FILTER (WHERE SYN = 1)"
    if name.startswith("bool"):
        called = f"{name}(ACK = 1) FILTER (WHERE SYN = 1)"
    if name.startswith("approx_top"):
        called = called.replace("len", "srcIP")
    closing = "CLOSING_WHEN count(*) = 0" if name in RUNNING else ""
    calls = arguments(f"SELECT {called} AS x FROM TCP GROUP BY time/60 AS tb, srcIP {closing}")
    assert "case" in str(calls[0])


def test_its_condition_knows_columns_terms_and_aliases() -> None:
    text = (
        "SELECT len*8 AS bits, count(*) FILTER (WHERE {}) AS n FROM TCP"
        " GROUP BY time/60 AS tb, bits"
    )
    short = text.format("bits > 80 AND tb > 3 AND dst_port = 80")
    assert arguments(short) == arguments(
        text.format("len*8 > 80 AND time/60 > 3 AND destPort = 80")
    )


def test_filter_is_a_name_unless_a_bracket_follows() -> None:
    (query,) = analyze([parse("SELECT count(*) filter FROM TCP")], (), {}, {}).queries
    assert query.schema.names == ("filter",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT sum(len) FILTER (WHERE count(*) > 1) FROM TCP", "not allowed in FILTER"),
        ("SELECT abs(len) FILTER (WHERE SYN = 1) FROM TCP", "abs is not an aggregate"),
        ("SELECT sum(len) FILTER (WHERE srcIP) FROM TCP", "expected BOOL in FILTER, got IP"),
        ("SELECT time FROM TCP WHERE count(*) FILTER (WHERE SYN) > 1", "not allowed in WHERE"),
        (
            "SELECT tb, at_end() FILTER (WHERE SYN) FROM TCP GROUP BY time/60 AS tb "
            "CLOSING_WHEN count(*) = 0",
            "at_end takes no FILTER",
        ),
    ],
)
def test_it_is_refused_where_it_has_no_meaning(text: str, message: str) -> None:
    with pytest.raises(GsqlError) as caught:
        arguments(text)
    assert message in str(caught.value)
