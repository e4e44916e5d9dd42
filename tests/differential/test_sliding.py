"""The windows of the reference, against windows that are listed one by one."""

from __future__ import annotations

from random import Random

from tests.differential.sliding import Column, Window
from tests.differential.syntax import Type


def test_windows_that_hold_a_time_are_those_of_the_definition() -> None:
    """Half-open, at every multiple of the slide, found among all windows one by one."""
    random = Random(1)
    on = Column("time", "", 1, Type.TIMESTAMP, 1)
    for _ in range(300):
        range_, slide, time = (random.randint(1, 40), random.randint(1, 20), random.randint(0, 99))
        window = Window(on, (range_, slide), False, "", False)
        ends = [n * slide for n in range(1, 200) if n * slide - range_ <= time < n * slide]
        assert list(window.holding(time)) == [(end - range_, end) for end in ends]
        slices = Window(on, tuple(random.randint(1, 9) for _ in range(3)), True, "", False)
        edges = [0]
        while edges[-1] <= time:
            edges.append(edges[-1] + slices.lengths[(len(edges) - 1) % 3])
        assert list(slices.holding(time)) == [tuple(edges[-2:])]
