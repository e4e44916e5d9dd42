"""A capture daemon that gets a part of one core, as on a slow machine, and what it reports."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 10_000
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """What the daemon reports at a moment.

    Attributes:
        at_s: when it was written, in seconds since 1970.
        rate: the rate that follows the load.
        dropped: packets that the kernel dropped so far.
        occupancy: part of the ring that is in use.
    """

    at_s: float
    rate: float
    dropped: int
    occupancy: float


def daemon_of(run_dir: Path) -> int:
    """Return the process of the capture daemon of a run."""
    return int(json.loads((run_dir / CAPTURE_STATISTICS_FILE).read_text())["pid"])


@contextmanager
def limited(process: int, share: float) -> Iterator[None]:
    """Let all threads of a process have together a share of one core (control groups 1 or 2).

    They have precedence up to this share, whatever else runs on the machine.
    """
    is_unified = (_GROUPS / "cgroup.controllers").exists()
    folder = (_GROUPS if is_unified else _GROUPS / "cpu") / f"gscope-overload-{process}"
    if is_unified:
        (_GROUPS / "cgroup.subtree_control").write_text("+cpu")
    folder.mkdir()
    try:
        quota_us = int(share * _PERIOD_US)
        if is_unified:
            (folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
            (folder / "cpu.weight").write_text("10000")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            (folder / "cpu.shares").write_text("262144")
        (folder / "cgroup.procs").write_text(str(process))
        yield
    finally:
        # The process may be alive still.
        with suppress(OSError):
            (folder.parent / "cgroup.procs").write_text(str(process))
        folder.rmdir()


@contextmanager
def watched(run_dir: Path) -> Iterator[list[Look]]:
    """Yield a list that grows by what the daemon reports, about once a second."""
    looks: list[Look] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_S):
            with suppress(OSError, ValueError):
                found = json.loads((run_dir / CAPTURE_STATISTICS_FILE).read_text())
                at_s = found["written_ns"] / 1e9
                if not looks or looks[-1].at_s < at_s:
                    (one,) = found["interfaces"]
                    looks.append(
                        Look(
                            at_s, found["load_rate"], one["dropped_packets"], one["ring_occupancy"]
                        )
                    )

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield looks
    finally:
        is_over.set()
        thread.join()


def wait_until(condition: Callable[[], bool], limit_s: float, what: str) -> None:
    """Wait until a function returns true.

    Raises:
        RuntimeError: it has not within ``limit_s`` seconds.
    """
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            message = f"{what}: not within {limit_s:g} s"
            raise RuntimeError(message)
        time.sleep(LOOK_S)
