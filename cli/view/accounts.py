"""The account of a run for the view: packets received, what became of them, silent links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.cli.render.accounting import standing_lines
from gscope.cli.render.incomplete import incomplete_counts
from gscope.cli.render.summary import is_whole, summary_lines
from gscope.cli.view.model import Account, LinkState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.cli.render.outcome import Outcome

_LOST = ("dropped", "shed", "late")
"""Packets that no answer has any more; those that are unread may still be read."""

_SILENT_S = 2.0
"""Seconds without a packet after which a link is shown as silent."""


def account_of(statistics: Mapping[str, Any], outcome: Outcome) -> Account:
    """Return the account of a run that captures.

    Args:
        statistics: what the capture daemon last wrote; {} if that is nothing yet.
        outcome: what has been reported of the run so far.
    """
    equation = next(standing_lines(statistics), "").strip() if statistics else ""
    return Account(equation, tuple(_losses(statistics, outcome)), tuple(_links(statistics)))


def final_account(outcome: Outcome, rows: Mapping[str, int], links: Sequence[LinkState]) -> Account:
    """Return the account of a run that has ended, which is that of its summary.

    Args:
        outcome: how it ended.
        rows: the number of rows by query.
        links: the links as they were.
    """
    first, *others = summary_lines(outcome, rows)
    taken = first.removeprefix("gscope: ").partition(";")[0]
    losses = () if is_whole(outcome) else tuple(line.strip() for line in others)
    return Account(taken, losses, tuple(links))


def _lost(statistics: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the terms that are losses: a fixed rate sheds packets on purpose."""
    is_sample = statistics.get("sample_rate", 1.0) < 1
    return tuple(term for term in _LOST if term != "shed" or not is_sample)


def _losses(statistics: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    interfaces = statistics.get("interfaces", ())
    for term in _lost(statistics):
        if count := sum(int(each.get(f"{term}_packets") or 0) for each in interfaces):
            yield f"{count:,} {'packet' if count == 1 else 'packets'} {term}"
    if shed := statistics.get("log", {}).get("shed_tuples_total", 0):
        yield f"{shed:,} tuples shed by the log"
    for query, counts in outcome.incomplete_epochs.items():
        yield f"{query}: {incomplete_counts(counts)}"
    for query, count in outcome.late_tuples.items():
        yield f"{query}: {count:,} rows too late"
    for query, count in outcome.shed_tuples.items():
        yield f"{query}: {count:,} rows shed by the job"


def _links(statistics: Mapping[str, Any]) -> Iterator[LinkState]:
    for each in statistics.get("interfaces", ()):
        idle_ns = each.get("idle_ns")
        idle_s = None if idle_ns is None else idle_ns / 1e9
        rate = each.get("packets_per_second")
        yield LinkState(
            each["name"],
            None if rate is None else float(rate),
            sum(int(each.get(f"{term}_packets") or 0) for term in _lost(statistics)),
            idle_s if idle_s is not None and idle_s >= _SILENT_S else None,
            str(each.get("state", "")),
            has_packets=bool(each.get("received_packets")),
        )
    for each in statistics.get("inputs", ()):
        yield LinkState(
            each["name"],
            None,
            int(each["late_tuples_total"]) + int(each["shed_tuples_total"]),
            None,
            str(each["state"]),
        )
