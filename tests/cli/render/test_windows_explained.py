"""What explain reports of windows: classes, slices, costs, and what bounds their state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gscope.cli.render.explain import as_text, explain_compiled, spark_texts
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.windows.window_plan import WindowPlan

PAPER = (
    "Query a: SELECT srcIP, count(*) FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP;"
    "Query b: SELECT srcIP, max(len) FROM TCP [RANGE 12 SLIDE 9] GROUP BY srcIP;"
)


def explained(text: str) -> dict[str, Any]:
    return explain_compiled(compile_queries([QueryText(text, "q")], CompileContext(("main1",))))


def test_a_class_shows_its_slices_its_queries_and_its_costs() -> None:
    explanation = explained(PAPER)
    (lfta,) = explanation["lftas"]
    seconds = (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
    assert lfta["slices"] == ", ".join(f"{length} sec" for length in seconds)
    assert lfta["shared by"] == ["a", "b"]
    # 12 slices in 45 seconds; 5 + 3 windows; 6 + 10 edges of both, of which 4 coincide.
    assert lfta["cost"] == (
        "β = 0.2667 slices a second for Σ 1/s = 0.1778 windows, unshared 0.3556 slices"
    )
    text = "\n".join(as_text(explanation))
    assert "window     [RANGE '12 sec' SLIDE '9 sec']" in text
    assert "shared by  a, b" in text


def test_a_query_alone_shares_nothing() -> None:
    (lfta,) = explained("SELECT count(*) FROM TCP [RANGE 60 SLIDE 1]")["lftas"]
    assert (lfta["slices"], lfta["shared by"]) == ("1 sec", [])
    assert lfta["cost"] == "β = 1 slices a second for Σ 1/s = 1 windows"


def test_very_many_slices_are_counted() -> None:
    (lfta,) = explained(
        "Query a: SELECT count(*) FROM TCP [RANGE 60 SLIDE 59];"
        "Query b: SELECT count(*) FROM TCP [RANGE 60 SLIDE 53]"
    )["lftas"]
    assert lfta["slices"] == "at most 224 in each period of 3127 sec"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (
            "SELECT srcIP, count(*) FROM TCP [RANGE '1 min' SLIDE '1 sec'] GROUP BY srcIP",
            "slices of the last 1 min wait on disk, "
            "at most 60 with a row for each of their groups, "
            "and a row for each live group; "
            "a slice is read when it enters a window, leaves it, and "
            "at most once in between",
        ),
        (
            "SELECT srcIP, sum(len / 2.0) as s, count(*) FROM TCP [RANGE '1 min' SLIDE '1 sec']"
            " GROUP BY srcIP",
            "rows of the last 1 min wait on disk, none in memory; "
            "each is read again for each of the "
            "60 windows that hold it, because no partials of slices add up to sum_len_2_0",
        ),
        (
            "SELECT sum(len / 2.0) as s FROM TCP [RANGE '1 min']",
            "rows of the last 1 min wait on disk, none in memory; each is read once",
        ),
    ],
)
def test_what_bounds_the_state_of_windows(text: str, bound: str) -> None:
    (node,) = explained(text)["hftas"]
    assert node["state"] == bound


def test_a_window_over_a_declared_order_rests_on_tuples() -> None:
    explanation = explained(
        "Query calls: SELECT increasing(len) as n, srcIP FROM IP;"
        "Query q: SELECT count(*) FROM calls [RANGE 10 SLIDE 5]"
    )
    assert "the order of its term is declared" in explanation["hftas"][-1]["warning"]
    assert "warning" not in explained(PAPER)["hftas"][0]


def test_spark_texts_of_slices_and_of_rows() -> None:
    text = "SELECT srcIP, count(*) FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP"
    context = CompileContext(("main1",))
    sliced = spark_texts(compile_queries([QueryText(text, "q")], context).program)
    assert list(sliced) == ["q, slices", "q"]
    assert "sum(`count0`)" in sliced["q, slices"]
    assert sliced["q"].count("FROM windows") == 1
    rows = replace(context, window_plan=WindowPlan.SUPERQUERY)
    (expanded,) = spark_texts(compile_queries([QueryText(text, "q")], rows).program).values()
    assert "explode" in expanded
