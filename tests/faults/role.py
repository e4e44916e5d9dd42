"""A command whose processes are killed, and which is started again when its supervisor is."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.support.gscope_command import PATIENCE_S, command, descendants, is_alive, wait_for

if TYPE_CHECKING:
    from pathlib import Path

_DAEMON = "gscope.capture.daemon"


class Role:
    """``gscope`` with a run of its own below ``folder``, from its construction until ``close``.

    Args:
        folder: for its work folder and its standard error; holds the file of the token.
        name: the name of the run.
        words: of the command.
    """

    def __init__(self, folder: Path, name: str, words: list[str | Path]) -> None:
        self.name = name
        self.run_dir = folder / f"work-{name}" / f"run-{name}"
        self._error = folder / f"{name}.err"
        self._words = command(
            *words,
            *("--run", name, "--work-dir", self.run_dir.parent, "--token-file"),
            *(folder / "token", "--failure-timeout", "60s"),
        )
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._error.open("ab") as error:
            return subprocess.Popen(self._words, stderr=error)

    @property
    def reported(self) -> str:
        """What was written to standard error."""
        return self._error.read_text()

    def ensure_alive(self) -> None:
        assert self._process.poll() is None, f"{self.name} ended: {self.reported}"

    def daemons(self) -> list[int]:
        self.ensure_alive()
        return [p for p, line in descendants(self._process.pid).items() if _DAEMON in line]

    def kill_daemon(self) -> None:
        (pid,) = wait_for(self.daemons, "a daemon")
        os.kill(pid, signal.SIGKILL)

    def kill_supervisor(self) -> None:
        """Kill the supervisor, wait until its processes have ended, and start it again."""
        children = descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        wait_for(lambda: not any(map(is_alive, children)), "the end of the daemon")
        self._process = self._started()

    def stop(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """Kill what is left of it; harmless when it has ended."""
        if self._process.poll() is not None:
            return
        children = descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        wait_for(lambda: not any(map(is_alive, children)), "the end of all children")
