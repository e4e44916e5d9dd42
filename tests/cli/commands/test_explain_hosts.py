"""``explain --hosts``: sets, their costs, and counts of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gscope.cli.main import run


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["explain", "published/flow_pairs", "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out).get("partitioning", {})
    return found


def test_it_is_shown_only_if_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys) == {}
    assert explained(capsys, "--hosts", "4")["set"] == ["srcIP"]


def test_a_given_set_is_compared_with_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "--hosts", "4", "--partition-set", "srcIP, destIP")
    assert (found["set"], found["is_given"]) == (["srcIP", "destIP"], True)
    assert found["candidates"][0]["cost"] < found["cost"]
    places = {each["query"]: each["place"] for each in found["operators"]}
    assert places == {"flows": "hosts", "heavy_flows": "split", "flow_pairs": "central"}


def test_first_rows_are_chosen_twice(capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT tb, srcIP, count(*) AS packets FROM IP GROUP BY time/60 AS tb, srcIP"
        " ORDER BY packets DESC LIMIT 10"
    )
    assert run(["explain", "-e", query, "--hosts", "2", "--partition-set", "srcIP"]) == 0
    place = "first rows on each host, of which the aggregating host keeps the first"
    assert f"query, rows: {place}\n" in capsys.readouterr().out
    assert run(["explain", "-e", query, "--hosts", "2", "--partition-set", "destIP"]) == 0
    assert place not in capsys.readouterr().out


def test_counts_of_a_status_file_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = tmp_path / "counts.json"
    document = {
        "capture": {"interfaces": [{"received_packets": 600}, {"received_packets": 400}]},
        "queries": [{"name": "flow_pairs", "rows_total": 500}],
    }
    status.write_text(json.dumps(document), encoding="utf-8")
    found = explained(capsys, "--hosts", "4", "--statistics", str(status))
    assert found["is_measured"]
    costs = {tuple(each["set"]): each["total"] for each in found["candidates"]}
    # Half a row for each packet: a time, an address and two counts. To send these costs more than
    # to send what the join reads.
    assert costs["srcIP",] == pytest.approx(0.5 * (3 * 8 + 16))
    assert found["set"] == ["srcIP", "destIP"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--partition-set", "srcIP"), "apply only with --hosts"),
        (("--statistics", "x"), "apply only with --hosts"),
        (("--hosts", "0"), "0"),
        (("--hosts", "2", "--statistics", "nothing_like_it"), "there is no file nothing_like_it"),
        (("--hosts", "2", "--partition-set", "time"), "packets cannot be divided by time"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "published/flow_pairs", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"capture": null, "queries": []}', "\x00"])
def test_a_file_without_counts_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = tmp_path / "counts.json"
    status.write_text(text, encoding="utf-8")
    assert (
        run(["explain", "published/flow_pairs", "--hosts", "2", "--statistics", str(status)]) == 2
    )
    assert "gscope status --json" in capsys.readouterr().err


def test_a_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "published/flow_pairs", "--hosts", "4"]) == 0
    printed = capsys.readouterr().out.partition("Partitioning (over")[2].partition("\n\n")[0]
    page = Path(__file__).parents[3] / "docs" / "partitioning.md"
    assert printed in page.read_text(encoding="utf-8")
