"""How a capture of an agent stands, by what its process reports."""

from __future__ import annotations

import queue
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from gscope.capture.log.agent.messages import SERVING, CaptureState
from gscope.cli.agent.held_capture import HeldCapture
from gscope.cli.agent.settings import REQUEST_FILE, HeldRequest, write_plain
from gscope.queries.streams.process_events import CaptureComplete, CaptureServing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("reports", [*permutations((CaptureServing(9), CaptureComplete()))])
def test_a_short_replay_may_be_complete_before_it_is_served(
    reports: tuple[object, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "captures" / "short"
    folder.mkdir(parents=True)
    write_plain(folder / REQUEST_FILE, HeldRequest({}, "", is_recording=True))
    capture = HeldCapture(folder, tmp_path, queue.SimpleQueue(), print)
    for report in reports:
        capture.on_event(report)
    assert capture.state == CaptureState(SERVING, 9, is_complete=True)
    assert capture.is_recorded
