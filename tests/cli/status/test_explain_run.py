"""``gscope explain --run`` through the command line, on runs' folders without processes."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from rich.console import Console, Group
from tests.cli.status.run_folder import run_folder
from tests.engine.steps.watched_steps import steps
from tests.queries.plan.partitioning.test_host_answers import FLOWS, SOURCES, compiled, planned

from gscope.cli.main import run
from gscope.cli.rundir.ended import MAX_ENDED, keep_counters
from gscope.cli.rundir.records import ENDED_FOLDER, read_run
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.status.plan_figures import plan_figures
from gscope.cli.status.plan_view import plan_view
from gscope.queries.plan.program_file import write_program
from gscope.queries.run_folder.layout import (
    CAPTURE_STATISTICS_FILE,
    JOB_STATISTICS_FILE,
    PROGRAM_FILE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SCHEMA = Path(__file__).parents[3] / "docs" / "explain_run.schema.json"
COUNTED = ("tuples_in_total", "tuples_read_total", "tuples_out_total", "cpu_ns", "sql_steps_total")


@pytest.fixture(autouse=True)
def _work_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GSCOPE_WORK_DIR", str(tmp_path))


@pytest.fixture
def talkers(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run with a program."""
    with run_folder(tmp_path) as run_dir:
        write_program(run_dir.path / PROGRAM_FILE, steps("eth0", "eth1").program)
        yield run_dir.path


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(["explain", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def figures(explain: Any) -> dict[str, dict[str, Any]]:
    """The nodes of the run by name, in a valid document."""
    code, out, err = explain("--run", "talkers", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    return {node["name"]: node for node in document["nodes"]}


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def test_nodes_have_figures_and_what_holds_them_up(talkers: Path, explain: Any) -> None:
    nodes = figures(explain)
    assert list(nodes) == ["LFTA tens", "tens", "minutes"]
    # Two batches of five rows have come, and eth1 holds the second up.
    tens = nodes["tens"]
    assert (tens["tuples_in"], tens["tuples_read"], tens["waiting_tuples"]) == (10, 5, 5)
    assert [stream.rpartition("@")[2] for stream in tens["waits_for"]] == ["eth1"]
    assert nodes["minutes"]["reads"] == ["tens"]
    out = explain("--run", "talkers")[1]
    assert "talkers  running for " in out
    assert "└─ tens " in out
    assert "tens: complete until 1970-01-01 00:06:50 UTC" in out
    assert "waits for eth1" in out
    assert str(talkers) not in out


def test_without_counters_there_is_the_plan(talkers: Path, explain: Any) -> None:
    for name in (CAPTURE_STATISTICS_FILE, JOB_STATISTICS_FILE):
        (talkers / name).unlink()
    nodes = figures(explain)
    assert nodes["tens"]["tuples_in"] is nodes["LFTA tens"]["tuples_in"] is None
    assert "LFTA tens" in explain("--run", "talkers")[1]


def test_counters_of_an_earlier_version_lack_what_it_did_not_count(
    talkers: Path, explain: Any
) -> None:
    def age(document: dict[str, Any]) -> None:
        for each in document["operators"]:
            for name in (*COUNTED, "recent"):
                del each[name]

    def age_capture(document: dict[str, Any]) -> None:
        for each in (*document["interfaces"], *document["streams"]):
            del each["recent"]

    change(talkers / JOB_STATISTICS_FILE, age)
    change(talkers / CAPTURE_STATISTICS_FILE, age_capture)
    nodes = figures(explain)
    assert nodes["tens"]["tuples_in"] is nodes["tens"]["cpu_ns"] is None
    assert nodes["tens"]["waiting_tuples"] == 5
    assert explain("--run", "talkers")[0] == 0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 99}', "null"])
def test_damaged_counters_are_as_none(talkers: Path, explain: Any, content: str) -> None:
    (talkers / JOB_STATISTICS_FILE).write_text(content)
    assert figures(explain)["tens"]["tuples_in"] is None


def test_counters_of_another_form_are_an_error_in_one_line(talkers: Path, explain: Any) -> None:
    def damage(document: dict[str, Any]) -> None:
        document["operators"][0]["recent"] = 3

    change(talkers / JOB_STATISTICS_FILE, damage)
    code, out, err = explain("--run", "talkers")
    assert (code, out) == (1, "")
    assert err.startswith("gscope: cannot interpret the counters of run talkers in ")
    assert err.count("\n") == 1


def test_a_run_without_a_plan_yet_is_said_so(talkers: Path, explain: Any) -> None:
    (talkers / PROGRAM_FILE).unlink()
    code, out, err = explain("--run", "talkers")
    assert (code, out) == (1, "")
    assert "run talkers has no plan yet: its queries are being compiled" in err


def test_a_damaged_plan_is_an_error_in_one_line(talkers: Path, explain: Any) -> None:
    (talkers / PROGRAM_FILE).write_text("{}")
    code, out, err = explain("--run", "talkers")
    assert (code, out) == (2, "")
    assert "does not hold a program" in err
    assert err.count("\n") == 1


def test_unknown_runs_are_an_error(talkers: Path, explain: Any, tmp_path: Path) -> None:
    assert talkers.is_dir()
    assert explain("--run", "talker")[::2] == (
        2,
        "gscope: unknown run 'talker'; did you mean talkers?\n",
    )
    code, out, err = explain("--run", "talkers", "--work-dir", str(tmp_path / "none"))
    assert (code, out) == (1, "")
    assert err.startswith("gscope: no run 'talkers' is active (looked in ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("flows.gsql",), "it cannot be combined with a query"),
        (("-e", "SELECT time FROM IP"), "it cannot be combined with -e"),
        (("-i", "eth0"), "it cannot be combined with -i"),
        (("--hosts", "2"), "it cannot be combined with --hosts"),
        (("--watch", "--json"), "--watch and --json are mutually exclusive"),
        (("--watch",), "--watch requires a terminal; use --json instead"),
    ],
)
def test_invalid_combinations_are_refused(
    explain: Any, arguments: tuple[str, ...], problem: str
) -> None:
    code, out, err = explain("--run", "talkers", *arguments)
    assert (code, out) == (2, "")
    assert problem in err


def test_watch_is_for_runs(explain: Any) -> None:
    code, _, err = explain("-e", "SELECT time FROM IP", "--watch")
    assert code == 2
    assert "--watch applies only with --run" in err


def test_a_run_named_in_the_environment_leaves_queries_alone(
    monkeypatch: pytest.MonkeyPatch, explain: Any
) -> None:
    monkeypatch.setenv("GSCOPE_RUN", "talkers")
    code, out, _ = explain("-e", "SELECT time FROM IP")
    assert code == 0
    assert "LFTA" in out


def test_what_stays_of_a_run_that_ended_is_shown_until_it_runs_again(
    explain: Any, tmp_path: Path
) -> None:
    for number in range(MAX_ENDED + 2):
        name = "talkers" if number > MAX_ENDED else f"run{number}"
        with run_folder(tmp_path, name, has_reported=name == "talkers") as run_dir:
            write_program(run_dir.path / PROGRAM_FILE, steps("eth0", "eth1").program)
            run_dir.file.enter("ended")
            keep_counters(run_dir.path)
            os.utime(tmp_path / ENDED_FOLDER / run_dir.path.name, (number, number))
    assert figures(explain)["tens"]["tuples_in"] == 10
    out = explain("--run", "talkers")[1]
    assert "talkers  ended; figures of the whole run" in out
    assert "IN/S" not in out
    kept = {path.name for path in (tmp_path / ENDED_FOLDER).iterdir()}
    assert kept == {"run-talkers", *(f"run-run{number}" for number in range(2, MAX_ENDED + 1))}
    with run_folder(tmp_path):
        assert "has no plan yet" in explain("--run", "talkers")[2]


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_rows_fit_the_terminal(talkers: Path, columns: int) -> None:
    shown = view(columns, talkers)
    assert max(map(len, shown.splitlines())) <= columns
    assert "IN/S" in shown
    assert ("KIND" in shown) == (columns >= 120)


def view(columns: int, folder: Path) -> str:
    found = read_run(folder)
    assert found is not None
    shown = io.StringIO()
    console = Console(file=shown, width=columns, highlight=False)
    console.print(Group(*plan_view(plan_figures(found, time.time_ns()))))
    return shown.getvalue()


def test_answers_of_hosts_are_named(tmp_path: Path) -> None:
    found = compiled(FLOWS, SOURCES, only=("sources",))
    with RunDir(tmp_path, "hosts", is_exact=True) as run_dir:
        write_program(run_dir.path / PROGRAM_FILE, planned(found, "srcIP").run)
        shown = view(120, run_dir.path)
    assert "LFTA sources.answers  answers " in shown
    assert "sources: answered by the hosts" in shown
