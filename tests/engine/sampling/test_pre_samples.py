"""What LFTAs leave out beforehand changes no answer of the sampling operator, bit for bit.

The same packets pass through compiled LFTAs with and without a pre-sample: on two interfaces, one
of them with two lanes, out of order within the skew, and with a daemon that is restarted in the
middle of a window. The streams of both are folded alike.
"""

from __future__ import annotations

import itertools
import random
import socket
import struct
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.capture.lfta.lfta_strategies import blocks_of
from tests.capture.packet.kernel_reader import RawPacket

from gscope.capture.lfta import pre_sample_table
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.engine.sampling.fold import fold
from gscope.engine.sampling.tuples import in_order, no_tuples
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.plan.program import Lfta, Program

SECOND = 10**9
BASE_NS = 1_700_000_040 * SECOND
SKEW_NS = SECOND // 10

LEAST = """
    SELECT tb, srcIP, HX{more} FROM IP WHERE HX <= Kth_smallest_value$(HX, {k})
    GROUP BY time/2 AS tb, srcIP, H(destIP) AS HX SUPERGROUP srcIP
    {having} CLEANING_WHEN count_distinct$(*) >= {most}
    CLEANING_BY HX <= Kth_smallest_value$(HX, {k})"""
HAVING = "HAVING HX <= Kth_smallest_value$(HX, 3)"
QUERIES = {
    "hashes alone": LEAST.format(more="", k=3, most=6, having=HAVING),
    # Groups above the bound that no cleaning has removed are answered as well.
    "without HAVING": LEAST.format(more=", count_distinct$(*) AS live", k=3, most=6, having=""),
    "aggregates": LEAST.format(
        more=", count(*), sum(len), first(len), sum$(len) AS total, first$(len) AS oldest",
        k=3, most=5, having=f"{HAVING} AND sum$(len) > 100",
    ),
    "one supergroup": """
        SELECT tb, len FROM IP WHERE len <= Kth_smallest_value$(len, 20) AND srcPort > 1004
        GROUP BY time/2 AS tb, len CLEANING_WHEN count_distinct$(*) > 30
        CLEANING_BY len <= Kth_smallest_value$(len, 25)""",
    "whole input": """
        SELECT destPort, iface, len, count(*) FROM IP WHERE Kth_smallest_value$(len, 4) >= len
        GROUP BY destPort, interface AS iface, len SUPERGROUP destPort, iface
        CLEANING_WHEN 6 <= count_distinct$(*) CLEANING_BY Kth_smallest_value$(len, 4) >= len""",
}  # fmt: skip


def compiled(text: str) -> Program:
    return compile_queries([QueryText(text, "q")], CompileContext(("a", "b"))).program


def datagram(chance: random.Random) -> bytes:
    """An Ethernet frame with an IPv4 or IPv6 datagram of a random length."""
    source, dest = chance.choice((1, 1, 1, 2, 3)), int(chance.paretovariate(0.7)) % 200
    size = 8 + chance.randrange(60)
    udp = struct.pack(">HHHH", 1000 + chance.randrange(10), chance.choice((53, 80)), size, 0)
    payload = udp + bytes(size - 8)
    if chance.random() < 0.2:
        addresses = bytes(15) + bytes([source]) + bytes(15) + bytes([dest])
        head = struct.pack(">IHBB", 6 << 28, len(payload), 17, 64) + addresses
        return bytes(12) + b"\x86\xdd" + head + payload
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0,
        socket.inet_aton(f"10.0.0.{source}"), socket.inet_aton(f"10.1.0.{dest}"),
    )  # fmt: skip
    return bytes(12) + b"\x08\x00" + head + payload


def sent(chance: random.Random, count: int) -> list[RawPacket]:
    """Packets of some windows, with equal times and steps back of less than the skew."""
    at, found = BASE_NS, []
    for _ in range(count):
        at += chance.choice((0, 1, SECOND // 200, SECOND // 50))
        back = chance.choice((0, chance.randrange(SKEW_NS)))
        data = datagram(chance)
        found.append(RawPacket(1, data, len(data), at - back))
    return found


@dataclass
class Streams:
    """The rows that the lanes of two interfaces write, each stream in the order of its batches."""

    lftas: Sequence[Lfta]
    rows: dict[str, list[pa.Table]]

    @classmethod
    def of(cls, lfta: Lfta, packets: list[RawPacket], seed: int) -> Streams:
        found = cls([lfta], defaultdict(list))
        chance = random.Random(seed)
        lanes: dict[tuple[str, int], list[RawPacket]] = {
            lane: [] for lane in (("a", 0), ("a", 1), ("b", 0))
        }
        for packet in packets:
            lanes[chance.choice(list(lanes))].append(packet)
        runs = [
            found._lane(name, list(own), chance.randrange(1, 40))
            for (name, _), own in lanes.items()
        ]
        # Lanes go on in turn, so that their batches are mixed in the stream.
        for _ in itertools.zip_longest(*runs):
            pass
        return found

    def _lane(self, name: str, packets: list[RawPacket], restart: int) -> Iterator[None]:
        for part in (packets[: 5 * restart], packets[5 * restart :]):
            engine = LftaRuntime(
                self.lftas,
                name,
                LftaSettings(batch_rows=32),
                load_kernel(self.lftas),
                self._emit(name),
            )
            for block in blocks_of(part, 50):
                engine.process(block, 0)
                engine.heartbeat(int(block.time_ns[: block.count].max()), 2 * SKEW_NS)
                yield
            engine.finish()

    def _emit(self, name: str) -> Any:
        def emit(_: str, batch: ColumnBatch) -> None:
            # A copy: the buffer is used again.
            rows = pa.Table.from_pylist(batch.to_arrow().to_pylist(), batch.to_arrow().schema)
            self.rows[name].append(rows)
            batch.release()

        return emit

    def count(self) -> int:
        return sum(table.num_rows for tables in self.rows.values() for table in tables)

    def answers(self, node: SampleNode) -> list[dict[str, Any]]:
        """The answers of the operator, in their order."""
        schema = no_tuples(node).schema
        tables = [t.select(schema.names).cast(schema) for n in "ab" for t in self.rows[n]]
        folded: list[pa.Table] = []
        done = fold(
            node, in_order(node, pa.concat_tables([no_tuples(node), *tables])), None, folded.append
        )
        assert (done.left_out, done.wrapped) == (0, 0)
        return [row for table in folded for row in table.to_pylist()]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("table_bytes", [pre_sample_table.PRE_SAMPLE_BYTES, 0])
def test_the_answer_is_that_of_all_tuples(
    query: str, table_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_sample_table, "PRE_SAMPLE_BYTES", table_bytes)
    program = compiled(QUERIES[query])
    (lfta,), (node,) = program.lftas, program.nodes
    assert isinstance(node, SampleNode)
    assert lfta.pre_sample is not None
    shipped = []
    for seed in range(8):
        packets = sent(random.Random(seed), 600)
        whole = Streams.of(replace(lfta, pre_sample=None), packets, seed)
        thinned = Streams.of(lfta, packets, seed)
        assert thinned.answers(node) == whole.answers(node), seed
        assert whole.answers(node), seed
        shipped.append(thinned.count() / whole.count())
    assert max(shipped) < 0.9, shipped
