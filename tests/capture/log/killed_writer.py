"""A process that writes a log until it is killed in the middle of whatever it does then."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run_and_kill(program: str, folder: Path, lines: int) -> None:
    """Run Python text with ``folder`` as its argument, and kill -9 it after a number of lines."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
    assert all(said)
