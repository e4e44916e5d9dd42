"""Steps of a small program, and heartbeats for them, for tests of monitoring."""

from __future__ import annotations

from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Hop, Punctuation

QUERIES = """
DEFINE { query_name 'tens'; visibility 'external'; }
SELECT tb, count(*) as cnt FROM IP GROUP BY time/10 as tb;
DEFINE { query_name 'minutes'; }
SELECT mb, sum(cnt) as total FROM tens GROUP BY tb/6 as mb;
"""
SECOND = 1_000_000_000


def steps(*interfaces: str) -> Steps:
    program = compile_queries([QueryText(QUERIES, "q.gsql")], CompileContext(interfaces)).program
    return Steps(program)


def stream_of(watched: Steps, interface: str) -> str:
    (stream,) = (name for name in watched.streams if name.endswith(f"@{interface}"))
    return stream


def epoch_column(watched: Steps) -> str:
    (column,) = watched.program.lftas[0].schema.temporal
    return column.name


def batch(watched: Steps, interface: str, sequence: int, epoch: int, rows: int = 5) -> Batch:
    extents = (Extent(epoch_column(watched), epoch, epoch),)
    return Batch(stream_of(watched, interface), sequence, "segments/s", rows, 100, extents)


def heartbeat(
    watched: Steps, interface: str, sequence: int, epoch: int, identity: int, made_ns: int = 0
) -> Heartbeat:
    stream = stream_of(watched, interface)
    promise = Punctuation(epoch_column(watched), epoch)
    hops = (
        Hop(stream, made_ns, 0, 1_000_000, (("tuples_in_total", 7),)),
        Hop("log", made_ns + 1_000_000, 0, 2_000_000, (("used_bytes", 9),)),
    )
    return Heartbeat(stream, sequence, identity, epoch * 10 * SECOND, (promise,), hops)
