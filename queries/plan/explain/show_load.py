"""How the answers of a component follow the load, for explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan import part_names
from gscope.queries.plan.sampling.side_epochs import SAME_EPOCHS, WindowEpochs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.plan.sampling.moving_samples import MovingSample
    from gscope.queries.plan.sampling.trimmed_sides import TrimmedSide

_EPOCH = "cut at the least rate of each epoch"
_WINDOW = "cut at the least rate of each window, over all of its slices"
_INTERVAL = "cut at the least rate of all times at which a row may have partners"
_LIFE = (
    "cut at the least rate of each group's life; a group that appears after a rise has no rows "
    "until a part of CLOSING_WHEN without running aggregates has closed it"
)
_CUMULATIVE = (
    "cut at the least rate so far, which never rises:"
    " groups may live on after an epoch without tuples"
)
_SCALED = ", by which its counts and sums are scaled"
_WEIGHTED = "scaled packet by packet: one that was kept at the rate p counts as 1/p packets"


def show_load(samples: Iterable[MovingSample]) -> dict[str, dict[str, str]]:
    """Return the rule of each query that follows the load, by the names of its LFTAs."""
    return {", ".join(sample.lftas): _rules(sample) for sample in samples}


def _rules(sample: MovingSample) -> dict[str, str]:
    parts = {f"{query}.{part_names.GROUPS}" for query in sample.weighted}
    cut = {
        query: _rule(sides) + (_SCALED if _is_scaled(sample, query) else "")
        for query, sides in sample.sides.items()
        if query not in parts
    }
    return cut | dict.fromkeys(sample.weighted, _WEIGHTED)


def _is_scaled(sample: MovingSample, query: str) -> bool:
    """Return whether a query multiplies some of its aggregates by 1/rate."""
    return query in sample.rates and bool(sample.rates[query].scaled)


def _rule(sides: tuple[TrimmedSide, ...]) -> str:
    groups = sides[0].groups
    if any(isinstance(side.reach, WindowEpochs) for side in sides):
        return _WINDOW
    if groups is not None:
        return _CUMULATIVE if groups.is_cumulative else _LIFE
    return _EPOCH if all(side.reach == SAME_EPOCHS for side in sides) else _INTERVAL
