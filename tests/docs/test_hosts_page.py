"""The commands of docs/hosts.md, typed as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import PATIENCE_S, wait_for
from tests.support.requirements import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hosts.md"
_TRIED = re.compile(r"^## Try it.*?^```\n(.*?)^```\n```csv\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DIVIDED = re.compile(
    r"^With the two agents.*?^```\n(.*?)^```\n```csv\n(.*?)^```", re.MULTILINE | re.DOTALL
)

pytestmark = [pytest.mark.slow, needs("openssl")]


class Terminal:
    """Runs the lines of a page in ``folder``; those that end in ``&`` stay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left: list[subprocess.Popen[str]] = []

    def type(self, line: str) -> str:
        """Run a line; return what it wrote to standard output."""
        if line.endswith("&"):
            self._start(shlex.split(line.removesuffix("&")))
            return ""
        bin_folder = Path(sys.executable).parent
        done = subprocess.run(
            line.replace(
                "python -m tests.docs.traffic .", f"python -m tests.docs.traffic {self._folder}"
            ),
            shell=True,
            check=True,
            text=True,
            capture_output=True,
            cwd=ROOT if "tests.docs" in line else self._folder,
            env={
                "PATH": f"{bin_folder}:/usr/bin:/bin",
                "TMPDIR": os.environ["TMPDIR"],
                "XDG_CACHE_HOME": _cache(),
            },
            timeout=PATIENCE_S,
        )
        return done.stdout

    def _start(self, words: list[str]) -> None:
        assert words.pop(0) == "gscope"
        errors = self._folder / f"{len(self._left)}.err"
        with errors.open("wb") as file:
            made = subprocess.Popen(
                [sys.executable, "-m", "gscope", *words], cwd=self._folder, stderr=file, text=True
            )
        self._left.append(made)
        wait_for(lambda: "listening at" in errors.read_text() or made.poll(), "an agent")
        assert made.poll() is None, errors.read_text()

    def close(self) -> None:
        for process in self._left:
            process.terminate()
            process.wait(PATIENCE_S)


def _cache() -> str:
    return os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_the_commands_give_the_answers_that_the_page_shows(terminal: Terminal) -> None:
    page = PAGE.read_text(encoding="utf-8")
    found, divided = _TRIED.search(page), _DIVIDED.search(page)
    assert found is not None
    assert divided is not None
    ports = {port: str(free_port()) for port in ("9480", "9481")}

    def typed(lines: str) -> str:
        """Type lines; return what the last one wrote."""
        for port, free in ports.items():
            lines = lines.replace(port, free)
        return [terminal.type(line.partition("   #")[0]) for line in lines.splitlines()][-1]

    for lines, shown in (found.groups(), divided.groups()):
        assert typed(lines) == shown
