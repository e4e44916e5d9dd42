"""Which LFTAs leave out tuples that a sampling operator rejects, and which cannot know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.library.files import library_files
from gscope.queries.plan.sampling_operator import PreSample, show_pre_sample

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

QUERY = """
    SELECT tb, srcIP, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 10)
    GROUP BY time/60 AS tb, srcIP, H(destIP) AS HX SUPERGROUP srcIP
    CLEANING_WHEN count_distinct$(*) >= 20 CLEANING_BY HX <= Kth_smallest_value$(HX, 10)"""
LEAST = PreSample("tb", ("srcIP",), "HX", 10, "time_ns", is_distinct=True)


def program_of(*texts: str) -> Program:
    named = [QueryText(text, f"q{number}") for number, text in enumerate(texts)]
    return compile_queries(named, CompileContext(("a", "b"))).program


def pre_samples(*texts: str) -> list[PreSample | None]:
    return [lfta.pre_sample for lfta in program_of(*texts).lftas]


def test_a_query_of_least_values_has_one() -> None:
    assert pre_samples(QUERY) == [LEAST]
    text = "HX above the 10 least values seen of each tb, srcIP, or equal to one of them"
    assert show_pre_sample(LEAST) == text
    (shared,) = pre_samples(library_files()["many_sources"].read_text("utf-8"))
    assert shared == PreSample("minute", ("destIP",), "HX", 64, "time_ns", is_distinct=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT tb", "SELECT count(*), tb"),
        ("SELECT tb", "SELECT sum$(len), tb"),
        ("SELECT tb", "SELECT first$(len), tb"),
    ],
)
def test_aggregates_count_each_tuple(before: str, after: str) -> None:
    (found,) = pre_samples(QUERY.replace(before, after))
    assert found == PreSample("tb", ("srcIP",), "HX", 10, "time_ns", is_distinct=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The bound depends on more than the values.
        ("WHERE", "WHERE ssample(len, 100) AND"),
        ("WHERE", "WHERE coalesce(sum$(len), 0) < 1000000 AND"),
        ("WHERE", "WHERE str_regex_match(data, 'x') AND"),
        ("WHERE HX <= Kth", "WHERE NOT HX > Kth"),
        ("WHERE HX <=", "WHERE HX - 1 <="),
        ("WHERE HX <=", "WHERE len <="),
        # The bound may rise again.
        ("CLEANING_BY HX <= Kth_smallest_value$(HX, 10)", "CLEANING_BY HX > 60"),
        (
            "CLEANING_BY HX <= Kth_smallest_value$(HX, 10)",
            "CLEANING_BY HX <= Kth_smallest_value$(HX, 9)",
        ),
        # Groups may be crowded out.
        (
            "CLEANING_WHEN count_distinct$(*) >= 20"
            " CLEANING_BY HX <= Kth_smallest_value$(HX, 10)",
            "",
        ),
        ("CLEANING_WHEN count_distinct$(*) >=", "CLEANING_WHEN count$(*) >="),
        ("\n    SELECT", "DEFINE { max_groups 19; } SELECT"),
        ("SUPERGROUP", ", destPort SUPERGROUP"),
        # The places of all tuples count.
        ("WHERE HX <= Kth_smallest_value$(HX, 10)", "WHERE rsample(10)"),
        # More than an LFTA keeps.
        ("Kth_smallest_value$(HX, 10)", "Kth_smallest_value$(HX, 5000)"),
    ],
)  # fmt: skip
def test_others_ship_every_tuple(before: str, after: str) -> None:
    text = QUERY.replace(before, after)
    assert text != QUERY
    assert not any(pre_samples(text)), text


def test_the_last_group_may_be_one_below_the_bound() -> None:
    text = QUERY.replace("\n    SELECT", "DEFINE { max_groups 20; } SELECT")
    assert pre_samples(text) == [LEAST]


def test_all_readers_of_an_lfta_must_agree() -> None:
    name = "DEFINE {{ query_name '{}'; }} {}".format
    larger = QUERY.replace("10)", "15)").replace("SELECT tb", "SELECT count(*), tb")
    (both,) = pre_samples(name("small", QUERY), name("large", larger))
    assert both == PreSample("tb", ("srcIP",), "HX", 15, "time_ns", is_distinct=False)
    by_dest = QUERY.replace("SUPERGROUP srcIP", "SUPERGROUP tb")
    assert pre_samples(name("small", QUERY), name("all", by_dest)) == [None]
