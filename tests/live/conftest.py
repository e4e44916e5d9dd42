"""What tests of live runs share."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from gscope.cli.rundir.records import find_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A work dir; whatever still runs there at the end is ended."""
    yield tmp_path / "work"
    for left in find_runs(tmp_path / "work"):
        if left.is_alive:
            os.kill(left.pid, signal.SIGKILL)
