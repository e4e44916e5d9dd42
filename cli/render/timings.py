"""Where the time of a run went, phase by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.render.outcome import Outcome

_JOB = {
    "jvm_launched": "Java launched",
    "connected": "connected to the log",
    "session": "Spark session",
    "first_commit": "first step committed",
    "finished": "last step committed",
}
_CAPTURE = {
    "started_s": "interpreter",
    "imports_s": "libraries",
    "kernels_s": "kernel loaded or compiled",
    "capture_s": "packets read and aggregated",
}


def timing_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a table: when each phase was reached, then the phases that both processes report."""
    yield "seconds since the start of the command"
    for name, seconds in sorted(outcome.phases.items(), key=lambda item: item[1]):
        yield f"  {seconds:8.3f}  {name}"
    yield "capture daemon, seconds spent"
    for name, seconds in outcome.finished_capture.phases.items():
        yield f"  {seconds:8.3f}  {_CAPTURE.get(name, name.removesuffix('_s'))}"
    if outcome.job_phases:
        yield "HFTA job, seconds since its start"
        for name, seconds in outcome.job_phases.items():
            yield f"  {seconds:8.3f}  {_JOB.get(name, name)}"
