"""What counters have risen by in the last minute, against a plain list of all that was noted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.run_folder.recent_counts import PAUSE_NS, SPAN_NS, RecentCounts

SECOND = 1_000_000_000


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 1000)), min_size=1, max_size=80))
def test_a_rise_is_that_of_about_a_minute(rises: list[tuple[int, int]]) -> None:
    recent = RecentCounts()
    noted: dict[int, int] = {}
    now_s = count = 0
    for pause_s, rise in rises:
        now_s, count = now_s + pause_s, count + rise
        noted[now_s * SECOND] = count
        found = recent.since(now_s * SECOND, {"eth0": {"packets": count}})["eth0"]
        assert found["until_ns"] == now_s * SECOND
        assert found["packets"] == count - noted[found["since_ns"]]
        # No older moment would do, and a younger one only if none is old enough.
        old_enough = [at for at in noted if now_s * SECOND - at >= SPAN_NS]
        if old_enough:
            assert max(old_enough) - PAUSE_NS < found["since_ns"] <= max(old_enough)
        else:
            assert found["since_ns"] == min(noted)


def test_what_appears_later_has_risen_since_then() -> None:
    recent = RecentCounts()
    recent.since(0, {"eth0": {"packets": 5}})
    recent.since(10 * SECOND, {"eth0": {"packets": 6}, "eth1": {"packets": 900}})
    found = recent.since(20 * SECOND, {"eth0": {"packets": 8}, "eth1": {"packets": 903}})
    assert found["eth0"] == {"since_ns": 0, "until_ns": 20 * SECOND, "packets": 3}
    assert found["eth1"] == {"since_ns": 10 * SECOND, "until_ns": 20 * SECOND, "packets": 3}


def test_a_counter_that_is_or_was_unknown_is_left_out() -> None:
    recent = RecentCounts()
    recent.since(0, {"flows": {"in": 1, "out": None}})
    found = recent.since(SECOND, {"flows": {"in": None, "out": 2}})
    assert found == {"flows": {"since_ns": 0, "until_ns": SECOND}}
