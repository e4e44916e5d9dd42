"""Lines on epochs whose answers may lack packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.streams.loss_reasons import KERNEL, LOG, RESTART, UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.cli.render.outcome import Outcome
    from gscope.queries.streams.loss_reasons import IncompleteEpochs

_CAUSES = {
    KERNEL: "the kernel dropped packets",
    LOG: "rows were shed for want of disk space",
    RESTART: "the capture daemon was restarted",
    UNREAD: "packets were unread at the stop",
}

MOST_SHOWN = 5
"""The most ranges of epochs that a line names: the latest."""


def incomplete_counts(counts: Mapping[str, int]) -> str:
    """Return ``3 incomplete epochs (the kernel dropped packets: 2, …)``."""
    total = sum(counts.values())
    causes = ", ".join(f"{_CAUSES[reason]}: {number:,}" for reason, number in counts.items())
    return f"{total:,} incomplete {'epoch' if total == 1 else 'epochs'} ({causes})"


def incomplete_lines(outcome: Outcome) -> Iterator[str]:
    """Yield which epochs of each query may lack packets, and why."""
    for query, counts in outcome.incomplete_epochs.items():
        for reason, number in counts.items():
            ranges = [e for e in outcome.incomplete if (e.query, e.reason) == (query, reason)]
            epochs = "1 epoch" if number == 1 else f"{number:,} epochs"
            yield (
                f"  {epochs} of {query} may lack rows or packets: {_CAUSES[reason]}{_named(ranges)}"
            )


def _named(ranges: Sequence[IncompleteEpochs]) -> str:
    """Return `` (28333 to 28335, 28340)``; the first ranges are left out if there are many."""
    if not ranges:
        return ""
    shown = [_range(each) for each in ranges[-MOST_SHOWN:]]
    more = ["…"] if len(ranges) > MOST_SHOWN else []
    return f" ({', '.join([*more, *shown])})"


def _range(epochs: IncompleteEpochs) -> str:
    first, last = ("?" if each is None else str(each) for each in (epochs.first, epochs.last))
    return first if first == last else f"{first} to {last}"
