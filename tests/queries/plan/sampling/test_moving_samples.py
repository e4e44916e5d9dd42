"""Which components follow the load, and why others keep every packet."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.sampling.moving_samples import MovingSample, moving_samples

GROUPS = "SELECT tb, srcIP, max(len) as m FROM IP GROUP BY time/10 as tb, srcIP, destIP"


def named(**queries: str) -> str:
    return ";".join(f"DEFINE {{ query_name {n}; }} {text}" for n, text in queries.items())


def samples(text: str, *interfaces: str) -> tuple[tuple[MovingSample, ...], dict[str, str]]:
    context = CompileContext(interfaces or ("a",), {}, samples=True)
    return moving_samples(compile_queries([QueryText(text, "test")], context).program)


@pytest.mark.parametrize(
    "text",
    [
        GROUPS,
        "SELECT tb, net, count(*) FROM IP GROUP BY time/10 as tb, srcIP & 0xFFFF as net",
        f"{named(low=GROUPS, high='SELECT tb, srcIP, max(m) FROM low GROUP BY tb, srcIP')}",
        "SELECT S.time, S.srcIP FROM TCP S LEFT_OUTER_JOIN TCP A"
        " WHERE S.time = A.time + 1 and S.srcIP = A.destIP",
        named(low=GROUPS, high="SELECT tm, srcIP, max(m) FROM low GROUP BY tb/6 as tm, srcIP"),
        "SELECT window_end, srcIP, count(*) FROM IP [RANGE 20 SLIDE 10] GROUP BY srcIP",
        "SELECT S.time, S.srcIP FROM TCP S LEFT JOIN TCP A"
        " ON A.time >= S.time and A.time < S.time + 5 and S.srcIP = A.destIP",
        f"{GROUPS} CLOSING_WHEN count(*) = 0",
        f"{GROUPS} CLOSING_WHEN running_count(*) > 5",
    ],
)
def test_whole_groups_follow_the_load(text: str) -> None:
    (sample,), reasons = samples(text)
    assert sample.lftas
    assert sample.sides
    assert not reasons


def test_packets_that_are_answered_alone_follow_without_trimming() -> None:
    (sample,), reasons = samples("SELECT time, srcIP FROM IP")
    assert not sample.sides
    assert not reasons


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT tb, count(*) FROM IP GROUP BY time/60 as tb",
            "compiled for a rate that does not change",
        ),
        (
            named(
                low=GROUPS,
                high="SELECT window_end, count(*) FROM low [RANGE '1 min' SLIDE '10 sec']",
            ),
            "high estimates over several epochs",
        ),
        (
            named(
                low="SELECT tb, srcPort/60 as p, max(len) as m FROM TCP"
                " GROUP BY time/10 as tb, srcPort",
                high="SELECT tm, p, max(m) FROM low GROUP BY tb/6 as tm, p SAMPLE BY p/3",
            ),
            "the rows of low do not show which packets they are of",
        ),
        ("SELECT time, srcIP, sample_rate FROM IP", "reads sample_rate, and its rows are of no"),
        (
            f"{GROUPS} CLOSING_WHEN count(*) = 0".replace("as m", "as m, sample_rate"),
            "reads sample_rate, and its groups live in several epochs",
        ),
        (
            named(
                low="SELECT tb, srcIP, running_count(*) as n FROM IP GROUP BY time/10 as tb, srcIP"
                " CLOSING_WHEN count(*) = 0",
                high="SELECT tm, srcIP, max(n) FROM low GROUP BY tb/6 as tm, srcIP",
            ),
            "high reads low, whose groups live longer than an epoch",
        ),
        (
            "SELECT S.time, S.srcIP FROM TCP S FULL JOIN TCP A"
            " ON A.time >= S.time and A.time < S.time + 5 and S.srcIP = A.destIP",
            "keeps the rows of both sides that have no partner within an interval",
        ),
        (
            "SELECT window_end, srcIP, count_diff(len) FROM IP [RANGE 20 SLIDE 10] GROUP BY srcIP",
            "keeps rows for its windows instead of slices",
        ),
    ],
)
def test_others_keep_every_packet(text: str, reason: str) -> None:
    found, reasons = samples(text)
    assert not found
    assert reason in "; ".join(reasons.values())


def test_sides_know_all_streams_and_the_hint_of_the_query() -> None:
    text = f"DEFINE {{ query_name f; min_rate 0.2; }} {GROUPS}"
    (sample,), _ = samples(text, "a", "b")
    (side,) = sample.sides["f"]
    ((source, _),) = side.clocks
    assert source.streams == ("f@a", "f@b")
    assert sample.min_rate == 0.2
