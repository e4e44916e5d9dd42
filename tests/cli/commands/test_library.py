"""``gscope library``: the list, the search, a query's text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gscope.cli import main
from gscope.queries.library.description import GROUPS
from gscope.queries.library.files import full_names

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def library(*arguments: str) -> tuple[int, str, str]:
        code = main.run(("library", *arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return library


def listed(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.startswith("  ")]


def test_the_list_names_each_query_of_its_own_once_below_its_purpose(run: Run) -> None:
    _, out, _ = run()
    assert sorted(listed(out)) == sorted(name for name in full_names() if "/" not in name)
    headings = [heading for group, heading in GROUPS.items() if group != "published"]
    assert [line for line in out.splitlines() if line in headings] == headings
    assert max(map(len, out.splitlines())) <= 80


def test_published_queries_are_listed_by_full_name(run: Run) -> None:
    _, out, _ = run("published")
    names = [name for name in listed(out) if "/" in name]
    assert names == [name for name in full_names() if "/" in name]
    assert max(map(len, out.splitlines())) <= 80


def test_a_word_lists_the_queries_about_it(run: Run) -> None:
    _, out, _ = run("dns")
    assert {"slow_dns", "dns_failures"} <= set(listed(out))
    assert "top_talkers" not in listed(out)


def test_a_name_prints_the_query_and_search_lists_it(run: Run) -> None:
    _, out, err = run("top_talkers")
    assert out == full_names()["top_talkers"].read_text("utf-8")
    assert err == ""
    _, out, _ = run("--search", "top_talkers")
    assert listed(out) == ["top_talkers"]


def test_a_name_that_the_papers_use_as_well_says_so(run: Run) -> None:
    _, out, err = run("flow")
    assert out == full_names()["flow"].read_text("utf-8")
    assert "published/flow" in err
    _, out, err = run("published/flow")
    assert out == full_names()["published/flow"].read_text("utf-8")
    assert err == ""


def test_several_names_print_several_queries(run: Run) -> None:
    _, out, _ = run("top_ports", "dup_ratio")
    files = full_names()
    texts = [files[name].read_text("utf-8") for name in ("top_ports", "published/dup_ratio")]
    assert out == "".join(texts)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["top_talker", "flow"], "no query with all of the words 'top_talker', 'flow'"),
        (["flwo"], "no query 'flwo', and none with this word; did you mean flow?"),
        (["retransmision"], "did you mean retransmissions?"),
        (["--search", "qqqqqq"], "`gscope library` lists them"),
        (["dns", "qqqqqq"], "no query 'qqqqqq'"),
        (["slow", "spoofing"], "all of the words 'slow', 'spoofing'"),
    ],
)
def test_words_that_find_nothing_are_an_error(run: Run, words: list[str], complaint: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert complaint in err


def test_json_has_the_columns_and_the_text(run: Run) -> None:
    _, out, _ = run("top_ports", "--json")
    (query,) = json.loads(out)
    assert query["name"] == "top_ports"
    assert query["group"] == "services"
    assert query["columns"]["clients"]
    assert query["text"] == full_names()["top_ports"].read_text("utf-8")
    _, out, _ = run("--json")
    assert [one["name"] for one in json.loads(out)] != []
    assert len(json.loads(out)) == len(full_names())
