"""What ``gscope explain`` says about sampling."""

from __future__ import annotations

import pytest

from gscope.cli.main import run
from gscope.cli.render.explain import as_text, explain_compiled
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FLOWS = (
    "DEFINE { query_name 'flows'; min_rate 0.05; } SELECT tb, srcIP, destIP, count(*) AS cnt "
    "FROM TCP GROUP BY time/60 AS tb, srcIP, destIP; "
)


def _lines(text: str) -> list[str]:
    compiled = compile_queries([QueryText(text, "query")], CompileContext(("main1",)))
    return list(as_text(explain_compiled(compiled)))


def _section(text: str) -> list[str]:
    lines = _lines(text)
    start = lines.index("Sampling (with --sample-rate)")
    return lines[start + 1 : lines.index("", start)]


def test_the_scheme_its_reason_and_the_columns_are_shown() -> None:
    most = "SELECT tb, srcIP, max(cnt) AS most FROM flows GROUP BY tb, srcIP"
    assert _section(FLOWS + most) == [
        "  LFTA flows keeps groups by srcIP",
        "    so that groups of query are whole: packets chosen one by one would break "
        "query, max(cnt): of estimated groups, only sums of their counts and sums are estimates",
        "  flows: rows of the full answer",
        "    all packets of a row agree in srcIP",
        "    compatible with srcIP, destIP",
        "  query: rows of the full answer",
        "    all packets of a row agree in srcIP",
        "    compatible with srcIP",
        "  the rate is at least 0.05",
        "  with --shedding auto, the rate of LFTA flows follows the load",
        "    flows is cut at the least rate of each epoch",
        "    query is cut at the least rate of each epoch",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "SELECT window_end, srcIP, count(*) FROM IP [RANGE 20 SLIDE 10] GROUP BY srcIP",
            "the least rate of each window, over all of its slices",
        ),
        (
            "SELECT S.time FROM TCP S JOIN UDP A"
            " WHERE A.time >= S.time and A.time < S.time + 5 and S.srcIP = A.destIP",
            "the least rate of all times at which a row may have partners",
        ),
        (
            "SELECT tb, srcIP, running_sum(len) FROM IP GROUP BY time/10 as tb, srcIP"
            " CLOSING_WHEN count(*) = 0 OR running_sum(len) > 100",
            "the least rate of each group's life; a group that appears after a rise has no rows"
            " until a part of CLOSING_WHEN without running aggregates has closed it",
        ),
        (
            "SELECT tb, srcIP, running_sum(len) FROM IP GROUP BY time/10 as tb, srcIP"
            " CLOSING_WHEN running_sum(len) > 100",
            "the least rate so far, which never rises: groups may live on after an epoch without"
            " tuples",
        ),
    ],
)
def test_how_long_lives_follow_the_load_is_shown(text: str, rule: str) -> None:
    assert f"    query is cut at {rule}" in _section(text)


def test_estimates_and_what_is_not_sampled_are_shown() -> None:
    total = (
        "DEFINE { query_name 'a'; } SELECT tb, count(*) AS n, avg(len) AS mean FROM UDP "
        "GROUP BY time/60 AS tb; "
        "DEFINE { query_name 'b'; } SELECT tb, max(len) FROM TCP GROUP BY time/60 AS tb"
    )
    assert _section(total) == [
        "  LFTA a keeps single packets",
        "    no query groups or joins its packets by terms that an LFTA can hash",
        "  a: estimates",
        "    packets of a group of a are kept one by one",
        "    whole: tb",
        "    scaled by 1/rate, as counts and sums of what is kept: n",
        "    estimated, without a factor: mean",
        "  with --shedding auto, the rate of LFTA a follows the load",
        "    a is scaled packet by packet: one that was kept at the rate p counts as 1/p packets",
        "  b is not sampled",
        "    b, max(len): a sample of a group's packets does not estimate it",
    ]


def test_estimates_of_whole_rows_follow_the_load() -> None:
    lines = _section(FLOWS + "SELECT tb, count(*) AS n FROM flows GROUP BY tb")
    assert "    flows is cut at the least rate of each epoch" in lines
    scaled = (
        "    query is cut at the least rate of each epoch, by which its counts and sums are scaled"
    )
    assert scaled in lines


def test_each_clause_of_the_sampling_operator_has_a_line() -> None:
    text = (
        "SELECT tb, srcIP, UMAX(sum(len), ssthreshold()) AS bytes, sum(len) / sum$(len) AS share "
        "FROM IP WHERE ssample(len, 3) GROUP BY time/60 AS tb, srcIP HAVING ssfinal_clean(sum(len))"
    )
    lines = _lines(text)
    start = next(number for number, line in enumerate(lines) if line.startswith("  clauses"))
    assert [line[13:] for line in lines[start : start + 6]] == [
        "supergroup all of the window",
        "where ssample(int_to_float(len), 3)",
        "superaggregate $super3 := sum$(len)",
        "aggregate sum_len := sum(len)",
        "having ssfinal_clean(int_to_float(sum_len))",
        "select $call2 := ssthreshold()",
    ]
    assert lines[start + 6] == (
        "  columns    tb, srcIP, bytes := max_of(int_to_float(sum_len), $call2), "
        "share := int_to_float(sum_len) / int_to_float($super3)"
    )


def test_the_node_that_makes_estimates_is_named() -> None:
    share = (
        "DEFINE { query_name 'total'; } "
        "SELECT tb, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb; "
        "SELECT A.tb, A.srcIP, A.cnt / B.cnt AS share FROM flows A, total B WHERE A.tb = B.tb"
    )
    found = _section(FLOWS + share)
    start = found.index("  query: estimates")
    assert found[start : start + 4] == [
        "  query: estimates",
        "    packets of a group of total can differ in srcIP, destIP",
        "    whole: tb, srcIP",
        "    estimated, without a factor: share",
    ]


def test_all_inputs_of_a_union_are_sampled_for_one_reason() -> None:
    found = _section(
        "SELECT time, srcIP FROM TCP SAMPLE BY srcIP UNION ALL SELECT time, destIP FROM UDP"
    )
    assert found[:4] == [
        "  LFTA query.1 keeps groups by srcIP",
        "    SAMPLE BY of query.sub",
        "  LFTA query.2 keeps groups by destIP",
        "    so that all inputs of query are sampled alike",
    ]


def test_what_intervals_rest_on_is_shown() -> None:
    total = (
        "SELECT tb, sum(cnt) AS packets, packets_low, packets_high, sample_groups FROM flows "
        "GROUP BY tb"
    )
    lines = _section(FLOWS + total)
    start = lines.index("  query: estimates")
    assert lines[start : start + 5] == [
        "  query: estimates",
        "    packets of a group of query can differ in srcIP, destIP",
        "    whole: tb",
        "    scaled by 1/rate, as counts and sums of what is kept: packets",
        "    packets_low, packets_high, sample_groups: from the groups of a row",
    ]


def test_explain_shows_what_rows_state_where_rates_follow_the_load(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "SELECT tb, count(*) AS n FROM IP GROUP BY time/60 AS tb"
    assert run(["explain", "-e", text]) == 0
    assert "$sample_rate" not in capsys.readouterr().out
    assert run(["explain", "-e", text, "--shedding", "auto"]) == 0
    printed = capsys.readouterr().out
    assert "$sample_rate" in printed
    assert "query is scaled packet by packet" in printed
