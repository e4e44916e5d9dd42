"""Commits: after a crash the last one decides, so nothing is lost and nothing comes twice.

A step writes its outputs and carries below names that nobody reads, then one commit record, then
renames the outputs into place (``publish``). A restart repeats the renames of the last record, which is
harmless when they had been done, and sweeps away what no record names.

Whoever delivers an output removes it then. A record is kept while it is the last one, or an output of it is there.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gscope.engine.counts import Counts
from gscope.engine.storage.written import State
from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gscope.engine.storage.written import WrittenFile

_STAGED = ".staged-"


@dataclass(frozen=True, slots=True)
class Output:
    """Rows of one query that a step answered: an Arrow file, or a folder of Parquet files.

    Attributes:
        path: relative to the outputs folder.
        rows: in all files together.
        files: their names within the folder, in the order of their epochs; () for one Arrow file.
            The folder holds no others, and a reader need not look.
    """

    query: str
    path: str
    rows: int
    files: tuple[str, ...] = ()

    @classmethod
    def of_files(cls, query: str, path: str, files: Iterable[WrittenFile]) -> Output:
        """The output of those of ``files`` that hold rows."""
        held = [file for file in files if file.rows]
        return cls(query, path, sum(f.rows for f in held), tuple(f.name for f in held))


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit record.

    Attributes:
        step: its number, rising by one or more from commit to commit.
        operators: see ``Steps.snapshot``.
        outputs: what the step answered.
        trace: hops of the heartbeat that released the step, as plain JSON values.
        counts: what was counted beside rows since the run began.
    """

    step: int
    operators: dict[str, Any]
    outputs: tuple[Output, ...]
    trace: tuple[dict[str, Any], ...] = ()
    counts: Counts = field(default_factory=Counts)


class CommitLog:
    """The commit records and the published outputs below one folder.

    ``folder/commits/<step>.json``, ``folder/outputs/<query>/<step>…``, ``folder/carry/…``.
    """

    def __init__(self, folder: Path) -> None:
        self.outputs = folder / "outputs"
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
        """Where the output of that relative path is written before its commit."""
        path = self.outputs / output
        return path.with_name(_STAGED + path.name)

    def write(self, commit: Commit) -> None:
        """Make ``commit`` the last one, durably; from here on its outputs are answers.

        Raises:
            EngineError: not writable; the last one is the one before.
        """
        path = self._records / f"{commit.step:012d}.json"
        try:
            replace_file(path, json.dumps(asdict(commit)), is_durable=True)
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
        """All commits, oldest first, with the last one published and all leftovers removed."""
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
            batch["path"]
            for commit in commits[-1:]
            for operator in commit.operators.values()
            for batch in _carried(operator)
        }
        self.drop_carry(named)
        return commits

    @property
    def undelivered_bytes(self) -> int:
        """Size of the outputs that nobody has removed yet, those of the last commit aside."""
        self._prune()
        return sum(kept.size_bytes for kept in self._earlier)

    @property
    def carry_bytes(self) -> int:
        """Size of the rows that wait for later steps."""
        return sum(_size_bytes(path) for path in self.carry.iterdir())

    def _keep(self, path: Path, outputs: Sequence[Output]) -> None:
        if self._last is not None:
            size = sum(_size_bytes(output) for output in self._last.outputs)
            self._earlier.append(replace(self._last, size_bytes=size))
        self._last = _KeptRecord(path, tuple(self.outputs / output.path for output in outputs))

    def _prune(self) -> None:
        """Forget earlier commits that are delivered, which they are in order."""
        while self._earlier and not any(output.exists() for output in self._earlier[0].outputs):
            _remove(self._earlier.popleft().record)

    def drop_carry(self, keep: set[str]) -> None:
        """Delete carried rows but those of the files and folders to ``keep``."""
        names = {path.partition("/")[0] for path in keep}
        for path in self.carry.iterdir():
            if path.name not in names:
                _remove(path)


@dataclass(frozen=True, slots=True)
class _KeptRecord:
    """A commit record that is there, and the outputs it is kept for."""

    record: Path
    outputs: tuple[Path, ...]
    size_bytes: int = 0


def batch_to_json(batch: Batch) -> dict[str, Any]:
    """A carried batch as plain JSON values."""
    return asdict(batch)


def batch_from_json(value: dict[str, Any]) -> Batch:
    """The inverse of ``batch_to_json``."""
    extents = tuple(Extent(**extent) for extent in value["extents"])
    return Batch(**{**value, "extents": extents})


def state_from_json(value: dict[str, Any]) -> State:
    """The inverse of ``batch_to_json`` for the state of an operator."""
    extents = tuple(Extent(**extent) for extent in value["extents"])
    return State(**{**value, "extents": extents, "files": tuple(value["files"])})


def _carried(operator: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The carried batches of an operator and its state."""
    for side in operator["sides"]:
        for port in side.values():
            yield from port["carry"]
    if operator["state"] is not None:
        yield operator["state"]


def _read(path: Path) -> Commit:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        outputs = tuple(
            Output(**{**output, "files": tuple(output["files"])}) for output in value["outputs"]
        )
        trace = tuple(value["trace"])
        return Commit(value["step"], value["operators"], outputs, trace, Counts(**value["counts"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"the commit record {path.name} is unreadable: {error}"
        raise EngineError(message) from error


def _size_bytes(path: Path) -> int:
    """Of a file, or of the files of a folder; 0 of what is gone meanwhile."""
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
