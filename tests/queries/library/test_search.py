"""Library queries are found by words, and near misses by what they resemble."""

from __future__ import annotations

import pytest

from gscope.queries.library.description import GROUPS
from gscope.queries.library.files import closest_query, full_names, library_files
from gscope.queries.library.search import LibraryQuery, library_queries, resembling, search

SLOW = LibraryQuery(
    "slow_dns", "-- Late answers\n--\n-- group: names\n-- columns:\n--   delay_ms  x\n"
)
FLOOD = LibraryQuery("syn_flood", "-- Attacks\n-- Of DNS servers too.\n-- group: security\n")
BOTH = [SLOW, FLOOD]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["slow_dns"], [SLOW]),
        (["dns"], BOTH),
        (["DNS"], BOTH),
        (["dns", "late"], [SLOW]),
        (["delay"], [SLOW]),
        (["floods"], [FLOOD]),
        (["attack"], [FLOOD]),
        (["security"], [FLOOD]),
        (["ns"], []),
        (["dns", "nothing"], []),
        (["group"], []),
    ],
)
def test_each_word_must_begin_a_word_of_the_query(
    words: list[str], found: list[LibraryQuery]
) -> None:
    assert search(BOTH, words) == found


def test_queries_are_listed_by_group_then_by_name() -> None:
    queries = library_queries()
    keys = [(list(GROUPS).index(q.description.group), q.name) for q in queries]
    assert keys == sorted(keys)
    assert {query.name for query in queries} == set(full_names())


def test_a_bare_name_is_the_published_query_only_if_the_library_has_no_other() -> None:
    files = library_files()
    assert files["flow"] is not files["published/flow"]
    assert files["flow"] == full_names()["flow"]
    assert files["dup_ratio"] == files["published/dup_ratio"]
    assert "dup_ratio" not in full_names()


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("top_talker", "top_talkers"),
        ("flwo", "flow"),
        ("published/flwo", "flow"),
        ("dup_rato", "published/dup_ratio"),
        ("zzzz", None),
    ],
)
def test_the_full_name_of_what_was_meant_is_suggested(word: str, name: str | None) -> None:
    assert closest_query(word) == name


def test_a_misspelt_word_of_a_description_is_recognised() -> None:
    assert resembling(library_queries(), "retransmision") == "retransmissions"
    assert resembling(BOTH, "atacks") == "attacks"
    assert resembling(BOTH, "qqqqqq") is None
