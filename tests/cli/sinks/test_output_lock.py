"""Files that a run writes under hidden names: what stands there already is never followed."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.cli.sinks.output_lock import lock_output
from gscope.cli.sinks.part_files import Parts
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / ".q.csv.partial").symlink_to(victim)
    with pytest.raises(UsageError, match="not a plain file"):
        lock_output(folder, "q", "csv")
    assert victim.read_text() == "mine"


def test_a_pipe_in_the_place_of_a_partial_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".q.csv.partial")
    with pytest.raises(UsageError, match="not a plain file"):
        lock_output(tmp_path, "q", "csv")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_part_is_a_file_of_its_own(kind: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "answers"
    folder.mkdir()
    table = pa.table({"n": [1]})
    parts = Parts(folder, "q", kind, table.schema, None, lambda: 0.0)
    parts.write(table)
    parts.settle()
    (staged,) = folder.glob(".q-*.partial")
    number = staged.name.replace("000001", "000002")
    parts.publish()
    (folder / number).symlink_to(victim)
    # Its name has the second of its beginning in it: either another name, or an error; never the
    # victim.
    with suppress(GscopeError):
        parts.write(table)
        parts.settle()
    assert victim.read_text() == "mine"
