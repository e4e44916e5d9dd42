"""``gscope view`` shows the files and counters of another run, and leaves it alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.status.run_folder import run_folder
from tests.cli.view.answers import PORTS, TALKERS, talkers
from tests.cli.view.test_view_command import Terminal

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, DeliveryPosition
from gscope.cli.rundir.records import choose_run
from gscope.cli.sinks.growing_files import LiveFolder
from gscope.cli.view.followed_run import FollowedRun
from gscope.engine.sinks.columns import readable_schema
from gscope.errors import GscopeError, UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program_file import write_program
from gscope.queries.run_folder.layout import JOB_STATISTICS_FILE, PROGRAM_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.cli.rundir.run_dir import RunDir


class Background:
    """A run that writes answers to files, without its processes."""

    def __init__(self, run_dir: RunDir, answers: Path) -> None:
        text = QueryText(f"{TALKERS}; {PORTS}", "query")
        program = compile_queries([text], CompileContext(("eth0", "eth1"))).program
        write_program(run_dir.path / PROGRAM_FILE, program)
        run_dir.file.change(folder=str(answers), is_live=True)
        schemas = {query: readable_schema(program.schema(query)) for query, _ in program.results}
        self._folder = LiveFolder(answers, "csv", schemas, {})
        for query, schema in schemas.items():
            self._folder.begin(query, schema)
        self._checkpoint = DeliveryCheckpoint(run_dir.path)
        self.deliver(0, [])

    def deliver(self, minute: int, rows: list[tuple[str | None, int | None, int]]) -> None:
        if rows:
            self._folder.write("talkers", talkers(minute, rows))
        self._checkpoint.record(DeliveryPosition(sink=self._folder.settle(is_last=False) or {}))

    def close(self) -> None:
        self._folder.close(is_complete=True)


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[RunDir]:
    with run_folder(tmp_path / "work") as made:
        yield made


def followed(tmp_path: Path) -> FollowedRun:
    return FollowedRun(choose_run(tmp_path / "work", None), TimeStyle.UTC)


def test_rows_and_losses_are_those_of_the_files(tmp_path: Path, run_dir: RunDir) -> None:
    background = Background(run_dir, tmp_path / "answers")
    background.deliver(0, [("10.0.0.1", 4, 400), (None, None, 1)])
    path = run_dir.path / JOB_STATISTICS_FILE
    job = json.loads(path.read_bytes())
    lost = {"reason": "kernel", "first": 5, "last": 6, "packets": 2}
    operator = {"name": "talkers", "incomplete_epochs_total": {"kernel": 2}}
    job["operators"] = [{**operator, "incomplete_epochs": [lost], "late_tuples_total": 3}]
    path.write_text(json.dumps(job))
    run = followed(tmp_path)
    run.look()
    history = run.model.histories[0]
    assert history.latest is not None
    table = history.latest.table
    assert table is not None
    assert table["srcIP"].to_pylist() == ["10.0.0.1", None]
    assert table["bytes"].to_pylist() == [400, 1]
    assert [len(run.model.incomplete("talkers", value)) for value in (4, 5, 6, 7)] == [0, 1, 1, 0]
    account = run.model.state.account
    assert account.equation == "4 packets received = 4 accepted"
    assert account.losses == (
        "talkers: 2 incomplete epochs (the kernel dropped packets: 2)",
        "talkers: 3 rows too late",
    )
    assert [link.name for link in account.links] == ["eth0", "eth1"]
    background.deliver(1, [("10.0.0.2", 1, 7)])
    run.look()
    run.look()
    assert [epoch.sums["bytes"] for epoch in history.epochs] == [401, 7]
    assert not run.model.state.has_ended
    background.close()


def test_the_end_of_the_run_is_shown_with_its_last_rows(tmp_path: Path) -> None:
    with run_folder(tmp_path / "work") as run_dir:
        background = Background(run_dir, tmp_path / "answers")
        run = followed(tmp_path)
        background.deliver(0, [("10.0.0.1", 4, 400)])
        background.close()
    run.look()
    assert run.model.state.has_ended
    assert run.model.histories[0].rows == 1
    assert run.model.notices == ("run talkers has ended",)


def test_a_run_without_files_or_answers_is_refused(tmp_path: Path, run_dir: RunDir) -> None:
    with pytest.raises(UsageError, match="run talkers writes no files; start it with -w DIR"):
        followed(tmp_path)
    run_dir.file.change(folder=str(tmp_path / "answers"))
    with pytest.raises(GscopeError, match="run talkers has not begun to answer"):
        followed(tmp_path)


def test_the_command_follows_a_run_until_q_and_leaves_it_alone(
    tmp_path: Path, run_dir: RunDir
) -> None:
    background = Background(run_dir, tmp_path / "answers")
    background.deliver(0, [("10.0.0.1", 4, 400)])
    shown = Terminal("view", "talkers", "--work-dir", tmp_path / "work", size=(80, 24))
    try:
        shown.wait_for(lambda screen: "22:14:00Z  1 row " in screen.text)
        background.deliver(1, [("10.0.0.2", 1, 7), ("10.0.0.1", 5, 4)])
        shown.wait_for(lambda screen: "22:15:00Z  2 rows " in screen.text)
        assert "last 2 epochs" in shown.screen.text
        shown.press("q")
        code, after = shown.end()
        assert (code, after.strip()) == (0, "")
        assert shown.modes == shown.before
    finally:
        shown.close()
    assert choose_run(tmp_path / "work", "talkers").is_alive
    background.close()
