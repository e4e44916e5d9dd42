"""The ``gscope`` command as a process of its own, and what /proc says of its children."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.cli.rundir.records import choose_run
from gscope.cli.status.document import status_document
from gscope.errors import GscopeError

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 300.0
"""After this a test that waits has failed. It decides nothing else: machines are shared."""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "gscope", *map(str, arguments)]


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(
        command(*arguments), text=True, check=False, timeout=2 * PATIENCE_S, **settings
    )


def wait_for(what: Callable[[], Any], why: str) -> Any:
    """The first true value of ``what``."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    message = f"{why} did not happen within {PATIENCE_S:.0f} s"
    raise AssertionError(message)


def status(work_dir: Path) -> dict[str, Any]:
    """Return what ``gscope status --json`` prints of the only run in ``work_dir``.

    It is {} if none is active. For waiting: a process for each look would slow down what is waited
    for.
    """
    try:
        document = status_document(choose_run(work_dir, None), time.time_ns())
    except GscopeError:
        return {}
    return dict(json.loads(json.dumps(document)))


def descendants(pid: int) -> dict[int, str]:
    """The command line of every process below ``pid`` by number."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(folder.name)], lines[int(folder.name)] = int(fields[1]), line
    found: dict[int, str] = {}
    for number in parents:
        ancestor = number
        while ancestor in parents and ancestor != pid:
            ancestor = parents[ancestor]
        if ancestor == pid and number != pid:
            found[number] = lines[number]
    return found


def is_alive(pid: int) -> bool:
    """Whether there is a process ``pid`` that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
