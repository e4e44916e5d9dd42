"""The lines of plots: points of each key in time, silence, what is summed, and what is left out.

The values of points are those of rows. Only the line of the remaining keys is computed: the sum of
counts or sums, never of anything else. Where epochs without rows had no packets, counts are 0
there; elsewhere a line has a gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gscope.cli.report.contents import AnsweredRows, ReportAnswer

    Times = NDArray[np.int64]
    Values = NDArray[np.float64]

MOST_LINES = 8
MOST_PLOTS = 6
MOST_POINTS = 1200
"""The most points that are drawn of a line: four of each stretch of time."""

STRETCHES = MOST_POINTS // 4

_EXACT = float(1 << 53)
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot, or its points.

    Attributes:
        label: the values of its keys; the name of the measure without keys.
        times_ns: the times of its points, ascending unless ``Plot.is_scattered``.
        values: their values; NaN where the line has a gap.
        points: the number of its points before some were left out.
        is_rest: whether it is the sum of all keys that have no line.
        colour: the number of its colour, below ``MOST_LINES``; a key has the same in all plots of
            an answer, if they have room for it.
    """

    label: str
    times_ns: Times
    values: Values
    points: int
    is_rest: bool = False
    colour: int = 0

    @property
    def is_thinned(self) -> bool:
        """Whether points were left out."""
        return self.points > len(self.values)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of one measure over time.

    Attributes:
        query: the answer.
        measure: the column.
        unit: what its values are in, beside the name of the column; "" if that says it.
        lines: its lines, the greatest first.
        first_ns: the first time of all rows.
        last_ns: the last one.
        grain_ns: how long an epoch lasts; None if unknown.
        is_scattered: whether rows are points that are not connected.
        notes: sentences on what is left out, summed or shown as 0.
    """

    query: str
    measure: str
    unit: str
    lines: tuple[Line, ...]
    first_ns: int
    last_ns: int
    grain_ns: int | None
    is_scattered: bool
    notes: tuple[str, ...]


def plots_of(rows: AnsweredRows) -> tuple[Plot, ...]:
    """Return the plots of an answer; () if it is a list, or has no rows."""
    answer = rows.answer
    if answer.axis is None or not answer.measures or not rows.kept:
        return ()
    times = pc.cast(rows.column(answer.axis.column), pa.int64())
    is_known = np.asarray(pc.is_valid(times))
    if not is_known.any():
        return ()
    times_ns = np.asarray(pc.fill_null(times, 0))[is_known] * answer.axis.unit_ns
    codes, labels = _keys(answer, rows, is_known)
    grain_ns = answer.axis.grain_ns or _grain(times_ns)
    is_scattered = not answer.is_grouped or _has_duplicates(codes, times_ns)
    made = []
    for measure in answer.measures[:MOST_PLOTS]:
        values, is_valid = _numbers(answer, rows, measure, is_known)
        source = _Source(
            times_ns[is_valid],
            values[is_valid],
            codes[is_valid],
            labels,
            grain_ns,
            measure in answer.additive and not is_scattered,
            answer.has_all_groups,
            is_scattered,
            rows.total - rows.kept,
        )
        if len(source.times_ns):
            made.append(_plot(answer, measure, source))
    return tuple(_coloured(made))


def _coloured(plots: Sequence[Plot]) -> Iterator[Plot]:
    """Yield plots whose lines have different colours, those of a key the same in each."""
    known: dict[str, int] = {}
    for plot in plots:
        chosen: dict[str, int] = {}
        labels = [line.label for line in plot.lines if not line.is_rest]
        for label in labels:
            if label in known and known[label] not in chosen.values():
                chosen[label] = known[label]
        unused = [number for number in range(MOST_LINES) if number not in chosen.values()]
        for label in labels:
            if label not in chosen:
                chosen[label] = unused.pop(0)
        known = chosen | known
        lines = (replace(line, colour=chosen.get(line.label, 0)) for line in plot.lines)
        yield replace(plot, lines=tuple(lines))


@dataclass(frozen=True, slots=True)
class _Source:
    """The points of a plot, each with the number of its key; ``left_out`` rows are not kept."""

    times_ns: Times
    values: Values
    codes: NDArray[np.int64]
    labels: Sequence[str]
    grain_ns: int | None
    is_additive: bool
    has_all_groups: bool
    is_scattered: bool
    left_out: int

    @property
    def has_zeros(self) -> bool:
        """Whether a key without a row in an epoch counts 0 there."""
        return self.is_additive and self.has_all_groups and self.grain_ns is not None


def _plot(answer: ReportAnswer, measure: str, source: _Source) -> Plot:
    first_ns, last_ns = int(source.times_ns.min()), int(source.times_ns.max())
    ranked = _ranked(source)
    has_rest = len(ranked) > MOST_LINES and source.is_additive and _is_summable(source.values)
    chosen = ranked if len(ranked) <= MOST_LINES else ranked[: MOST_LINES - has_rest]
    lines = [
        _line(source, source.labels[code] or measure, source.codes == code, first_ns, last_ns)
        for code in chosen
    ]
    others = len(ranked) - len(chosen)
    if has_rest:
        lines.append(_rest(source, ~np.isin(source.codes, chosen), others, first_ns, last_ns))
    is_interval = answer[measure].type is GsqlType.INTERVAL
    return Plot(
        answer.query,
        measure,
        "seconds" if is_interval else "",
        tuple(lines),
        first_ns,
        last_ns,
        source.grain_ns,
        source.is_scattered,
        tuple(_notes(answer, source, lines, others, has_rest=has_rest)),
    )


def _notes(
    answer: ReportAnswer, source: _Source, lines: Sequence[Line], others: int, *, has_rest: bool
) -> Iterator[str]:
    keys = ", ".join(answer.keys)
    if source.left_out:
        yield f"The last {source.left_out:,} rows are not drawn."
    if others and has_rest:
        yield f"{others:,} further values of {keys} are summed as one line."
    elif others:
        yield (
            f"{others:,} further values of {keys} are not drawn:"
            " only counts and sums of complete groups can be added up."
        )
    if thinned := [line for line in lines if line.is_thinned]:
        total = sum(line.points for line in thinned)
        drawn = sum(len(line.values) for line in thinned)
        yield (
            f"Of {total:,} points, {drawn:,} are drawn: the first, the least, the greatest and the"
            f" last of each of {STRETCHES} stretches of time."
        )
    if any(np.isnan(line.values).any() or _is_shorter(line, source) for line in lines):
        yield "Gaps are epochs without a row."
    elif source.has_zeros and any((line.values == 0).any() for line in lines):
        yield "Epochs without packets are 0."


def _is_shorter(line: Line, source: _Source) -> bool:
    """Return whether a line begins later, or ends earlier, than the rows."""
    if source.is_scattered:
        return False
    ends = (line.times_ns[0], line.times_ns[-1])
    return bool(ends != (source.times_ns.min(), source.times_ns.max()))


def _keys(
    answer: ReportAnswer, rows: AnsweredRows, is_known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], list[str]]:
    """Return a number for the key of each row, and the label of each number."""
    if not answer.keys:
        return np.zeros(int(is_known.sum()), np.int64), [""]
    mask = pa.array(is_known)
    texts = [answer[name].text(rows.column(name)).filter(mask) for name in answer.keys]
    # No printable text has the character between parts.
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\0")
    encoded = joined.dictionary_encode()
    labels = [text.replace("\0", ", ") for text in encoded.dictionary.to_pylist()]
    return np.asarray(encoded.indices).astype(np.int64), _distinct(labels)


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return labels of which no two are the same."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def _numbers(
    answer: ReportAnswer, rows: AnsweredRows, measure: str, is_known: NDArray[np.bool_]
) -> tuple[Values, NDArray[np.bool_]]:
    """Return the values of a measure, and which of them are numbers."""
    column = rows.column(measure).filter(pa.array(is_known))
    values = np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan))
    if answer[measure].type is GsqlType.INTERVAL:
        values = values / _SECOND_NS
    return values, np.isfinite(values)


def _grain(times_ns: Times) -> int | None:
    """Return the epoch that times seem to have: the least distance, if it divides all of them."""
    moments = np.unique(times_ns)
    distances: Times = moments[1:] - moments[:-1]
    if len(distances) < 2:
        return None
    least = int(distances.min())
    is_divisor = bool((np.remainder(distances, least) == 0).all())
    return least if least >= _SECOND_NS and is_divisor else None


def _has_duplicates(codes: NDArray[np.int64], times_ns: Times) -> bool:
    """Return whether a key has several rows at one time."""
    order = np.lexsort((times_ns, codes))
    same_code = np.diff(codes[order]) == 0
    return bool((same_code & (np.diff(times_ns[order]) == 0)).any())


def _ranked(source: _Source) -> list[int]:
    """Return the numbers of keys, those with the greatest sum or value first."""
    count = len(source.labels)
    if source.is_additive:
        weights = np.bincount(source.codes, source.values, count)
    else:
        weights = np.full(count, -np.inf)
        np.maximum.at(weights, source.codes, source.values)
    present = np.flatnonzero(np.bincount(source.codes, minlength=count))
    return sorted(present.tolist(), key=lambda code: (-weights[code], source.labels[code]))


def _is_summable(values: Values) -> bool:
    """Return whether sums of values are exact."""
    is_whole = bool((values == np.floor(values)).all())
    return not is_whole or bool(np.abs(values).sum() < _EXACT)


def _rest(source: _Source, mask: NDArray[np.bool_], keys: int, first_ns: int, last_ns: int) -> Line:
    times, places = np.unique(source.times_ns[mask], return_inverse=True)
    sums: Values = np.bincount(places, source.values[mask], len(times)).astype(np.float64)
    times, sums = _with_silence(source, times, sums, first_ns, last_ns)
    return Line(f"{keys:,} others", *_thinned(times, sums), len(times), is_rest=True)


def _line(
    source: _Source, label: str, mask: NDArray[np.bool_], first_ns: int, last_ns: int
) -> Line:
    times, values = source.times_ns[mask], source.values[mask]
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    if not source.is_scattered:
        times, values = _with_silence(source, times, values, first_ns, last_ns)
    return Line(label, *_thinned(times, values), len(times))


def _with_silence(
    source: _Source, times: Times, values: Values, first_ns: int, last_ns: int
) -> tuple[Times, Values]:
    """Return points with 0 at both ends of each silence, or NaN within it."""
    grain = source.grain_ns
    if grain is None or not source.has_zeros:
        if grain is None:
            return times, values
        behind = np.flatnonzero(np.diff(times) > grain)
        gaps = times[behind] + grain
        return _merged(times, values, gaps, np.nan)
    edges = np.concatenate(([first_ns - grain], times, [last_ns + grain]))
    behind = np.flatnonzero(np.diff(edges) > grain)
    silent = np.unique(np.concatenate((edges[behind] + grain, edges[behind + 1] - grain)))
    return _merged(times, values, silent, 0.0)


def _merged(times: Times, values: Values, more: Times, value: float) -> tuple[Times, Values]:
    all_times = np.concatenate((times, more))
    order = np.argsort(all_times, kind="stable")
    return all_times[order], np.concatenate((values, np.full(len(more), value)))[order]


def _thinned(times: Times, values: Values) -> tuple[Times, Values]:
    """Return the first, least, greatest and last value, and one gap, of each stretch of time."""
    if len(times) <= MOST_POINTS:
        return times, values
    span = int(times[-1] - times[0]) + 1
    stretches = ((times - times[0]) / span * STRETCHES).astype(np.int64)
    kept = []
    begins = np.flatnonzero(np.diff(stretches, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
        part = values[begin:end]
        if np.isnan(part).all():
            kept.append(np.array([begin]))
            continue
        chosen = {0, int(np.nanargmin(part)), int(np.nanargmax(part)), len(part) - 1}
        if np.isnan(part).any():
            chosen.add(int(np.flatnonzero(np.isnan(part))[0]))
        kept.append(begin + np.array(sorted(chosen)))
    places = np.concatenate(kept)
    return times[places], values[places]
