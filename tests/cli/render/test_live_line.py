"""The progress of a live run: packets a second of late, drops, the time reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.render.progress import LiveLine
from gscope.queries.streams.process_events import CaptureProgress

if TYPE_CHECKING:
    import pytest


def test_the_rate_is_that_since_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("gscope.cli.render.progress.time.monotonic", lambda: now[0])
    line = LiveLine(shares_terminal=False)
    try:
        for packets, dropped in ((5_000, 0), (8_000, 7)):
            line.on_progress(CaptureProgress(packets, 0, None, 1_700_000_000 * 10**9, dropped))
            now[0] += 2.0
        (task,) = line._progress.tasks
        assert task.description == "capturing"
        assert task.fields["rate"] == "1,500 packets/s"
        assert task.fields["drops"] == "7 dropped"
        assert task.fields["clock"] == "2023-11-14 22:13:20"
    finally:
        line.close()
