"""The files of an answer as one sequence of rows, in which a puller has a position.

A run adds Parquet and Arrow files that are complete and that it never takes back, numbered without
gaps (``cli/sinks/part_files.py``). So a position is a file and a number of its rows, and stays
valid whatever is killed. Files that were removed before they were pulled are reported, never
skipped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.errors import GscopeError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCH_ROWS = 16_384
BATCH_BYTES = 4 << 20
"""Limits of a batch; a single row may be larger."""

_PART = re.compile(r"(?P<query>.+)-\d{8}T\d{6}Z-(?P<number>\d+)\.(?:parquet|arrow)")
_WHOLE = re.compile(r"(?P<query>[^.].*)\.(?:parquet|arrow)")
_POSITION = re.compile(r"(?P<name>[^/@:]+)(?:@(?P<changed>\d+))?:(?P<rows>\d+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an answer.

    Attributes:
        path: where it is.
        number: its place in the sequence; 0 for the single file of a replay.
        identity: what distinguishes it from other files of that number.
    """

    path: Path
    number: int
    identity: str


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two rows: behind ``rows`` rows of a file.

    Attributes:
        number: the number of the file.
        identity: its identity.
        rows: the rows of it that lie before the position.
    """

    number: int
    identity: str
    rows: int

    def __str__(self) -> str:
        return f"{self.identity}:{self.rows}"

    @classmethod
    def parse(cls, query: str, text: str) -> Position:
        """Return the position that ``str`` returned as ``text``.

        Raises:
            GscopeError: it is none of this answer.
        """
        found = _POSITION.fullmatch(text)
        part = None if found is None else _numbered(found["name"])
        if found is None or part is None or part[0] != query or len(text) > _LONGEST:
            message = f"invalid position {text!r:.100}: expected one that came with rows of {query}"
            raise GscopeError(message)
        identity = text.rpartition(":")[0]
        return cls(part[1], identity, int(found["rows"]))


_LONGEST = 1000


def _numbered(name: str) -> tuple[str, int] | None:
    """Return the answer that a file belongs to, and its number; None for another file."""
    if found := _PART.fullmatch(name):
        return found["query"], int(found["number"])
    if found := _WHOLE.fullmatch(name):
        return found["query"], 0
    return None


def find_answers(folder: Path) -> dict[str, tuple[Part, ...]]:
    """Return the files of each answer in a folder, in the order of their rows.

    Raises:
        OSError: the folder cannot be read.
    """
    # A file that appears during a look can be missed, and a later one be seen. A second look sees
    # every file that is earlier than one of the first.
    latest = {query: parts[-1].number for query, parts in _look(folder).items()}
    return {
        query: seen
        for query, parts in _look(folder).items()
        if (seen := tuple(part for part in parts if part.number <= latest.get(query, -1)))
    }


def _look(folder: Path) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for path in folder.iterdir():
        numbered = _numbered(path.name)
        if numbered is None or path.name.startswith(".") or not path.is_file():
            continue
        query, number = numbered
        # A replay replaces its file, which has another identity then.
        changed = "" if number else f"@{path.stat().st_mtime_ns}"
        found.setdefault(query, []).append(Part(path, number, f"{path.name}{changed}"))
    return {
        query: sorted(parts, key=lambda part: part.number) for query, parts in sorted(found.items())
    }


@dataclass(frozen=True, slots=True)
class Unread:
    """What follows a position.

    Attributes:
        parts: the files with rows after it, up to the first that is missing, each with the number
            of its rows before it.
        gap: what is missing behind them, as a sentence; "" for nothing.
    """

    parts: tuple[tuple[Part, int], ...]
    gap: str = ""


def unread(parts: tuple[Part, ...], after: Position | None) -> Unread:
    """Return what follows a position.

    Raises:
        GscopeError: the file of the position has been replaced, or two files have one number.
    """
    numbers = [part.number for part in parts]
    if len(set(numbers)) < len(numbers):
        message = f"{parts[0].path.parent} has two files of one number; serve one format at a time"
        raise GscopeError(message)
    if not parts:
        return Unread(())
    if after is None:
        return _until_gap(parts, parts[0].number, 0)
    same = next((part for part in parts if part.number == after.number), None)
    if same is not None and same.identity != after.identity:
        message = f"{after.identity} was replaced by {same.identity}; pull from the first row"
        raise GscopeError(message)
    if same is not None:
        rest = tuple(part for part in parts if part.number >= after.number)
        return _until_gap(rest, after.number, after.rows)
    later = tuple(part for part in parts if part.number > after.number)
    if not later:
        message = (
            f"{after.identity} was removed, and files are numbered from the beginning, up to"
            f" {parts[-1].number}; pull from the first row"
        )
        raise GscopeError(message)
    return _until_gap(later, after.number + 1, 0)


def _until_gap(parts: tuple[Part, ...], first: int, begin: int) -> Unread:
    """Return the files numbered without a gap from ``first`` on, the first from a row on."""
    found: list[tuple[Part, int]] = []
    for expected, part in enumerate(parts, first):
        if part.number != expected:
            gap = (
                f"the files {expected} to {part.number - 1} were removed before they were pulled;"
                f" what is left begins after {part.identity}:0"
            )
            return Unread(tuple(found), gap)
        found.append((part, begin))
        begin = 0
    return Unread(tuple(found))


def end_of(parts: tuple[Part, ...]) -> Position | None:
    """Return the position behind all rows.

    Raises:
        OSError: a file cannot be read.
    """
    if not parts:
        return None
    last = parts[-1]
    return Position(last.number, last.identity, count_rows(last))


def schema_of(part: Part) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        OSError: it cannot be read.
        pyarrow.ArrowInvalid: it is something else.
    """
    if part.path.suffix == ".parquet":
        return pq.read_schema(part.path)
    with pa.OSFile(str(part.path)) as file, pa.ipc.open_file(file) as reader:
        return reader.schema


def count_rows(part: Part) -> int:
    """Return the number of rows of a file; see ``schema_of``."""
    if part.path.suffix == ".parquet":
        return int(pq.read_metadata(part.path).num_rows)
    with pa.OSFile(str(part.path)) as file, pa.ipc.open_file(file) as reader:
        return int(reader.count_rows())


def batches_of(part: Part, begin: int) -> Iterator[tuple[pa.RecordBatch, Position]]:
    """Yield the rows of a file from row ``begin`` on, and the position after each batch.

    See ``schema_of`` for errors.
    """
    row = 0
    for batch in _batches(part):
        first = max(0, begin - row)
        row += batch.num_rows
        if first >= batch.num_rows:
            continue
        rest = batch.slice(first)
        size = max(1, min(BATCH_ROWS, rest.num_rows * BATCH_BYTES // max(1, rest.nbytes)))
        for offset in range(0, rest.num_rows, size):
            piece = rest.slice(offset, size)
            end = row - rest.num_rows + offset + piece.num_rows
            yield piece, Position(part.number, part.identity, end)


def _batches(part: Part) -> Iterator[pa.RecordBatch]:
    if part.path.suffix == ".parquet":
        with pq.ParquetFile(part.path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS)
        return
    with pa.OSFile(str(part.path)) as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
