"""Claims on disk: the batches that a reader of the stream log is reading, for a daemon that takes over meanwhile.

A daemon keeps claims in its memory. One that takes over in the middle of a step has to know them before the first row
that it logs sheds another, so each reader leaves its own in the run's folder before it reads anything.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_claims(run_dir: Path, reader: str, batches: Mapping[str, Sequence[int]]) -> None:
    """Leave what ``reader`` claims, in the place of what it claimed before.

    A disk that is full keeps the older ones: then only the daemon of now knows better.

    Args:
        run_dir: of the run.
        reader: by which name it claims.
        batches: sequence numbers by stream.
    """
    text = json.dumps({stream: list(numbers) for stream, numbers in batches.items()})
    with suppress(OSError):
        replace_file(_path(run_dir, reader), text)


def read_claims(run_dir: Path, reader: str) -> dict[str, tuple[int, ...]]:
    """What ``reader`` claimed last; {} if that was nothing, or cannot be read."""
    try:
        value = json.loads(_path(run_dir, reader).read_bytes())
        return {str(stream): tuple(map(int, numbers)) for stream, numbers in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _path(run_dir: Path, reader: str) -> Path:
    return run_dir / f"claims-{reader}.json"
