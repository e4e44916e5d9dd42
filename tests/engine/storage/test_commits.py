from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from gscope.engine.storage.commits import (
    Commit,
    CommitLog,
    Output,
    batch_from_json,
    batch_to_json,
    state_from_json,
)
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import State, WrittenFile
from gscope.errors import EngineError
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.messages import Batch, Extent, RowGroup

if TYPE_CHECKING:
    from pathlib import Path


def state(*carried: str) -> dict[str, Any]:
    batch = {"stream": "f", "sequence": 1, "rows": 1, "size_bytes": 1, "extents": []}
    carry = [{**batch, "path": path} for path in carried]
    port = {"needed": 0, "last_judged": 0, "ended": False, "carry": carry}
    return {"q": {"watermark": 3, "late_tuples": 0, "state": None, "sides": [{"f": port}]}}


def staged(log: CommitLog, output: Output, text: str) -> None:
    path = log.staged(output.path)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_an_output_appears_only_when_its_step_is_committed(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    output = Output("q", "q/1.arrow", 1)
    staged(log, output, "rows")
    assert not (log.outputs / output.path).exists()
    log.write(Commit(1, state(), (output,)))
    log.publish((output,))
    assert (log.outputs / output.path).read_text() == "rows"


def test_a_record_is_the_commit_with_all_that_is_in_it() -> None:
    output = Output("q", "q/1.parquet", 3, ("part-0", "part-1"))
    incomplete = IncompleteEpochs("q", "shed", 3, 4, 17)
    counts = Counts({"tls_sni": 1203}, {"totals": 2})
    commit = Commit(
        7,
        {"q": {"late_below": {3: -math.inf}}},
        (output,),
        ({"hop": 1},),
        counts,
        "k",
        (incomplete,),
    )
    assert commit.to_json() == json.dumps(asdict(commit))


def test_a_crash_between_commit_and_publish_is_made_good(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    output = Output("q", "q/1.arrow", 1)
    staged(log, output, "rows")
    log.write(Commit(1, state(), (output,)))
    (recovered,) = CommitLog(tmp_path).recover()
    assert recovered.outputs == (output,)
    assert (log.outputs / output.path).read_text() == "rows"


def test_counts_survive_a_crash(tmp_path: Path) -> None:
    counts = Counts({"tls_sni": 1203}, {"totals": 2})
    CommitLog(tmp_path).write(Commit(1, state(), (), (), counts))
    (recovered,) = CommitLog(tmp_path).recover()
    assert recovered.counts == counts


def test_what_no_commit_names_is_swept_away(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    committed = Output("q", "q/1.arrow", 1)
    staged(log, committed, "rows")
    log.write(Commit(1, state("kept"), (committed,)))
    staged(log, Output("q", "q/2.arrow", 1), "half a step")
    (log.carry / "kept").mkdir()
    (log.carry / "dropped").mkdir()
    log.recover()
    assert [path.name for path in log.carry.iterdir()] == ["kept"]
    assert [path.name for path in (log.outputs / "q").iterdir()] == ["1.arrow"]


def test_a_file_of_an_earlier_step_is_kept_while_a_state_names_it(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for folder, files in {
        "1-state": ("live", "slices-1", "slices-2"),
        "2-state": ("live",),
    }.items():
        (log.carry / folder).mkdir()
        for name in files:
            (log.carry / folder / name).touch()
    kept = WrittenFile("1-state/slices-2", 3, 30, (Extent("n", 4, 5),))
    windows = State("q", 2, "2-state", 5, 50, (Extent("n", 4, 7),), files=("live",), kept=(kept,))
    operators = state()
    operators["q"]["state"] = batch_to_json(windows)
    log.write(Commit(2, operators, ()))
    again = CommitLog(tmp_path)
    (commit,) = again.recover()
    assert state_from_json(commit.operators["q"]["state"]) == windows
    assert windows.live_rows == 2
    left = {str(path.relative_to(log.carry)) for path in log.carry.glob("*/*")}
    assert left == {"1-state/slices-2", "2-state/live"}
    again.drop_carry({"2-state"})
    assert [path.name for path in log.carry.iterdir()] == ["2-state"]


def test_a_record_cut_short_by_a_crash_was_never_one(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    log.write(Commit(1, state(), ()))
    (tmp_path / "commits" / "000000000002.new").write_text('{"step": 2, "oper')
    assert [commit.step for commit in log.recover()] == [1]


def test_a_damaged_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    (tmp_path / "commits" / "000000000001.json").write_text("{}")
    with pytest.raises(EngineError, match=r"000000000001\.json"):
        log.recover()


def test_records_are_kept_until_their_outputs_are_delivered(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    outputs = [Output("q", f"q/{step}.arrow", 1) for step in range(5)]
    for step, output in enumerate(outputs):
        staged(log, output, "rows")
        log.write(Commit(step, state(), (output,)))
        log.publish((output,))
    assert steps_of(tmp_path) == [0, 1, 2, 3, 4]
    assert log.undelivered_bytes == 4 * len("rows")
    for output in outputs[:3]:
        (log.outputs / output.path).unlink()
    assert log.undelivered_bytes == len("rows")
    assert steps_of(tmp_path) == [3, 4]
    again = CommitLog(tmp_path)
    assert [commit.step for commit in again.recover()] == [3, 4]
    for output in outputs[3:]:
        (log.outputs / output.path).unlink()
    again.write(Commit(5, state(), ()))
    assert steps_of(tmp_path) == [5]


def test_days_of_steps_leave_one_record(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for step in range(200):
        log.write(Commit(step, state(), ()))
    assert steps_of(tmp_path) == [199]
    assert [commit.step for commit in CommitLog(tmp_path).recover()] == [199]


def steps_of(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "commits").iterdir())


def test_a_batch_keeps_its_row_groups() -> None:
    groups = (RowGroup(0, 64, 7, 90), RowGroup(0, 8, 5, 60))
    batch = Batch("s", 3, "segments/x", 12, 200, (Extent("tb", 1, 2),), groups)
    assert batch_from_json(json.loads(json.dumps(batch_to_json(batch)))) == batch
