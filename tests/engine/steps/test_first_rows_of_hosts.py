"""The run's choice from the first rows of hosts: it waits for all hosts, and keeps their marks."""

from __future__ import annotations

from tests.queries.plan.partitioning.test_host_answers import FLOWS, OF_TOP, TOP, compiled, planned

from gscope.engine.steps.steps import Steps
from gscope.queries.streams.losses import Losses, LostRows
from gscope.queries.streams.messages import Extent, Heartbeat, Punctuation

STREAMS = tuple(f"top.answers@{name}" for name in ("a.eth0", "a.eth1", "b.eth0"))


def steps() -> Steps:
    found = compiled(FLOWS, TOP, OF_TOP, only=("top", "of_top"))
    return Steps(planned(found, "srcIP").run)


def promise(
    driven: Steps, stream: str, sequence: int, bound: int, losses: Losses | None = None
) -> None:
    promised = (Punctuation("tb", bound),)
    driven.on_messages([Heartbeat(stream, sequence, 0, 0, promised, losses=losses)])


def test_an_epoch_is_complete_once_all_hosts_have_passed_it() -> None:
    driven = steps()
    assert set(driven.streams) == set(STREAMS)
    for number, stream in enumerate(STREAMS):
        promise(driven, stream, 0, 7 + number)
    driven.next()
    assert {query: dict(bounds) for query, bounds in driven.output_bounds().items()} == {
        "top": {"tb": 7},
        "of_top": {"tb": 7},
    }


def test_what_one_host_lacks_marks_the_epochs_of_all_readers() -> None:
    driven = steps()
    lost = Losses(rows=(LostRows((Extent("tb", 3, 4),), 5, "kernel"),))
    for stream in STREAMS:
        promise(driven, stream, 0, 9, lost if stream == STREAMS[-1] else None)
    driven.next()
    marks = {(e.query, e.reason, e.first, e.last) for e in driven.incomplete.mark()}
    assert marks == {("top", "kernel", 3, 4), ("of_top", "kernel", 3, 4)}
