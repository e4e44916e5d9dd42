"""How far the columns of results had come when the input ended.

It is known by arithmetic on its last packets.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import EndOfStream, Heartbeat, Message, Punctuation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

QUERIES = """
DEFINE { query_name 'tens'; } SELECT tb, count(*) AS n FROM IP GROUP BY time/10 AS tb;
DEFINE { query_name 'minutes'; } SELECT mb, sum(n) AS total FROM tens GROUP BY tb/6 AS mb;
DEFINE { query_name 'large'; } SELECT tb, n FROM tens WHERE n > 5;
DEFINE { query_name 'rows'; } SELECT time, srcIP FROM IP;
DEFINE { query_name 'falling'; } SELECT -time AS t, srcIP FROM IP;
DEFINE { query_name 'pairs'; }
SELECT S.tb, S.n, R.n OUTER_JOIN FROM tens S, tens R WHERE S.tb = R.tb + 1;
"""
PROGRAM = compile_queries([QueryText(QUERIES, "q")], CompileContext(("a", "b"))).program
REACHED: dict[str, tuple[str, Callable[[int], int]]] = {
    "tens": ("tb", lambda second: second // 10),
    "minutes": ("mb", lambda second: second // 60),
    "large": ("tb", lambda second: second // 10),
    "rows": ("time", lambda second: second),
    "falling": ("-t", lambda second: second),
    "pairs": ("tb", lambda second: second // 10),
}
PROMISES: dict[str, tuple[str, Callable[[int], int]]] = {
    name: REACHED[name] for name in ("tens", "rows", "falling")
}


def messages(interface: str, beats: list[int]) -> list[list[Message]]:
    """Return what the streams of an interface say at these times, and at last their ends."""
    found: list[list[Message]] = []
    for number, second in enumerate(beats):
        found.append([])
        for lfta in PROGRAM.lftas:
            column, at = PROMISES[lfta.name]
            punctuation = Punctuation(column, at(second))
            found[-1].append(Heartbeat(lfta.stream(interface), number, 0, 0, (punctuation,)))
    ends = [EndOfStream(lfta.stream(interface), len(beats)) for lfta in PROGRAM.lftas]
    return [*found, [*ends]]


BEATS = st.lists(st.integers(0, 10_000), min_size=1, max_size=4).map(sorted)


@given(BEATS, BEATS, st.randoms(use_true_random=False))
def test_a_clock_is_that_of_the_last_packet_of_any_interface(
    of_a: list[int], of_b: list[int], chance: Random
) -> None:
    steps = Steps(PROGRAM)
    left = [messages("a", of_a), messages("b", of_b)]
    while any(left):
        source = chance.choice([each for each in left if each])
        steps.on_messages(source.pop(0))
        while steps.next() is not None:
            pass
    assert steps.is_finished
    last = max(of_a[-1], of_b[-1])
    expected = {query: {column: at(last)} for query, (column, at) in REACHED.items()}
    del expected["tens"]
    assert steps.output_clocks() == expected
    assert all(set(each.values()) == {math.inf} for each in steps.output_bounds().values())
    # A job that is restarted now has only what was committed.
    again = Steps(PROGRAM)
    again.restore(steps.number, json.loads(json.dumps(steps.snapshot())))
    assert again.output_clocks() == expected
