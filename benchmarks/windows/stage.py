"""The LFTAs of a set of windows over the SYNs of a day, in this process."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.trace import OUT
from gscope.capture.interface.open_log import open_log
from gscope.capture.log.log import read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.windows.window_plan import WindowPlan
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.queries.plan.program import Program

SLOTS = 1 << 16
"""More than a slice has sources, so that none is evicted."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the LFTAs of a set emitted, and the CPU seconds of their packets."""

    tuples: int
    cpu_s: float


def query_texts(windows: Sequence[tuple[int, int]], *, is_grouped: bool) -> list[str]:
    """Return a query for each window (range, slide)."""
    source, group = ("srcIP, ", " GROUP BY srcIP") if is_grouped else ("", "")
    return [
        f"DEFINE {{ query_name 'w{number}'; }} SELECT window_end, {source}count(*) AS cnt "
        f"FROM TCP [RANGE {range_} SLIDE {slide}]{group}"
        for number, (range_, slide) in enumerate(windows)
    ]


def program(windows: Sequence[tuple[int, int]], way: str, *, is_grouped: bool) -> Program:
    """Return the compiled set; ``way`` is a value of ``WindowPlan``."""
    text = ";\n".join(query_texts(windows, is_grouped=is_grouped))
    context = CompileContext(("main",), window_plan=WindowPlan(way))
    return compile_queries([QueryText(text, "windows")], context).program


def run(capture: Path, compiled: Program) -> Stage:
    """Run the LFTAs of a program over ``capture``."""
    folder = OUT / "windows-log"
    shutil.rmtree(folder, ignore_errors=True)
    settings = CaptureSettings((InterfaceSettings("main", (str(capture),)),), table_slots=SLOTS)
    log = open_log(folder, compiled, settings)
    try:
        begun = time.process_time()
        replay_capture(compiled, settings, log)
        cpu_s = time.process_time() - begun
    finally:
        log.close()
    tuples = sum(each.rows for each in read_log(folder) if isinstance(each, Batch))
    shutil.rmtree(folder)
    return Stage(tuples, cpu_s)
