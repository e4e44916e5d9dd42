"""Epochs that lack a host, for every query above a gap: as a plain loop over seconds finds them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from gscope.engine.steps.partial_epochs import PartialEpochs
from gscope.engine.watermarks.bounds import ENDED
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.gaps import HostGap

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES = """
DEFINE { query_name fine; } SELECT tb, srcIP, count(*) AS n FROM a.up.IP GROUP BY time/10 AS tb, srcIP;
DEFINE { query_name coarse; } SELECT hour, count(*) AS groups FROM fine GROUP BY tb/6 AS hour;
DEFINE { query_name other; } SELECT tb, count(*) AS n FROM b.up.IP GROUP BY time/20 AS tb;
DEFINE { query_name both; } SELECT f.tb, f.n, o.n AS others FROM fine f JOIN other o
ON f.tb/2 = o.tb;
"""  # noqa: E501
BASE_S = 1_700_000_400


def partial_epochs() -> PartialEpochs:
    context = CompileContext(interfaces=("a.up", "b.up"), hosts=("a", "b"))
    return PartialEpochs(compile_queries([QueryText(QUERIES, "q")], context).program)


def stream_of(partial: PartialEpochs, interface: str) -> str:
    (stream,) = (name for name in partial._lftas if name.endswith(f"@{interface}"))
    return stream


def epochs(partial: PartialEpochs, query: str, watermark: float) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for each in partial.of(query, watermark):
        assert each.first_epoch is not None
        assert each.last_epoch is not None
        found.setdefault(each.host, set()).update(range(each.first_epoch, each.last_epoch + 1))
    return found


EPOCH_OF: dict[str, Callable[[int], int]] = {
    "fine": lambda second: second // 10,
    "coarse": lambda second: second // 60,
    "other": lambda second: second // 20,
    # The first side's epoch that the join has in common with the second.
    "both": lambda second: second // 20,
}


@pytest.mark.parametrize("query", ["fine", "coarse", "other", "both"])
@pytest.mark.parametrize(("least", "end"), [(0, 1), (3, 4), (5, 40), (60, 61)])
@pytest.mark.parametrize("watermark_s", [0, 75, 400, 100_000])
def test_the_epochs_of_a_gap_are_those_of_its_seconds(
    query: str, least: int, end: int, watermark_s: int
) -> None:
    partial = partial_epochs()
    first = BASE_S // 10
    gap = HostGap("a", "tb", first + least, first + end)
    partial.on_gaps(stream_of(partial, "a.up"), (gap,))
    epoch_of = EPOCH_OF[query]
    watermark = epoch_of(BASE_S + watermark_s)
    seconds = range((first + least) * 10, (first + end) * 10)
    wanted = {epoch_of(second) for second in seconds} if query != "other" else set()
    wanted = {epoch for epoch in wanted if epoch < watermark}
    assert epochs(partial, query, watermark) == ({"a": wanted} if wanted else {})


def test_ranges_say_when_they_begin_and_end() -> None:
    partial = partial_epochs()
    first = BASE_S // 10
    partial.on_gaps(stream_of(partial, "a.up"), (HostGap("a", "tb", first + 1, first + 8),))
    (found,) = partial.of("coarse", BASE_S // 60 + 10)
    assert found.from_ns == BASE_S // 60 * 60 * 1_000_000_000
    assert found.to_ns == (BASE_S // 60 * 60 + 120) * 1_000_000_000


def test_a_gap_without_beginning_or_end_is_open() -> None:
    partial = partial_epochs()
    stream = stream_of(partial, "a.up")
    first = BASE_S // 10
    partial.on_gaps(stream, (HostGap("a", "tb", MIN_TIME_NS, first),))
    (found,) = partial.of("fine", first + 9)
    assert (found.first_epoch, found.last_epoch) == (None, first - 1)
    partial.on_gaps(stream, (HostGap("a", "tb", first, MAX_TIME_NS),))
    (found,) = partial.of("fine", first + 9)
    assert (found.first_epoch, found.last_epoch) == (first, first + 8)
    (found,) = partial.of("fine", ENDED)
    assert (found.first_epoch, found.last_epoch) == (first, None)
    assert partial.of("fine", -math.inf) == ()


def test_gaps_are_restored_from_a_commit() -> None:
    before, after = partial_epochs(), partial_epochs()
    first = BASE_S // 10
    before.on_gaps(stream_of(before, "a.up"), (HostGap("a", "tb", first, first + 3),))
    assert before.snapshot("other") == {}
    after.restore(before.snapshot("coarse"))
    watermark = BASE_S // 60 + 10
    assert after.of("coarse", watermark) == before.of("coarse", watermark) != ()
