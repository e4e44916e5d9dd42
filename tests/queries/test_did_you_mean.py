"""Suggestions of the name that was meant."""

from __future__ import annotations

from gscope.queries.did_you_mean import closest, did_you_mean, suggestion


def test_the_closest_name_is_suggested() -> None:
    assert closest("repaly", ["run", "replay"]) == "replay"
    assert suggestion("repaly", ["run", "replay"], "none") == "did you mean replay?"
    assert suggestion("repaly", ["replay"], "none", is_quoted=True) == "did you mean 'replay'?"


def test_nothing_like_it_gives_what_to_say_otherwise() -> None:
    assert closest("xyz", ["run"]) is None
    assert suggestion("xyz", ["run"], "there are run") == "there are run"


def test_a_remedy_ignores_case_and_lists_all_names_if_they_are_few() -> None:
    assert did_you_mean("SRCIP", ["srcIP", "destIP"]) == "did you mean srcIP?"
    assert did_you_mean("xyz", ["b", "a"], "names are") == "names are: a, b"
    assert did_you_mean("xyz", ["b", "a"]) == ""
