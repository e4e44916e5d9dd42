"""Answers as Parquet in folders by time.

Those of live runs grow, those of replays appear at once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gscope.cli.sinks.open_parts import OpenParts, publish, remove_staging, staged
from gscope.cli.sinks.output_lock import lock_output, unlock_output
from gscope.cli.sinks.part_files import PART_ROWS, PART_S
from gscope.cli.sinks.replay_files import in_sentences
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.sinks.time_partitions import TimePartitions


class PartitionedParts:
    """The folder ``<query>`` of a live run, to which parts are added.

    As ``Parts``, the parts of all partitions are first recorded and then shown.

    Args:
        folder: the folder of all answers.
        schema: the columns of the rows.
        partitions: the partition of each row.
        before: what ``settle`` last returned before the run was killed; None for a new run.
        monotonic: a clock in seconds, for the age of parts.

    Raises:
        UsageError: the folder has other partitions.
        OSError: it is not writable.
    """

    def __init__(
        self,
        folder: Path,
        query: str,
        schema: pa.Schema,
        partitions: TimePartitions,
        before: Mapping[str, Any] | None,
        monotonic: Callable[[], float],
    ) -> None:
        self._folder = folder / query
        self._staging = self._folder / ".partial"
        self._monotonic = monotonic
        self._began_s: float | None = None
        self._finished: list[str] = list(before["finished"]) if before is not None else []
        _ensure_layout(self._folder, partitions)
        self._folder.mkdir(exist_ok=True)
        self.publish()
        remove_staging(self._staging)
        self._parts = OpenParts(self._staging, schema, partitions)

    @property
    def is_due(self) -> bool:
        """Return whether the open parts are large or old."""
        if self._began_s is None:
            return False
        return self._parts.rows >= PART_ROWS or self._monotonic() - self._began_s >= PART_S

    @property
    def is_open(self) -> bool:
        """Return whether parts are open."""
        return self._began_s is not None

    def begin(self) -> None:
        """Do nothing: a part begins with its first row."""

    def write(self, table: pa.Table) -> None:
        """Add rows to the open parts."""
        if self._began_s is None:
            self._began_s = self._monotonic()
        with in_sentences(str(self._folder)):
            self._parts.write(table)

    def settle(self) -> dict[str, Any]:
        """Finish the open parts, and return the state: the parts that were finished last."""
        if self._began_s is not None:
            with in_sentences(str(self._folder)):
                self._finished = [*self._hidden(), *self._parts.finish()]
            self._began_s = None
        return {"finished": self._finished}

    def publish(self) -> None:
        """Show the parts that were finished last; harmless when repeated."""
        with in_sentences(str(self._folder)):
            for name in self._finished:
                publish(self._staging, name, self._folder)

    def close(self) -> None:
        """Remove unfinished parts, whose rows are still held by their origin.

        Keep recorded ones.
        """
        self._parts.abandon()
        if not self._hidden():
            remove_staging(self._staging)
        with suppress(OSError):
            self._folder.rmdir()

    def _hidden(self) -> list[str]:
        """Return the parts that were finished, and perhaps recorded, but are not shown yet."""
        return [name for name in self._finished if staged(self._staging, name).exists()]


class PartitionedAnswer:
    """The folder ``<query>`` of a replay, which appears with all its parts when it is complete.

    Args:
        folder: the folder of all answers.
        partitions: the partition of each row.

    Raises:
        UsageError: there is such a folder, and it is not empty, or another run is writing it.
        OSError: it is not writable.
    """

    def __init__(self, folder: Path, query: str, partitions: TimePartitions) -> None:
        self._root = folder
        self._query = query
        self._folder = folder / query
        self._staging = folder / f".{query}.partial"
        self._partitions = partitions
        self._parts: OpenParts | None = None
        self._has_rows = False
        self._lock = lock_output(folder, query, "parquet")
        try:
            self._ensure_new()
            remove_staging(self._staging)
        except (OSError, UsageError):
            unlock_output(folder, query, "parquet", self._lock)
            raise

    def begin(self, schema: pa.Schema) -> None:
        """Prepare for rows."""
        self._parts = OpenParts(self._staging, schema, self._partitions)

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        assert self._parts is not None
        self._has_rows = self._has_rows or table.num_rows > 0
        with in_sentences(str(self._folder)):
            self._parts.write(table)

    def close(self, *, is_complete: bool) -> None:
        """Show a complete folder; remove an incomplete one."""
        try:
            with in_sentences(str(self._folder)):
                if is_complete and self._parts is not None:
                    if not self._has_rows:
                        self._parts.write_nothing()
                    for name in self._parts.finish():
                        publish(self._staging, name, self._staging)
                    self._staging.rename(self._folder)
                elif self._parts is not None:
                    self._parts.abandon()
                    remove_staging(self._staging)
        finally:
            unlock_output(self._root, self._query, "parquet", self._lock)

    def _ensure_new(self) -> None:
        """Refuse to mix rows of this replay with those of another run, or to remove those."""
        if self._folder.is_dir() and any(self._folder.iterdir()):
            message = (
                f"{self._folder} has partitions already, and a replay does not add to them; remove"
                " it, or name another folder with -w"
            )
            raise UsageError(message)


def _ensure_layout(folder: Path, partitions: TimePartitions) -> None:
    """Refuse to add to a folder that has other partitions, which readers could not reconcile.

    Raises:
        UsageError: it has.
    """
    found, place = [], folder
    while place.is_dir():
        below = next((each for each in place.iterdir() if "=" in each.name and each.is_dir()), None)
        if below is None:
            break
        found.append(below.name.partition("=")[0])
        place = below
    if found and tuple(found) != partitions.keys:
        message = (
            f"{folder} is partitioned by {' and '.join(found)}, and not by"
            f" {' and '.join(partitions.keys)}; move it away, or name another folder with -w"
        )
        raise UsageError(message)
