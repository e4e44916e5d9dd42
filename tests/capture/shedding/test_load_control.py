"""The rates of components, as the interfaces that have their packets report their load."""

from __future__ import annotations

import pytest

from gscope.capture.shedding.load_control import InterfaceLoad, LoadControl
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, threshold_of
from gscope.queries.plan.sampling.moving_samples import MovingSample
from gscope.queries.streams.thresholds import ThresholdSchedule

MS = 1_000_000
CALM = InterfaceLoad(0.0, 0, (0,))
FULL = InterfaceLoad(0.9, 0, (0,))
HALF = threshold_of(0.5)


def control(interfaces: dict[str, tuple[str, ...]], *components: tuple[str, ...]) -> LoadControl:
    """The control of components, given by their LFTAs, of interfaces with some LFTAs each."""
    made = LoadControl([MovingSample(lftas, 0.01, {}) for lftas in components], 0.01)
    for interface, lftas in interfaces.items():
        streams = {lfta: f"{lfta}@{interface}" for lfta in lftas}
        made.begin(interface, streams, lambda _lfta, _threshold: None)
    return made


def report(made: LoadControl, interface: str, load: InterfaceLoad, at_ms: int) -> list[int]:
    """The thresholds after a report; without nodes, an epoch is a second."""
    made.report(interface, load, at_ms * MS, at_ms * MS)
    return made.thresholds()


def overload(made: LoadControl, interface: str, at_ms: int) -> list[int]:
    """The thresholds after a ring was full for the 50 ms before."""
    report(made, interface, FULL, at_ms - 50)
    return report(made, interface, FULL, at_ms)


def rates(made: LoadControl) -> list[float]:
    return [state.rate for state in made.states]


def test_a_component_follows_its_own_interfaces_alone() -> None:
    made = control({"east": ("a",), "west": ("b",)}, ("a",), ("b",))
    assert overload(made, "west", 50) == [FULL_THRESHOLD, HALF]
    assert overload(made, "east", 140) == [HALF, HALF]


def test_a_component_with_leaves_on_two_interfaces_follows_both() -> None:
    made = control({"east": ("a",), "west": ("b",)}, ("a", "b"))
    report(made, "east", CALM, 0)
    assert overload(made, "west", 60) == [HALF]
    assert overload(made, "east", 200) == [threshold_of(0.25)]


def test_an_interface_without_leaves_that_follow_has_no_thresholds() -> None:
    made = LoadControl([MovingSample(("a",), 0.01, {})], 0.01)
    assert made.begin("east", {"other": "other@east"}, lambda _lfta, _threshold: None) is None
    assert made.begin("west", {"a": "a@west"}, lambda _lfta, _threshold: None) is not None


def test_the_report_of_another_interface_does_not_repeat_an_old_measurement() -> None:
    made = control({"east": ("a",), "west": ("a",)}, ("a",))
    overload(made, "east", 50)
    for at_ms in (100, 200, 300):
        report(made, "west", CALM, at_ms)
    assert rates(made) == [0.5], "east may have emptied since"
    report(made, "east", FULL, 310)
    assert rates(made) == [0.25]


def test_an_interface_that_has_ended_does_not_hold_the_rate_down() -> None:
    made = control({"east": ("a",), "west": ("a",)}, ("a",))
    overload(made, "east", 50)
    for at_ms in range(100, 2000, 100):
        report(made, "west", CALM, at_ms)
    assert rates(made) == [0.5], "calm in the west alone is not calm"
    made.forget("east")
    for at_ms in range(2000, 9000, 100):
        report(made, "west", CALM, at_ms)
    assert rates(made) == [1.0]


def test_drops_of_an_interface_that_has_ended_do_not_count_again() -> None:
    made = control({"east": ("a",), "west": ("a",)}, ("a",))
    for at_ms in (0, 20, 40, 60):
        report(made, "east", InterfaceLoad(0.0, 50 + at_ms, (0,)), at_ms)
    assert rates(made) == [0.5]
    made.forget("east")
    for at_ms in range(500, 700, 20):
        report(made, "west", CALM, at_ms)
    assert rates(made) == [0.5]
    for number, at_ms in enumerate((700, 720, 740, 760)):
        report(made, "west", InterfaceLoad(0.0, number + 1, (0,)), at_ms)
    assert rates(made) == [0.25], "drops of another interface do count"


@pytest.mark.parametrize(("share", "risen"), [(0.2, True), (1.0, False)])
def test_the_busiest_of_its_threads_hinders_a_rise(share: float, *, risen: bool) -> None:
    made = control({"east": ("a",)}, ("a",))
    overload(made, "east", 50)
    for at_ms in range(100, 8000, 100):
        report(made, "east", InterfaceLoad(0.1, 0, (int(share * at_ms * MS), 0, 0, 0)), at_ms)
    assert rates(made) == ([1.0] if risen else [0.5])


def test_a_thread_that_works_in_bursts_is_as_busy_as_on_average() -> None:
    """Half of the time in bursts of 100 ms, with reports in the middle and at the end of each."""
    made = control({"east": ("a",)}, ("a",))
    overload(made, "east", 50)
    for at_ms in range(50, 9000, 50):
        worked_ms = at_ms // 200 * 100 + min(at_ms % 200, 100)
        report(made, "east", InterfaceLoad(0.1, 0, (worked_ms * MS,)), at_ms)
    assert rates(made) == [1.0]


def test_a_log_that_fills_concerns_all_components() -> None:
    fill = [0.6]
    made = LoadControl(
        [MovingSample(("a",), 0.01, {}), MovingSample(("b",), 0.3, {})], 0.01, lambda: fill[0]
    )
    made.begin("east", {"a": "a@east", "b": "b@east"}, lambda _lfta, _threshold: None)
    for at_ms in range(0, 3100, 100):
        report(made, "east", CALM, at_ms)
    assert rates(made) == [0.125, 0.3], "once a second, and not below the least rate of a query"


def test_a_resumed_capture_begins_with_the_lowest_rate_that_was_left() -> None:
    earlier = {
        "a@east": ThresholdSchedule.constant(HALF),
        "a@west": ThresholdSchedule.constant(threshold_of(0.25)),
        "b@east": ThresholdSchedule.constant(FULL_THRESHOLD),
    }
    samples = [MovingSample(("a",), 0.01, {}), MovingSample(("b",), 0.01, {})]
    made = LoadControl(samples, 0.01, earlier=earlier)
    assert rates(made) == [0.25, 1.0]
    assert made.thresholds() == [threshold_of(0.25), FULL_THRESHOLD]
    assert made.least_rate == 0.25
    held: dict[str, int] = {}
    thresholds = made.begin("east", {"a": "a@east"}, held.__setitem__)
    assert thresholds is not None
    assert held == {"a": HALF}, "what its own rows were chosen by, until the first report"
