"""What stays of a run that has ended: its counters and its program, for ``explain --run``.

``WORK_DIR/ended/run-NAME`` has the layout of a run's folder, with the few files that are read once
no process writes them any more. It holds no packets, rows or answers. Only the latest runs are
kept.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.cli.rundir.records import ENDED_FOLDER
from gscope.queries.run_folder.layout import (
    CAPTURE_STATISTICS_FILE,
    JOB_FOLDER,
    JOB_STATISTICS_FILE,
    PROGRAM_FILE,
    RUN_FILE,
    TRACES_FOLDER,
)

if TYPE_CHECKING:
    from pathlib import Path

MAX_ENDED = 16
"""The runs that are kept; the oldest are deleted first."""

_FILES = (RUN_FILE, PROGRAM_FILE, CAPTURE_STATISTICS_FILE, JOB_STATISTICS_FILE)
_STAGED = ".new-"


def keep_counters(run: Path) -> None:
    """Copy the counters of the run in the folder ``run``, which has ended and is deleted soon.

    They replace those of an earlier run of that name. A full disk leaves them out.
    """
    ended = run.parent / ENDED_FOLDER
    staged = ended / f"{_STAGED}{run.name}"
    with suppress(OSError):
        ended.mkdir(mode=0o700, exist_ok=True)
        try:
            for name in _names(run):
                place = staged / name
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                # The processes that write counters may have another user: links are not followed.
                shutil.copyfile(run / name, place, follow_symlinks=False)
            _remove(ended / run.name)
            staged.rename(ended / run.name)
        finally:
            _remove(staged)
        _prune(ended)


def _names(run: Path) -> list[str]:
    traces = f"{JOB_FOLDER}/{TRACES_FOLDER}"
    found = [f"{traces}/{path.name}" for path in (run / traces).glob("*.ndjson")]
    return [name for name in (*_FILES, *found) if (run / name).is_file()]


def _prune(ended: Path) -> None:
    runs = sorted(ended.iterdir(), key=lambda path: path.lstat().st_mtime_ns)
    for path in runs[:-MAX_ENDED]:
        _remove(path)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
