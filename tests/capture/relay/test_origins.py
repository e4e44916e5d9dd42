"""The hops of a host's heartbeat in the trace of the merged one: named, and bounded."""

from __future__ import annotations

from gscope.capture.relay.origins import MOST_COUNTERS, MOST_HOPS, Origin
from gscope.queries.streams.messages import Heartbeat, Hop


def hops(*trace: Hop, identity: int = 7) -> tuple[Hop, ...]:
    return Origin("b", Heartbeat("q@b.up", 3, identity, 5, (), trace)).hops()


def test_hops_name_their_host_and_the_heartbeat() -> None:
    lfta = Hop("q@b.up", 10, 1, 2, (("tuples_in_total", 4),))
    log = Hop("log", 13, 0, 5)
    assert hops(lfta, log) == (
        Hop("b/q@b.up", 10, 1, 2, (("host_identity", 7), ("tuples_in_total", 4))),
        Hop("b/log", 13, 0, 5, ()),
    )


def test_what_a_host_may_send_is_bounded() -> None:
    counters = tuple((f"c{number}", number) for number in range(100))
    found = hops(*[Hop("x" * 1000 + "\x1b[31m", 1, 1, 1, counters)] * 50)
    assert len(found) == MOST_HOPS
    assert max(len(hop.node) for hop in found) == len("b/") + 100
    assert len(found[1].counters) == MOST_COUNTERS
    assert hops(Hop("\x1b[31m", 1, 1, 1))[0].node == "b/ [31m"
    assert hops(Hop("q", 2**80, 1, 1)) == ()
    assert hops(Hop("q", 1, 1, 1), identity=2**80) == ()
    assert hops(Hop("q", 1, 1, 1, (("big", 2**80),)))[0].counters == (("host_identity", 7),)
