"""Reasons of the operating system at the end of a message."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "permission denied"),
        (OSError(errno.ENOSPC, "IOError: could not write. Detail: …"), "no space left on device"),
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (OSError("No folder to write to"), "no folder to write to"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_a_reason_is_short_and_begins_in_lower_case(error: Exception, reason: str) -> None:
    assert os_reason(error) == reason


def test_an_error_of_arrow_has_the_system_s_words(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        parquet.write_table(pa.table({"a": [1]}), str(tmp_path / "none" / "file"))
    assert os_reason(caught.value) == "no such file or directory"
