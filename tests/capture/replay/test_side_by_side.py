"""Interfaces that advance in threads: none runs far ahead, and what fails ends the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.capture.replay.scripted import SECOND, Replayed, ScriptedRuntime, beats

from gscope.capture.replay import side_by_side, trace_clock
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("sparse", [[0], [0, 400], list(range(0, 400, 40))])
def test_no_interface_runs_far_ahead_of_a_denser_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: list[int]
) -> None:
    """In threads, a step is as long as the densest interface takes for ``PART_BYTES``."""
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    monkeypatch.setattr(side_by_side, "PART_BYTES", 2000)
    monkeypatch.setattr(trace_clock, "HEARTBEAT_PACKETS", 1)
    dense = [[n * SECOND + k * SECOND // 10 for k in range(10)] for n in range(400)]
    inputs = {"dense": dense, "sparse": [[n * SECOND] for n in sparse]}
    replayed = Replayed(tmp_path, inputs)
    replayed.check()
    assert replayed.runtimes["dense"].times == [time for block in dense for time in block]
    assert replayed.runtimes["sparse"].times == [n * SECOND for n in sparse]
    # 4,000 packets of 100 bytes: two blocks are expected in 2,000 bytes.
    gaps = np.diff([0, *beats(replayed, "dense")])
    assert max(gaps) <= 4 * SECOND
    assert len(gaps) > 100


def test_what_fails_in_a_thread_ends_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)

    def broken(self: ScriptedRuntime, *_: object) -> int:
        if self._stream == "b":
            raise CaptureError(self._stream)
        return 1

    monkeypatch.setattr(ScriptedRuntime, "process", broken)
    with pytest.raises(CaptureError, match="b"):
        Replayed(tmp_path, {"a": [[1]], "b": [[1]]})


def test_a_step_that_ends_early_promises_only_what_all_have_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block of a second is a step of its own, and each step sends heartbeats."""
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    monkeypatch.setattr(side_by_side, "PART_BYTES", 1)
    monkeypatch.setattr(trace_clock, "HEARTBEAT_PACKETS", 1)
    dense = [[n * SECOND // 10] for n in range(100)]
    replayed = Replayed(tmp_path, {"a": dense, "b": dense[::3], "c": [[9 * SECOND]]}, skew_ns=0)
    replayed.check()
    assert replayed.runtimes["a"].times == [time for block in dense for time in block]
    assert beats(replayed, "a")[-1] >= 8 * SECOND
