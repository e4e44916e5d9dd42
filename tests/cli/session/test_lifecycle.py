"""What is left of a run, however it ends."""

from __future__ import annotations

import errno
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.cli.rundir.test_records import killed
from tests.safety.planted import Trap

from gscope import __version__
from gscope.cli.rundir.records import choose_run, find_runs
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.session.lifecycle import ensure_same, namesake, run_lifecycle
from gscope.cli.supervision.supervisor import Interrupted
from gscope.errors import CaptureError, UsageError
from gscope.queries.plan.program import Program
from gscope.queries.plan.program_file import write_program
from gscope.queries.plan.program_partitioning import Partitioning
from gscope.queries.run_folder.layout import PROGRAM_FILE

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = Program(("a",), (), (), (), ())
LEAVING = [
    Interrupted(signal.SIGINT),
    BrokenPipeError(),
    KeyboardInterrupt(),
    OSError(errno.EIO, "the terminal is gone"),
]
FAILING = [CaptureError("the disk is full"), RuntimeError("a bug"), OSError(errno.ENOSPC, "full")]


def lived(
    root: Path, error: BaseException | None, *, is_live: bool = True, has_captured: bool = True
) -> None:
    """A run called flows that ends with that error."""
    with (
        RunDir(root, "flows", is_exact=True) as run_dir,
        run_lifecycle(run_dir, root / "flows.log", ()),
    ):
        run_dir.file.change(is_live=is_live)
        if has_captured:
            (run_dir.path / "log").mkdir(exist_ok=True)
            run_dir.file.enter("running")
        if error is not None:
            raise error


def test_an_orderly_end_leaves_nothing_but_the_log_that_was_asked_for(tmp_path: Path) -> None:
    lived(tmp_path, None)
    assert find_runs(tmp_path) == ()
    assert "run: ended" in (tmp_path / "flows.log").read_text()


@pytest.mark.parametrize("error", LEAVING, ids=repr)
def test_who_leaves_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        lived(tmp_path, error)
    assert find_runs(tmp_path) == ()
    assert "run: over: " in (tmp_path / "flows.log").read_text()


@pytest.mark.parametrize("error", FAILING, ids=repr)
def test_a_live_run_that_fails_can_be_resumed_and_says_so(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)):
        lived(tmp_path, error)
    left = choose_run(tmp_path, "flows")
    assert (left.standing, left.failure, left.is_resumable) == ("failed", str(error), True)
    assert "`gscope run --run flows`" in error.__notes__[0]
    lived(tmp_path, None)
    assert find_runs(tmp_path) == ()


@pytest.mark.parametrize("error", FAILING, ids=repr)
def test_a_replay_that_fails_leaves_nothing(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)):
        lived(tmp_path, error, is_live=False)
    assert find_runs(tmp_path) == ()


def test_a_run_that_never_captured_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CaptureError):
        lived(tmp_path, CaptureError("no such device"), has_captured=False)
    assert find_runs(tmp_path) == ()


def test_a_run_that_fails_with_nothing_to_answer_leaves_nothing(tmp_path: Path) -> None:
    error = CaptureError("the certificate of sensor1:9470 is not trusted")
    error.leaves_data = False
    with pytest.raises(CaptureError):
        lived(tmp_path, error)
    assert find_runs(tmp_path) == ()
    killed(tmp_path, "flows")
    with pytest.raises(CaptureError):
        lived(tmp_path, error)
    assert choose_run(tmp_path, "flows").standing == "stale"


@pytest.mark.parametrize("error", [*LEAVING, *FAILING], ids=repr)
def test_a_run_that_is_resumed_in_vain_stays_as_it_was(
    tmp_path: Path, error: BaseException
) -> None:
    killed(tmp_path, "flows")
    before = choose_run(tmp_path, "flows")
    with pytest.raises(type(error)):
        lived(tmp_path, error, has_captured=False)
    after = choose_run(tmp_path, "flows")
    assert (after.standing, after.state, after.pid) == ("stale", before.state, before.pid)


def test_a_resumed_run_that_the_user_leaves_is_over(tmp_path: Path) -> None:
    killed(tmp_path, "flows")
    with pytest.raises(Interrupted):
        lived(tmp_path, Interrupted(signal.SIGTERM))
    assert find_runs(tmp_path) == ()


def refusal(root: Path) -> str:
    """Why the stale run flows is not resumed; it must stay as it was."""
    before = sorted(p.name for p in (root / "run-flows").iterdir())
    with RunDir(root, "flows", is_exact=True) as run_dir, pytest.raises(UsageError) as caught:
        ensure_same(run_dir, PROGRAM)
    assert "`gscope stop --run flows`" in str(caught.value)
    assert choose_run(root, "flows").standing == "stale"
    assert set(before) <= {p.name for p in (root / "run-flows").iterdir()}
    return str(caught.value)


def test_other_queries_are_refused_and_the_run_stays(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows") / PROGRAM_FILE
    write_program(path, Program(("b",), (), (), (), ()))
    assert "it was started with other queries or other interfaces" in refusal(tmp_path)


def test_another_number_of_partitions_is_refused_with_the_one_to_resume_with(
    tmp_path: Path,
) -> None:
    path = killed(tmp_path, "flows") / PROGRAM_FILE
    write_program(path, replace(PROGRAM, partitioning=Partitioning(64, ())))
    sentence = refusal(tmp_path)
    assert "it was started with --partitions 64; resume it with that" in sentence
    write_program(path, Program(("b",), (), (), (), (), partitioning=Partitioning(64, ())))
    assert "it was started with other queries" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "no such file"),
        (b"", "does not hold a program"),
        (b"\x80junk", "does not hold a program"),
        (b"[1]", "expected a JSON object"),
        (b'{"gscope": "0.3.0"}', "expected the key 'digest'"),
    ],
)
def test_an_unreadable_program_is_named_as_such(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    path = killed(tmp_path, "flows") / PROGRAM_FILE
    if content is not None:
        path.write_bytes(content)
    sentence = refusal(tmp_path)
    assert expected in sentence
    assert "other queries" not in sentence


def test_a_run_of_another_version_is_named_as_such(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows") / PROGRAM_FILE
    write_program(path, PROGRAM)
    path.write_text(path.read_text().replace(f'"{__version__}"', '"0.0.9"'))
    sentence = refusal(tmp_path)
    assert f"gscope 0.0.9 started it, and this is gscope {__version__}" in sentence
    assert "resume it with gscope 0.0.9" in sentence


def test_a_planted_pickle_is_not_executed(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows")
    trap = Trap(tmp_path / "executed")
    for name in ("program.pickle", PROGRAM_FILE):
        (path / name).write_bytes(trap.pickle())
    refusal(tmp_path)
    assert not trap.has_sprung


def test_the_same_queries_go_on(tmp_path: Path) -> None:
    path = killed(tmp_path, "flows")
    write_program(path / PROGRAM_FILE, PROGRAM)
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        ensure_same(run_dir, PROGRAM)
        assert not run_dir.is_kept


def test_a_log_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    killed(tmp_path, "flows")
    with (
        RunDir(tmp_path, "flows", is_exact=True) as run_dir,
        pytest.raises(UsageError, match="cannot write the log"),
        run_lifecycle(run_dir, tmp_path / "nowhere" / "x.log", ()),
    ):
        pass
    assert choose_run(tmp_path, "flows").standing == "stale"


def test_a_killed_run_of_the_usual_name_is_reported(tmp_path: Path) -> None:
    killed(tmp_path, "flows")
    with RunDir(tmp_path, "flows") as run_dir:
        sentence = namesake(run_dir, "flows")
        assert sentence is not None
        assert "an earlier run flows is stale" in sentence
        assert sentence.endswith("this run is flows-2")
    with RunDir(tmp_path, "dns") as run_dir, RunDir(tmp_path, "dns") as other:
        assert namesake(run_dir, "dns") is None
        assert namesake(other, "dns") is None
