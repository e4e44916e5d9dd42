"""What the progress line says in each phase of a run, and in how much room."""

from __future__ import annotations

import pytest

from gscope.cli.render.progress_text import RunPhase, RunView, compiled_text, progress_text
from gscope.queries.streams.process_events import CaptureProgress

CLOCK_NS = 1_700_000_000 * 10**9
"""2023-11-14 22:13:20 UTC."""


def _view(*reports: CaptureProgress, is_live: bool = False, every_s: float = 2.0) -> RunView:
    view = RunView(is_live=is_live, phase_since_s=100.0)
    for number, report in enumerate(reports):
        view.take(report, 100.0 + number * every_s)
    return view


def _read(packets: int, done: int, size: int | None = 40_000_000) -> CaptureProgress:
    return CaptureProgress(packets, done, size, CLOCK_NS)


def test_a_phase_of_unknown_length_says_how_long_it_takes() -> None:
    view = RunView(is_live=False, phase_since_s=100.0)
    assert progress_text(view, 101.0, 80) == "starting"
    view.enter(RunPhase.COMPILING, compiled_text(("flows",), 1), 101.0)
    assert progress_text(view, 102.0, 80) == "compiling flows (first use of this query)"
    assert progress_text(view, 104.0, 80) == "compiling flows (first use of this query), 3 s"
    view.enter(RunPhase.COMPILING, compiled_text(("flows",), 1), 104.0)
    assert progress_text(view, 105.0, 80).endswith(", 4 s")


def test_many_queries_are_counted() -> None:
    assert compiled_text(("a", "b", "c"), 1) == "a, b, c (first use of these queries)"
    assert compiled_text(tuple("abcd"), 1) == "4 queries (first use of these queries)"
    assert compiled_text((), 7) == "gscope's packet decoders, part 7 (first use of this version)"


def test_a_replay_says_how_far_it_is_and_when_it_has_read_all() -> None:
    view = _view(_read(0, 0), _read(5_000, 10_000_000))
    assert progress_text(view, 102.0, 120) == (
        "reading 10 of 40 MB (25 %), 6 s left, 2,500 packets/s, 5,000 packets, 2023-11-14 22:13:20Z"
    )


def test_a_pipe_has_no_size() -> None:
    assert progress_text(_view(_read(7, 1_200_000, None)), 100.0, 40) == (
        "reading: 1.2 MB, 7 packets"
    )


def test_a_live_run_has_recent_packets_drops_and_the_end_of_the_epoch() -> None:
    view = _view(
        *(CaptureProgress(packets, 0, None, CLOCK_NS, 7) for packets in (5_000, 8_000)),
        is_live=True,
    )
    view.epochs_ns = (60 * 10**9, 3600 * 10**9)
    assert progress_text(view, 103.0, 120) == (
        "capturing: 8,000 packets, 1,500/s, 7 dropped, epoch closes in 39 s, 2023-11-14 22:13:20Z"
    )
    view.epochs_ns = ()
    assert "epoch" not in progress_text(view, 103.0, 120)


@pytest.mark.parametrize("width", range(1, 130, 7))
def test_the_line_is_never_wider_than_the_terminal(width: int) -> None:
    views = [
        _view(_read(0, 0), _read(5_000, 10_000_000)),
        _view(CaptureProgress(1, 0, None, CLOCK_NS, 7), is_live=True),
        RunView(False, 0.0, RunPhase.COMPILING, compiled_text(("a" * 200,), 1)),
    ]
    assert all(len(progress_text(view, 103.0, width)) <= width for view in views)


def test_packets_end_the_compilation_but_not_what_follows_the_input() -> None:
    view = RunView(is_live=False, phase_since_s=100.0)
    view.enter(RunPhase.COMPILING, "q", 100.0)
    view.take(_read(1, 1), 101.0)
    assert view.phase is RunPhase.CAPTURING
    view.enter(RunPhase.AWAITING_JAVA, "", 102.0)
    view.take(_read(2, 2), 103.0)
    assert progress_text(view, 103.0, 80) == "waiting for Java to start"
