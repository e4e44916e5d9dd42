"""A folder that other users can reach."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder of the test that other users can enter.

    ``tmp_path`` is closed to them, and every other run of pytest closes the folders above it again.
    """
    with tempfile.TemporaryDirectory(prefix="gscope-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
