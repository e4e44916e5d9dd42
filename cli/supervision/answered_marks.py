"""Epochs that lack packets, of results that other hosts have answered, for `gscope status`."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gscope.queries.run_folder.layout import ANSWERED_FILE
from gscope.queries.run_folder.snapshot import SnapshotFile, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.queries.streams.loss_reasons import IncompleteEpochs

SCHEMA = 1

MOST_RANGES = 100
"""The most ranges of a result that the file lists: the latest."""


class AnsweredMarks:
    """The marks of a run since it began, in its folder; a resumed run continues them.

    Hosts list their losses again to a run that is resumed. A range that the file lists is not
    counted again.

    Args:
        run_dir: the folder of the run.
    """

    def __init__(self, run_dir: Path) -> None:
        self._file = SnapshotFile(run_dir / ANSWERED_FILE)
        self._results = _results_in(run_dir / ANSWERED_FILE)

    def note(self, epochs: Iterable[IncompleteEpochs]) -> None:
        """Add the ranges that a heartbeat lists for the first time."""
        added = tuple(epochs)
        for each in added:
            empty = {"name": each.query, "incomplete_epochs_total": {}, "incomplete_epochs": []}
            result = self._results.setdefault(each.query, empty)
            fields = asdict(each)
            del fields["query"]
            if fields in result["incomplete_epochs"]:
                continue
            counts = result["incomplete_epochs_total"]
            counts[each.reason] = counts.get(each.reason, 0) + each.number
            result["incomplete_epochs"] = [*result["incomplete_epochs"], fields][-MOST_RANGES:]
        if added:
            results = list(self._results.values())
            document = {"schema": SCHEMA, "written_ns": time.time_ns(), "results": results}
            self._file.write(document)


def _results_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return the marks of each result; {} if the file is missing or damaged."""
    found = read_snapshot(path) or {}
    try:
        results = {
            each["name"]: {
                "name": each["name"],
                "incomplete_epochs_total": dict(each["incomplete_epochs_total"]),
                "incomplete_epochs": list(each["incomplete_epochs"]),
            }
            for each in found["results"]
        }
    except (KeyError, TypeError, ValueError):
        return {}
    return results if found.get("schema") == SCHEMA else {}
