"""Finding runs by what their folders say, and choosing one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gscope.cli.rundir.record_file import RunFile
from gscope.cli.rundir.records import ProcessRecord, choose_run, find_runs, read_run
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.session.request import QueryRequest
from gscope.cli.session.run_name import default_name, ensure_name
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def killed(root: Path, name: str) -> Path:
    """The folder of a live run whose supervisor was killed after packets were logged."""
    with RunDir(root, name) as run_dir:
        run_dir.is_kept = True
        run_dir.file.change(is_live=True, state="running")
        (run_dir.path / "log").mkdir()
    return run_dir.path


def test_a_run_is_found_with_what_it_wrote(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows") as run_dir:
        run_dir.file.change(queries=("flows",), interfaces=("in", "out"), is_live=True)
        run_dir.file.on_process("job", "running", 42)
        run_dir.file.on_restart("job", "signal SIGKILL")
        run_dir.file.enter("running")
        (run,) = find_runs(tmp_path)
        assert (run.name, run.state, run.is_alive, run.standing) == (
            "flows",
            "running",
            True,
            "running",
        )
        assert run.interfaces == ("in", "out")
        job = run.processes["job"]
        assert (job.state, job.pid, job.restarts_total) == ("restarting", None, 1)
        assert job.restarts[0].reason == "signal SIGKILL"
        assert run == run_dir.file.record
    assert find_runs(tmp_path) == ()


def test_names_are_made_unique(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows") as first, RunDir(tmp_path, "flows") as second:
        assert (first.name, second.name) == ("flows", "flows-2")


def test_a_name_that_was_asked_for_is_used_once(tmp_path: Path) -> None:
    with (
        RunDir(tmp_path, "flows", is_exact=True),
        pytest.raises(UsageError, match=r"flows is active \(pid \d+\); `gscope stop --run flows`"),
    ):
        RunDir(tmp_path, "flows", is_exact=True)


def test_a_killed_live_run_is_stale_and_can_be_taken_over(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows")
    began = choose_run(tmp_path, "flows").began_ns
    assert choose_run(tmp_path, None).standing == "stale"
    with RunDir(tmp_path, "flows") as other:
        assert other.name == "flows-2"
        assert other.resumed is None
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        assert run_dir.path == path
        assert run_dir.resumed is not None
        assert run_dir.file.record.began_ns == began
        assert choose_run(tmp_path, "flows").is_alive


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "name": "other"}', "\0"]
)
def test_what_makes_no_sense_is_no_run(tmp_path: Path, content: str) -> None:
    path = killed(tmp_path, "flows")
    (path / "run.json").write_text(content)
    assert read_run(path) is None
    # It may be a run of another version with unanswered packets, or a user's folder: it stays.
    with RunDir(tmp_path, "flows") as run_dir:
        assert run_dir.name == "flows-2"
    assert (path / "log").is_dir()


def test_links_are_no_runs(tmp_path: Path) -> None:
    path = killed(tmp_path / "elsewhere", "flows")
    (tmp_path / "run-flows").symlink_to(path)
    assert read_run(tmp_path / "run-flows") is None
    assert find_runs(tmp_path) == ()


def test_a_record_with_more_than_we_know_makes_no_sense(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows")
    value = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**value, "colour": "red"}))
    assert read_run(path) is None


def test_no_run_is_a_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with pytest.raises(GscopeError, match="no run is active") as caught:
        choose_run(tmp_path / "nowhere", None)
    assert caught.value.exit_code == 1


def test_several_runs_are_listed_and_a_wrong_name_gets_a_hint(tmp_path: Path) -> None:
    killed(tmp_path, "old")
    with RunDir(tmp_path, "flows"), RunDir(tmp_path, "dns"):
        with pytest.raises(UsageError, match=r"2 runs; name one with --run: flows, dns"):
            choose_run(tmp_path, None)
        with pytest.raises(UsageError, match="did you mean flows"):
            choose_run(tmp_path, "flow")
        with pytest.raises(UsageError, match=r"available: old \(stale\), flows, dns"):
            choose_run(tmp_path, "zzz")


def test_the_only_living_run_is_chosen_before_stale_ones(tmp_path: Path) -> None:
    killed(tmp_path, "old")
    with RunDir(tmp_path, "flows"):
        assert choose_run(tmp_path, None).name == "flows"


def test_a_full_disk_costs_the_record_only(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows") as run_dir:
        lost = RunFile(run_dir.file.record)
        lost.record = lost.record.__class__(tmp_path / "gone", True, "flows", 1)
        lost.enter("running")
        assert lost.record.state == "running"


def test_restarts_that_are_kept_are_bounded(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows") as run_dir:
        for _ in range(150):
            run_dir.file.on_restart("capture", "code 1")
        capture = run_dir.file.record.processes["capture"]
        assert (len(capture.restarts), capture.restarts_total) == (100, 150)
        run_dir.file.on_process("capture", "running", 7)
        assert run_dir.file.record.processes["capture"] == ProcessRecord(
            7, "running", capture.restarts, 150
        )


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (QueryRequest(("queries/my flows.gsql",)), "my_flows"),
        (QueryRequest(("published/flow",)), "flow"),
        (QueryRequest((), ("DEFINE { query_name tcp_flows; } SELECT …",)), "tcp_flows"),
        (QueryRequest((), ("SELECT time FROM IP",)), "query"),
        (QueryRequest(("....gsql",)), "query"),
        (QueryRequest(("x" * 300,)), "x" * 60),
    ],
)
def test_the_default_name_is_that_of_the_first_query(asked: QueryRequest, name: str) -> None:
    assert default_name(asked) == name
    assert ensure_name(name) == name


@pytest.mark.parametrize("name", ["", ".x", "a/b", "-x", "a b", "x" * 65, "..", "a\n"])
def test_what_cannot_be_a_folder_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="invalid run name"):
        ensure_name(name)
