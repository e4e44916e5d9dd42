"""The most memory that each process of a command ever had, from ``/proc``."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POLL_S = 0.02


@dataclass
class Watched:
    """A command that ended.

    Attributes:
        peaks: bytes of memory at most, by process id and name.
        was_stopped: whether it was killed because a process passed the limit or time ran out.
    """

    returncode: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    peaks: dict[tuple[int, str], int] = field(default_factory=dict)
    was_stopped: bool = False

    @property
    def peak(self) -> int:
        """The most that any process had."""
        return max(self.peaks.values(), default=0)


def watch(
    command: Sequence[str], folder: Path, *, limit: int, timeout_s: float, cwd: Path | None = None
) -> Watched:
    """Run a command; kill it when a process passes ``limit`` bytes or time is up.

    Args:
        folder: for what it writes to standard output and standard error.
    """
    out, err = folder / "stdout", folder / "stderr"
    watched = Watched()
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(
            command, stdout=out_file, stderr=err_file, start_new_session=True, cwd=cwd
        )
        deadline = time.monotonic() + timeout_s
        while process.poll() is None:
            for pid in (process.pid, *_descendants(process.pid)):
                _note(watched.peaks, pid)
            if watched.peak > limit or time.monotonic() > deadline:
                watched.was_stopped = True
                for pid in (process.pid, *_descendants(process.pid)):
                    with contextlib.suppress(ProcessLookupError):
                        _kill(pid)
            time.sleep(POLL_S)
    watched.returncode = process.returncode
    watched.stdout, watched.stderr = out.read_bytes(), err.read_bytes()
    return watched


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _note(peaks: dict[tuple[int, str], int], pid: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        if "VmHWM" in facts:
            key = pid, facts["Name"].strip()
            peak = int(facts["VmHWM"].split()[0]) * 1024
            peaks[key] = max(peak, peaks.get(key, 0))


def _kill(pid: int) -> None:
    import os
    import signal

    os.kill(pid, signal.SIGKILL)
