"""Agents as processes, for tests."""

from __future__ import annotations

import re
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.support.gscope_command import PATIENCE_S, command, descendants, is_alive, wait_for

if TYPE_CHECKING:
    from pathlib import Path

_LISTENING = re.compile(r"listening at (\S+);")


class AgentProcess:
    """``gscope capture`` on loopback, from its construction until ``close``.

    Args:
        folder: for its work folder and its standard error; holds the file of the token.
        name: of the host.
        words: further options.
        listen: where it listens.
    """

    def __init__(
        self, folder: Path, name: str, *words: str | Path, listen: str = "127.0.0.1:0"
    ) -> None:
        self.name = name
        self.work_dir = folder / f"agent-{name}"
        self._error = folder / f"{name}.err"
        self._words = [
            *("capture", "--token-file", folder / "token", "--work-dir", self.work_dir),
            *words,
        ]
        self._process = self._started(listen)
        self.address = wait_for(self._listening, f"agent {name}")

    def _started(self, listen: str) -> subprocess.Popen[bytes]:
        with self._error.open("wb") as error:
            return subprocess.Popen(command(*self._words, "--listen", listen), stderr=error)

    def _listening(self) -> str | None:
        assert self._process.poll() is None, self.reported
        found = _LISTENING.search(self.reported)
        return found[1] if found is not None else None

    @property
    def host(self) -> str:
        """What ``--host`` takes."""
        return f"{self.name}={self.address}"

    @property
    def reported(self) -> str:
        """What it wrote to standard error since it was last started."""
        return self._error.read_text()

    def children(self) -> dict[int, str]:
        return descendants(self._process.pid)

    def processes(self) -> set[int]:
        """The agent and all processes below it."""
        return {self._process.pid, *self.children()}

    def await_forgotten(self) -> None:
        """Wait until it has forgotten all captures."""
        folder = self.work_dir / "agent" / "captures"
        wait_for(lambda: not list(folder.iterdir()), f"agent {self.name} forgets its captures")

    def kill(self) -> None:
        """Kill it, and wait until its processes have ended as well."""
        children = self.children()
        self._process.kill()
        self._process.wait()
        wait_for(lambda: not any(map(is_alive, children)), "the end of its processes")

    def start_again(self) -> None:
        self._process = self._started(self.address)
        wait_for(self._listening, f"agent {self.name}")

    def stop(self) -> int:
        """Ask it to end; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """Kill what is left of it; harmless when it has ended."""
        if self._process.poll() is None:
            self.kill()
