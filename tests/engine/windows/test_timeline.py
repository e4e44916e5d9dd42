"""Labels of slices: the number at the last edge of a window up to the slice."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from tests.engine.windows.test_assembly import random_window

from gscope.engine.windows.timeline import Timeline
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.windows.clamp import limits
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow


@pytest.mark.parametrize("seed", range(12))
def test_a_label_is_the_number_at_the_last_edge(seed: int) -> None:
    chosen = random.Random(seed)
    window = random_window(chosen)
    others = [random_window(chosen) for _ in range(seed % 3)]
    slicing = Slicing.of([window, *others])
    least, greatest = limits(window)
    starts = [0, -70_000, 1_700_000_000] if others else [least, greatest - 200_000]
    times = [chosen.choice(starts)]
    for _ in range(60):
        times.append(times[-1] + chosen.choice([1, 2, 30, 255, 256, 257, 2000, 10**5, 10**12]))
    times = [time for time in times if time <= greatest]
    numbers = sorted({slicing.number(time) for time in times})
    of_number = {slicing.number(time): time for time in times}
    expected = []
    for number in numbers:
        holding = window.last_starting_by(of_number[number])
        near = range(holding - 99, holding + 2)
        edges = [edge for w in near for edge in (window.start(w), window.end(w))]
        expected.append(slicing.number(max(e for e in edges if e <= of_number[number])))
    assert Timeline(window, slicing).labels(np.array(numbers)).tolist() == expected


@pytest.mark.parametrize("window", [SlidingWindow(1, 1), RepeatedSlices((1, 2))])
def test_windows_without_rows_between_slices_take_no_memory(
    window: SlidingWindow | RepeatedSlices,
) -> None:
    timeline = Timeline(window, Slicing.of([window]))
    numbers = np.arange(0, 200 * 10_000, 200)
    tracemalloc.start()
    try:
        labels = timeline.labels(numbers)
        (_, peak) = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (labels == numbers).all()
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "window",
    [
        SlidingWindow(18, 15),
        SlidingWindow(60, 1),
        SlidingWindow(9, 1 << 62),
        RepeatedSlices((7, 3)),
    ],
)
def test_any_number_of_64_bits_has_a_label(window: SlidingWindow | RepeatedSlices) -> None:
    timeline = Timeline(window, Slicing.of([window]))
    numbers = [MIN_INT, MIN_INT + 1, 0, MAX_INT - 1, MAX_INT]
    labels = timeline.labels(np.array(numbers)).tolist()
    assert labels == sorted(labels)
    assert all(label <= number for label, number in zip(labels, numbers, strict=True))
