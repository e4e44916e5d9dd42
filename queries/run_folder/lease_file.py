"""Leases on disk: the batches of the stream log that a reader is reading, for the next daemon.

A daemon keeps leases in memory. One that takes over in the middle of a step must know them before
the first row that it logs causes another to be shed, so each reader writes its leases to the run's
folder before it reads.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_leases(run_dir: Path, reader: str, batches: Mapping[str, Sequence[int]]) -> None:
    """Replace the leases of ``reader``.

    On a full disk the previous leases stay: then only the running daemon knows the new ones.

    Args:
        run_dir: the folder that the capture daemon uses.
        reader: the reader's name towards the log.
        batches: the sequence numbers of the leased batches, by stream.
    """
    text = json.dumps({stream: list(numbers) for stream, numbers in batches.items()})
    with suppress(OSError):
        replace_file(_path(run_dir, reader), text)


def read_leases(run_dir: Path, reader: str) -> dict[str, tuple[int, ...]]:
    """Return the last leases of ``reader``; {} if there are none or they are unreadable."""
    try:
        value = json.loads(_path(run_dir, reader).read_bytes())
        return {str(stream): tuple(map(int, numbers)) for stream, numbers in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _path(run_dir: Path, reader: str) -> Path:
    return run_dir / f"leases-{reader}.json"
