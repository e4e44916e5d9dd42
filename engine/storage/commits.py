"""Commits: after a crash the last one decides, so that no row is lost and none is answered twice.

A step writes its outputs and carries under names that no reader looks for, then one commit record,
then renames the outputs into place (``publish``). A restart repeats the renames of the last record,
which does no harm if they were done, and deletes files that no record names.

The reader that delivers an output removes it. A record is kept while it is the last one, or one of
its outputs exists.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from dataclasses import asdict, field, fields, replace
from typing import TYPE_CHECKING, Any

from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import State, WrittenFile
from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import OUTPUTS_FOLDER
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.messages import Batch, Extent, RowGroup
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_STAGED = ".staged-"
_WHOLE = ""


@dataclass(frozen=True, slots=True)
class Output:
    """Rows of one query that a step answered: an Arrow file, or a folder of Parquet files.

    Attributes:
        query: the name of the query.
        path: the path of the file or folder, relative to the folder of outputs.
        rows: the number of rows in all files together.
        files: the names of the files within the folder, in the order of their epochs; () for one
            Arrow file. The folder holds no others, so a reader need not list it.
    """

    query: str
    path: str
    rows: int
    files: tuple[str, ...] = ()

    @classmethod
    def of_files(cls, query: str, path: str, files: Iterable[WrittenFile]) -> Output:
        """Return the output that consists of those of ``files`` that hold rows."""
        held = [file for file in files if file.rows]
        return cls(query, path, sum(f.rows for f in held), tuple(f.name for f in held))


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit record.

    Attributes:
        step: the number of the step, which rises by one or more from commit to commit.
        operators: the state of all operators; see ``Steps.snapshot``.
        outputs: the rows that the step answered.
        trace: the hops of the heartbeat that released the step, as plain JSON values.
        counts: counts other than rows, since the run began.
        partitioning: what the row groups of carried batches are divided by; "" if by nothing.
        incomplete: those of the epochs answered with this commit that may lack packets. Epochs that
            were answered without rows count to the next commit.
    """

    step: int
    operators: dict[str, Any]
    outputs: tuple[Output, ...]
    trace: tuple[dict[str, Any], ...] = ()
    counts: Counts = field(default_factory=Counts)
    partitioning: str = ""
    incomplete: tuple[IncompleteEpochs, ...] = ()

    def to_json(self) -> str:
        """Return the record as the text of one JSON object."""
        # asdict would copy the states of all operators, value by value.
        return json.dumps(_attributes(self), default=_attributes)


class CommitLog:
    """The commit records and the published outputs below one folder.

    ``folder/commits/<step>.json``, ``folder/outputs/<query>/<step>…``, ``folder/carry/…``.
    """

    def __init__(self, folder: Path) -> None:
        self.outputs = folder / OUTPUTS_FOLDER
        self.carry = folder / "carry"
        self._records = folder / "commits"
        self._earlier: deque[_KeptRecord] = deque()
        self._last: _KeptRecord | None = None
        try:
            for each in (self.outputs, self.carry, self._records):
                each.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            message = f"cannot write to {folder}: {os_reason(error)}"
            raise EngineError(message) from error

    def staged(self, output: str) -> Path:
        """Return the path of an output, given its relative path, until it is published."""
        path = self.outputs / output
        return path.with_name(_STAGED + path.name)

    def write(self, commit: Commit) -> None:
        """Make ``commit`` the last one, durably; from then on its outputs are answers.

        Raises:
            EngineError: the record cannot be written; the previous commit remains the last one.
        """
        path = self._records / f"{commit.step:012d}.json"
        try:
            replace_file(path, commit.to_json(), is_durable=True)
        except OSError as error:
            message = f"cannot write the commit record {path}: {os_reason(error)}"
            raise EngineError(message) from error
        self._keep(path, commit.outputs)
        self._prune()

    def publish(self, outputs: Sequence[Output]) -> None:
        """Rename committed outputs into place; harmless when repeated."""
        for output in outputs:
            staged = self.staged(output.path)
            if staged.exists():
                staged.rename(self.outputs / output.path)

    def recover(self) -> list[Commit]:
        """Publish the last commit, delete leftovers, and return all commits, oldest first."""
        for cut_off in self._records.glob("*.new"):
            _remove(cut_off)
        paths = sorted(self._records.glob("*.json"))
        commits = [_read(path) for path in paths]
        if commits:
            self.publish(commits[-1].outputs)
        for path, commit in zip(paths, commits, strict=True):
            self._keep(path, commit.outputs)
        self._prune()
        for leftover in self.outputs.glob(f"*/{_STAGED}*"):
            _remove(leftover)
        named = {
            path
            for commit in commits[-1:]
            for operator in commit.operators.values()
            for path in _carried(operator)
        }
        self.drop_carry(named)
        return commits

    @property
    def undelivered_bytes(self) -> int:
        """The size of all outputs that are not yet delivered, except those of the last commit."""
        self._prune()
        return sum(kept.size_bytes for kept in self._earlier)

    def _keep(self, path: Path, outputs: Sequence[Output]) -> None:
        if self._last is not None:
            size = sum(_size_bytes(output) for output in self._last.outputs)
            self._earlier.append(replace(self._last, size_bytes=size))
        self._last = _KeptRecord(path, tuple(self.outputs / output.path for output in outputs))

    def _prune(self) -> None:
        """Delete the records of earlier commits that are delivered; delivery is in order."""
        while self._earlier and not any(output.exists() for output in self._earlier[0].outputs):
            _remove(self._earlier.popleft().record)

    def drop_carry(self, keep: set[str]) -> None:
        """Delete carried rows except the files and folders in ``keep``.

        Of a folder that ``keep`` does not name itself, only files that it names remain.
        """
        kept: dict[str, set[str]] = {}
        for path in keep:
            folder, _, file = path.partition("/")
            kept.setdefault(folder, set()).add(file)
        for found in self.carry.iterdir():
            files = kept.get(found.name)
            if files is None:
                _remove(found)
            elif _WHOLE not in files:
                for inside in found.iterdir():
                    if inside.name not in files:
                        _remove(inside)


@dataclass(frozen=True, slots=True)
class _KeptRecord:
    """A commit record on disk, and the outputs for which it is kept."""

    record: Path
    outputs: tuple[Path, ...]
    size_bytes: int = 0


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of a dataclass by their names, none of them copied."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def batch_to_json(batch: Batch) -> dict[str, Any]:
    """Return a carried batch as plain JSON values."""
    return asdict(batch)


def batch_from_json(value: dict[str, Any]) -> Batch:
    """Return a batch from plain JSON values: the inverse of ``batch_to_json``."""
    return Batch(**{**value, **_tuples_from_json(value)})


def state_from_json(value: dict[str, Any]) -> State:
    """Return an operator's state from plain JSON values: the inverse of ``batch_to_json``."""
    kept = tuple(
        WrittenFile(**{**file, "extents": _extents_from_json(file)})
        for file in value.get("kept", ())
    )
    parts = {"files": tuple(value["files"]), "kept": kept}
    return State(**{**value, **_tuples_from_json(value), **parts})


def _tuples_from_json(value: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the attributes of a batch that are tuples."""
    row_groups = tuple(RowGroup(**group) for group in value.get("row_groups", ()))
    return {"extents": _extents_from_json(value), "row_groups": row_groups}


def _extents_from_json(value: dict[str, Any]) -> tuple[Extent, ...]:
    return tuple(Extent(**extent) for extent in value["extents"])


def _carried(operator: dict[str, Any]) -> Iterator[str]:
    """Yield the paths of the carried batches of an operator, and of its state."""
    for side in operator["sides"]:
        for port in side.values():
            yield from (batch["path"] for batch in port["carry"])
    if operator["state"] is not None:
        yield from state_from_json(operator["state"]).paths


def _read(path: Path) -> Commit:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        outputs = tuple(
            Output(**{**output, "files": tuple(output["files"])}) for output in value["outputs"]
        )
        trace = tuple(value["trace"])
        counts = Counts(**value["counts"])
        partitioning = value.get("partitioning", "")
        incomplete = tuple(IncompleteEpochs(**each) for each in value["incomplete"])
        return Commit(
            value["step"], value["operators"], outputs, trace, counts, partitioning, incomplete
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"the commit record {path.name} is unreadable: {error}"
        raise EngineError(message) from error


def _size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files of a folder; 0 if it is gone."""
    try:
        if path.is_dir():
            return sum(_size_bytes(inside) for inside in path.iterdir())
        return path.stat().st_size
    except OSError:
        return 0


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
