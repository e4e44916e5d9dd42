"""What exporters have said so far: streams of exports, their templates, and counters.

A *stream* is what one exporter sends for one observation domain in one version; it has sequence
numbers, sampling and templates of its own. All tables have a fixed size and are searched by open
addressing, so that datagrams of invented exporters take no more memory: a stream that finds no room
has no sequence numbers and no templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import lshr, select, wrap_mul

if TYPE_CHECKING:
    from numpy.typing import NDArray

STREAMS = 4096
TEMPLATES = 8192
"""Slots of the tables; powers of two."""
PROBES = 64
"""Slots that are searched."""

USED, HIGH, LOW, DOMAIN, VERSION = range(5)
SEQUENCE, UNITS, COUNTS_OWN, LOST, INTERVAL, START_MS, SAMPLERS = range(5, 12)
"""Words of a stream. The first is 1 for a slot in use; ``SEQUENCE`` is the latest sequence number,
-1 if there was none, and ``UNITS`` what its datagram counts, -1 if that is unknown; ``COUNTS_OWN``
is 1 if a datagram's number includes its own records; ``LOST`` is what is missing so far;
``INTERVAL`` the sampling interval of records that state none, 0 if unknown; ``START_MS`` when the
exporter's uptime began, in milliseconds since 1970, 0 if unknown. Then come ``SAMPLER_SLOTS`` pairs
of a sampler's number, plus one, and its interval, the place of the oldest of the latest sequence
numbers, and these, plus one, of ``RECENT_SLOTS`` datagrams that counted something."""
SAMPLER_SLOTS = 8
RECENT_SLOTS = 8
OLDEST = SAMPLERS + 2 * SAMPLER_SLOTS
RECENT = OLDEST + 1
STREAM_WORDS = RECENT + RECENT_SLOTS

KEY, LENGTH, FIELDS, IS_OPTIONS, LEAST_LENGTH, FIRST_FIELD = range(6)
"""Words of a template. ``LENGTH`` is that of a record in bytes, -1 if records differ; 0 for a
template that was withdrawn or that has no room."""
MAX_FIELDS = 122
TEMPLATE_WORDS = FIRST_FIELD + MAX_FIELDS

(
    LOST_TOTAL,
    DATAGRAMS,
    PACKETS,
    RESETS,
    OVERFLOWS,
    COUNTERS,
) = range(6)
"""Counters: lost records or datagrams; datagrams read; packets seen; jumps of sequence numbers that
are taken for restarts of an exporter; streams and templates without room."""

SAMPLER_ID, START_OF_UPTIME, INTERVAL_SEEN, SPACE_SEEN, SIZE_SEEN, POPULATION_SEEN, SCRATCH = range(
    7
)
"""Words of values that the elements of one record leave for its end; -1 for none."""


class ExportState(NamedTuple):
    """The tables, for kernels.

    Attributes:
        streams: a row of ``STREAM_WORDS`` for each stream.
        templates: a row of ``TEMPLATE_WORDS`` for each template.
        counters: ``COUNTERS`` numbers.
        scratch: ``SCRATCH`` words.
    """

    streams: NDArray[np.int64]
    templates: NDArray[np.int64]
    counters: NDArray[np.int64]
    scratch: NDArray[np.int64]


def new_state() -> ExportState:
    """Return the state before the first datagram; memory is taken as it is used."""
    return ExportState(
        np.zeros((STREAMS, STREAM_WORDS), np.int64),
        np.zeros((TEMPLATES, TEMPLATE_WORDS), np.int64),
        np.zeros(COUNTERS, np.int64),
        np.zeros(SCRATCH, np.int64),
    )


@kernel_part
def _mixed(value: int) -> int:
    mixed = wrap_mul(value ^ lshr(value, 32), -7046029254386353131)
    return mixed ^ lshr(mixed, 29)


@kernel_part
def find_stream(state: ExportState, high: int, low: int, domain: int, version: int) -> int:
    """Return the row of a stream, which is added if there is none; -1 if there is no room."""
    streams = state.streams
    at = _mixed(_mixed(_mixed(high) ^ low) ^ domain << 8 ^ version)
    for probe in range(PROBES):
        row = (at + probe) & (STREAMS - 1)
        if streams[row, USED] == 0:
            streams[row, USED] = 1
            streams[row, HIGH], streams[row, LOW] = high, low
            streams[row, DOMAIN], streams[row, VERSION] = domain, version
            streams[row, SEQUENCE] = -1
            return int(row)
        if (
            streams[row, HIGH] == high
            and streams[row, LOW] == low
            and streams[row, DOMAIN] == domain
            and streams[row, VERSION] == version
        ):
            return int(row)
    state.counters[OVERFLOWS] += 1
    return -1


@kernel_part
def find_template(state: ExportState, stream: int, number: int, is_new: bool) -> int:
    """Return the row of a template, -1 if there is none; add it if it ``is_new`` and has room."""
    if stream < 0:
        return -1
    key = 1 << 40 | stream << 16 | number
    at = _mixed(key)
    for probe in range(PROBES):
        row = (at + probe) & (TEMPLATES - 1)
        if state.templates[row, KEY] == key:
            return int(row)
        if state.templates[row, KEY] == 0:
            if is_new:
                state.templates[row, KEY] = key
                return int(row)
            return -1
    if is_new:
        state.counters[OVERFLOWS] += 1
    return -1


MAX_GAP = 1 << 20
"""Sequence numbers that are missing at once; a larger gap is a restart of the exporter."""
MAX_DISORDER = 4096
"""How far a datagram may be behind the latest one before it; further is a restart."""


@kernel_part
def count_missing(state: ExportState, stream: int, sequence: int, units: int) -> None:
    """Compare the sequence number of a datagram with that of the one before it.

    The number is that of the units before the datagram (RFC 7011 §3.1). Some exporters include the
    datagram's own (softflowd): which of the two is recognised where only one fits. A datagram that
    arrives late takes back what was counted as lost for it. One that arrives a second time, as from
    a mirror port, changes nothing, unless more than ``RECENT_SLOTS`` others were between.

    Args:
        state: the tables.
        stream: row of its stream; -1 for none.
        sequence: its number, 32 bits.
        units: by how much it increases the number: its records, or 1; -1 if that is unknown.
    """
    if stream < 0:
        return
    row = state.streams[stream]
    if units > 0:
        for n in range(RECENT_SLOTS):
            if row[RECENT + n] == sequence + 1:
                return
        oldest = row[OLDEST]
        row[RECENT + oldest] = sequence + 1
        row[OLDEST] = (oldest + 1) & (RECENT_SLOTS - 1)
    before, units_before = row[SEQUENCE], row[UNITS]
    if before >= 0:
        step = (sequence - before) & 0xFFFFFFFF
        if units >= 0 and units_before >= 0 and units != units_before:
            if step == units:
                row[COUNTS_OWN] = 1
            elif step == units_before:
                row[COUNTS_OWN] = 0
        counted = select(row[COUNTS_OWN] != 0, units, units_before)
        gap = (step - counted) & 0xFFFFFFFF
        if counted >= 0 and gap != 0:
            if gap <= MAX_GAP:
                row[LOST] += gap
                state.counters[LOST_TOTAL] += gap
            elif (before - sequence) & 0xFFFFFFFF <= MAX_DISORDER:
                found = min(max(units, 0), row[LOST])
                row[LOST] -= found
                state.counters[LOST_TOTAL] -= found
                return
            else:
                state.counters[RESETS] += 1
    row[SEQUENCE], row[UNITS] = sequence, units
