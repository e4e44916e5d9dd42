"""Batch leases: what a step reads is not shed meanwhile, and what was shed before is left out.

A live log whose budget is used up sheds its oldest batches, and counts them. Such a batch may
already wait at an operator of the job; the job learns that it is gone when it leases it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gscope.engine.operators.base import Work
    from gscope.engine.steps.steps import Step, Steps
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.streams.messages import Batch

Sequences = dict[str, list[int]]
"""The sequence numbers of batches, by stream."""


def leased_batches(step: Step, steps: Steps) -> Sequences:
    """Return the batches of the log that ``step`` reads, and those that are partially read.

    If one of the latter were shed, the count of shed rows would be wrong.
    """
    sequences: dict[str, set[int]] = {stream: set() for stream in steps.streams}
    for name, batch in _read(step):
        if name in sequences:
            sequences[name].add(batch.sequence)
    for operator in steps.operators.values():
        for side in operator.sides:
            for name, port in side.ports.items():
                if name in sequences:
                    sequences[name] |= port.partially_read
    return {stream: sorted(found) for stream, found in sequences.items() if found}


def without_shed(step: Step, steps: Steps, gone: Mapping[str, Collection[int]]) -> Step:
    """Drop the batches in ``gone`` from the ports of ``steps``; return ``step`` without them."""
    if not gone:
        return step
    for (name, sequence), batch in _known(step, steps).items():
        if sequence in gone.get(name, ()):
            steps.incomplete.on_rows_lost(name, batch.extents, None)
    for operator in steps.operators.values():
        for side in operator.sides:
            for name, port in side.ports.items():
                if name in gone:
                    port.forget(gone[name])
    lost = {(stream, sequence) for stream, sequences in gone.items() for sequence in sequences}
    return replace(step, works=tuple(_without(work, lost) for work in step.works))


def _known(step: Step, steps: Steps) -> dict[tuple[str, int], Batch]:
    """Return the batches of ``step``, and those that wait for later ones."""
    sides = (side for operator in steps.operators.values() for side in operator.sides)
    waiting = (each for side in sides for each in side.pending)
    return {(name, batch.sequence): batch for name, batch in (*_read(step), *waiting)}


def _read(step: Step) -> Iterator[tuple[str, Batch]]:
    for work in step.works:
        for taken in work.inputs:
            yield from taken.batches
            yield from taken.late


def _without(work: Work, lost: set[tuple[str, int]]) -> Work:
    return replace(work, inputs=tuple(_taken(taken, lost) for taken in work.inputs))


def _taken(taken: ReleasedInput, lost: set[tuple[str, int]]) -> ReleasedInput:
    def kept(batches: Iterable[tuple[str, Batch]]) -> tuple[tuple[str, Batch], ...]:
        return tuple((name, b) for name, b in batches if (name, b.sequence) not in lost)

    return replace(
        taken,
        batches=kept(taken.batches),
        partially_read=kept(taken.partially_read),
        late=kept(taken.late),
    )
