"""The head of a report of captures: what was captured, from when to when, and what was lost."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from gscope.cli.render.accounting import UNDECODED
from gscope.cli.render.incomplete import incomplete_lines
from gscope.cli.render.outcome import Outcome
from gscope.cli.render.summary import TERMS, failure_lines, summary_lines
from gscope.cli.report.board import OVERVIEW
from gscope.cli.report.clock_text import clock_texts
from gscope.cli.report.contents import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.report.contents import AnsweredRows

_TIMES = ("first", "last")
_NAMES_IN_TITLE = 3
_CAPTURES_SHOWN = 8


def facts_of_captures(
    answers: Mapping[str, AnsweredRows],
    outcome: Outcome,
    captures: Sequence[tuple[str, str]],
    queries: Sequence[tuple[str, str]],
    style: TimeStyle,
) -> Facts:
    """Return the head of a report.

    Args:
        answers: the answers by query, ``OVERVIEW`` among them.
        outcome: how the run ended.
        captures: the interfaces, each with its files.
        queries: the texts of the queries, each with its source.
        style: how to show times.
    """
    entries = [("captures" if len(captures) > 1 else "capture", _captures(captures))]
    entries += _span(answers.get(OVERVIEW), style)
    capture = outcome.finished_capture
    totals = [each["received"] for each in capture.interfaces]
    entries.append(("packets", f"{sum(totals):,}"))
    rows = {query: each.total for query, each in answers.items()}
    _, *losses = summary_lines(outcome, rows)
    losses += failure_lines(capture)
    if outcome.signal:
        losses.insert(0, "interrupted: the rest of the captures was not read")
    names = _listed([name for name, _ in captures], _NAMES_IN_TITLE, ", ")
    return Facts(
        f"Report of {names}",
        tuple(entries),
        tuple(line.strip() for line in losses),
        tuple(_accounts(capture.interfaces)),
        tuple(queries),
        style,
    )


def marks(outcome: Outcome, query: str) -> tuple[str, ...]:
    """Return sentences on the incomplete epochs of a query."""
    counts = outcome.incomplete_epochs.get(query)
    if not counts:
        return ()
    of_query = Outcome(incomplete_epochs={query: counts}, incomplete=outcome.incomplete)
    return tuple(line.strip() for line in incomplete_lines(of_query))


def _captures(captures: Sequence[tuple[str, str]]) -> str:
    named = [
        files if PurePath(files).name.startswith(f"{name}.") else f"{name}: {files}"
        for name, files in captures
    ]
    return _listed(named, _CAPTURES_SHOWN, "; ")


def _listed(texts: Sequence[str], most: int, separator: str) -> str:
    """Return texts in one line; of more than ``most``, the first and how many others there are."""
    left = len(texts) - most
    return separator.join(texts[:most]) + (f" and {left:,} more" if left > 0 else "")


def _span(rows: AnsweredRows | None, style: TimeStyle) -> Iterator[tuple[str, str]]:
    """Yield from when to when the packets are."""
    if rows is None or not rows.kept or not {*_TIMES} <= {c.name for c in rows.answer.columns}:
        return
    first, last = (
        getattr(pc, name)(pc.cast(rows.column(column), "int64")).as_py()
        for name, column in (("min", "first"), ("max", "last"))
    )
    if first is None or last is None:
        return
    texts = clock_texts([first, last], style)
    yield "first packet", texts[0]
    yield "last packet", texts[1]
    yield "duration", duration_text(last - first)


def duration_text(duration_ns: int) -> str:
    """Return ``1 d 2 h 3 min 4.5 s``, without units that are 0; the seconds have three digits."""
    milliseconds = round(duration_ns / 1_000_000)
    if not milliseconds:
        return f"{duration_ns / 1_000_000:.3g} ms"
    whole, rest = divmod(milliseconds, 60_000)
    days, minutes = divmod(whole, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    counts = ((days, "d"), (hours, "h"), (minutes, "min"))
    parts = [f"{count} {unit}" for count, unit in counts if count]
    return " ".join([*parts, f"{rest / 1000:g} s"] if rest else parts)


def _accounts(interfaces: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a heading, and a row for each interface: received packets, and what became of them."""
    reasons = {
        (kind, reason): f"{kind}: {reason.replace('_', ' ')}"
        for kind in UNDECODED
        for each in interfaces
        for reason, count in each[kind].items()
        if count
    }
    terms = [term for term in TERMS if any(each[term] for each in interfaces)]
    yield ("interface", "received", "accepted", *reasons.values(), *terms)
    for each in interfaces:
        undecoded = [each[kind].get(reason, 0) for kind, reason in reasons]
        counts = [each["received"], each["accepted"], *undecoded, *(each[term] for term in terms)]
        yield (each["name"], *(f"{count:,}" for count in counts))
