"""The outcome of a run, as far as the command line reports it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.streams.loss_reasons import IncompleteEpochs
    from gscope.queries.streams.process_events import CaptureFinished

MOST_INCOMPLETE = 1000
"""The most ranges of incomplete epochs that an outcome lists."""


@dataclass(slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        capture: the summary of the capture; None until it has finished.
        phases: the time at which each phase was reached, in seconds since the command started.
        job_phases: the same as the HFTA job reports it, in seconds since the job started.
        late_tuples: the number of rows that reached the HFTA job below a watermark and are in no
            answer, by query.
        shed_tuples: the number of rows that the HFTA job had no space to keep, by the query that
            reads them.
        trimmed_tuples: the number of rows that the HFTA job left out because the threshold of their
            sample fell, by the query that reads them.
        incomplete_epochs: the number of epochs whose answers may lack packets, by query and reason.
        incomplete: the latest of these epochs.
        undecodable: the number of payloads of a function's protocol that it could not decode, by
            function.
        foreign: the number of payloads that do not begin a message of a function's protocol, by
            function.
        wrapped_sums: the number of integer sums that overflowed 64 bits and wrapped, by query.
        crowded_out: the number of tuples that a sampling operator left out because their supergroup
            was full, by query.
        transferred_bytes: what executors of a cluster have fetched, returned and exchanged, by
            kind; empty without a cluster.
        partial: the epochs that were answered without a host, by query; see ``PartialAnswer``.
        restarts: the number of restarts, by process.
        signal: the signal that ended the input; 0 for none.
        outlets: what became of the rows that were sent to each destination of --to.
        is_complete: whether the input was ended because no answer lacked rows any more.
    """

    capture: CaptureFinished | None = None
    phases: dict[str, float] = field(default_factory=dict)
    job_phases: dict[str, float] = field(default_factory=dict)
    late_tuples: dict[str, int] = field(default_factory=dict)
    shed_tuples: dict[str, int] = field(default_factory=dict)
    trimmed_tuples: dict[str, int] = field(default_factory=dict)
    incomplete_epochs: dict[str, dict[str, int]] = field(default_factory=dict)
    incomplete: list[IncompleteEpochs] = field(default_factory=list)
    undecodable: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    wrapped_sums: dict[str, int] = field(default_factory=dict)
    crowded_out: dict[str, int] = field(default_factory=dict)
    transferred_bytes: dict[str, int] = field(default_factory=dict)
    partial: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    outlets: list[dict[str, Any]] = field(default_factory=list)
    signal: int = 0
    is_complete: bool = False

    @property
    def finished_capture(self) -> CaptureFinished:
        """The summary of the capture, which every run that ended normally has."""
        assert self.capture is not None
        return self.capture

    def note_saved(self, saved: dict[str, Any]) -> None:
        """Note what became of the packets that were saved after the capture had finished."""
        self.capture = replace(self.finished_capture, saved=saved)

    def note_incomplete(
        self, epochs: Iterable[IncompleteEpochs], counts: dict[str, dict[str, int]]
    ) -> None:
        """Note the incomplete epochs of a commit, and their numbers since the run began.

        A restarted job reports commits again.
        """
        self.incomplete_epochs |= counts
        self.incomplete += [each for each in epochs if each not in self.incomplete]
        del self.incomplete[:-MOST_INCOMPLETE]

    def note_answered(self, epochs: Iterable[IncompleteEpochs]) -> None:
        """Note incomplete epochs of results that other hosts have answered."""
        for each in epochs:
            counts = self.incomplete_epochs.setdefault(each.query, {})
            counts[each.reason] = counts.get(each.reason, 0) + each.number
        self.note_incomplete(epochs, {})
