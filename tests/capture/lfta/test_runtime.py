"""The runtime around the kernel: several LFTAs, buffers and their owners, heartbeats, columns."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.capture.lfta.lfta_builders import (
    IS_IP,
    aggregation,
    block_of,
    count,
    epoch_of,
    field,
    flow,
    ipv4,
    ipv6,
    literal,
    selection,
    tcp,
    udp,
)
from tests.capture.lfta.lfta_collect import Collector, answer, compiled, interpreted, run

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.errors import UsageError
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.types import DECREASING, INCREASING, GsqlType

if TYPE_CHECKING:
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.plan.program import Lfta

SECOND = 10**9
IS_WEB = call("eq", field("destPort"), literal(80))


def packets(number: int) -> list[tuple[int, bytes]]:
    made = [
        ipv4(1, 2, tcp(5, 80, data=b"GET /"), 6),
        ipv4(2, 1, udp(5, 53)),
        ipv6(1, 2, tcp(1, 80), 6),
    ]
    return [(n * SECOND, made[n % 3]) for n in range(number)]


def web(name: str) -> Lfta:
    predicate = call("and", IS_IP, IS_WEB)
    return aggregation([epoch_of()], [count(name=f"cnt_{name}")], predicate, name=name)


def test_predicates_that_lftas_share_are_one_bit_each_of_a_signature() -> None:
    queries = [web("a"), web("b"), flow()]
    source = load_kernel(queries).path.read_text()
    assert "def prefilter(" in source
    assert "def prefilter(" not in load_kernel([web("a")]).path.read_text()
    expected, _ = run(interpreted(), queries, [block_of(packets(100))])
    rows, _ = run(compiled(), queries, [block_of(packets(100))])
    for lfta in queries:
        assert answer(lfta, rows[lfta.name]) == answer(lfta, expected[lfta.name])


def test_lftas_of_other_interfaces_stay_silent() -> None:
    queries = [
        replace(flow("here"), interfaces=("main",)),
        replace(flow("there"), interfaces=("x",)),
    ]
    collector = Collector()
    runtime = LftaRuntime(queries, "main", LftaSettings(), load_kernel(queries), collector)
    runtime.process(block_of(packets(9)), 0)
    promises = runtime.heartbeat(3 * SECOND)
    runtime.finish()
    assert set(collector.rows) == set(promises) == {"here"}


def texts() -> Lfta:
    columns = [
        NamedExpression("time", field("time")),
        NamedExpression("data", field("TCP_data")),
        NamedExpression("ago", call("neg_int", field("time"))),
    ]
    lfta = selection(columns, None, temporal=("time",))
    schema = replace(
        lfta.schema,
        columns=(*lfta.schema.columns[:2], replace(lfta.schema.columns[2], ordering=DECREASING)),
    )
    return replace(lfta, schema=schema, has_interface_column=True)


def test_an_interface_without_lftas_counts_its_packets() -> None:
    queries = [replace(flow("there"), interfaces=("x",))]
    collector = Collector()
    runtime = LftaRuntime(queries, "main", LftaSettings(), load_kernel(queries), collector)
    block = block_of([*packets(300), (400 * SECOND, b"short")])
    assert runtime.process(block, 0) == block.count
    runtime.finish()
    assert collector.rows == {}
    counts = runtime.interface_counters
    assert (counts.accepted_packets, sum(counts.odd_packets.values())) == (300, 1)


def test_rows_of_a_new_epoch_get_a_buffer_of_their_own() -> None:
    epochs: list[tuple[int, int]] = []

    def emit(_lfta: str, batch: ColumnBatch) -> None:
        epochs.extend((extent.least, extent.greatest) for extent in batch.extents)
        batch.release()

    queries = [flow()]
    settings = LftaSettings(table_slots=4, batch_rows=256)
    runtime = LftaRuntime(queries, "main", settings, load_kernel(queries), emit)
    sent = [(n // 1000 * 3600 * SECOND + n, ipv4(n, 2, udp(5, 53))) for n in range(4000)]
    block = block_of(sent)
    assert runtime.process(block, 0) == block.count
    runtime.finish()
    assert len({least for least, _ in epochs}) == 4
    assert all(least == greatest for least, greatest in epochs)


def test_a_batch_for_which_room_ran_out_flushes_no_group_that_it_continues() -> None:
    settings = LftaSettings(batch_rows=128)
    rows, engine = run(compiled(settings), [web("a")], [block_of(packets(3000))])
    assert engine.lfta_counters("a").out_tuples > settings.batch_rows
    assert sorted(row["tb"] for row in rows["a"]) == list(range(300))


def test_columns_become_arrow_arrays_of_their_types() -> None:
    batches: list[pa.RecordBatch] = []

    def emit(_lfta: str, batch: ColumnBatch) -> None:
        assert [(e.column, e.least, e.greatest) for e in batch.extents] == [
            ("time", 0, 2),
            ("ago", -2, 0),
        ]
        batches.append(pa.RecordBatch.from_pylist(batch.to_arrow().to_pylist()))
        assert batch.to_arrow().schema.field("interface").type == pa.dictionary(
            pa.int32(), pa.binary()
        )
        batch.release()

    runtime = LftaRuntime([texts()], "main", LftaSettings(), load_kernel([texts()]), emit)
    runtime.process(block_of(packets(3)), 0)
    runtime.finish()
    assert batches[0].to_pylist() == [
        {"time": 0, "data": b"GET /", "ago": 0, "interface": b"main"},
        {"time": 1, "data": None, "ago": -1, "interface": b"main"},
        {"time": 2, "data": b"", "ago": -2, "interface": b"main"},
    ]


def test_a_decreasing_column_is_promised_by_its_negative() -> None:
    runtime = compiled()([texts()], Collector())
    promises = {p.column: p.bound for p in runtime.heartbeat(7 * SECOND, 2 * SECOND)["lfta"]}
    assert promises == {"time": 5, "-ago": 5}


def test_the_bound_never_falls() -> None:
    runtime = compiled()([flow()], Collector())
    assert runtime.heartbeat(50 * SECOND)["flow"][0].bound == 5
    assert runtime.heartbeat(20 * SECOND)["flow"][0].bound == 5
    assert runtime.bound_ns == 50 * SECOND


def test_packets_stop_at_the_moment_asked_for() -> None:
    runtime = compiled()([flow()], Collector())
    block = block_of(packets(300))
    assert runtime.process(block, 0, 200 * SECOND) == 200
    assert runtime.process(block, 200, 200 * SECOND) == 200
    assert runtime.process(block, 200) == 300
    assert runtime.process(block, 300) == 300


def test_a_buffer_is_not_touched_before_it_is_released() -> None:
    lent: list[ColumnBatch] = []
    seen: list[list[dict[str, object]]] = []
    freed = threading.Event()

    def write() -> None:
        freed.wait()
        for batch in lent[:1]:
            seen.append(batch.to_arrow().to_pylist())
            batch.release()

    def emit(_lfta: str, batch: ColumnBatch) -> None:
        lent.append(batch)
        if len(lent) == 2:
            seen.append(lent[0].to_arrow().to_pylist())
            freed.set()

    columns = [NamedExpression("time", field("time"))]
    lfta = selection(columns)
    settings = LftaSettings(batch_rows=128)
    runtime = LftaRuntime([lfta], "main", settings, load_kernel([lfta]), emit)
    writer = threading.Thread(target=write)
    writer.start()
    runtime.process(block_of(packets(300)), 0)
    writer.join()
    assert seen[0] == seen[1] == [{"time": n} for n in range(128)]


def test_strings_larger_than_a_heap_get_a_larger_one() -> None:
    data = bytes(range(256)) * 4
    lfta = selection([NamedExpression("data", field("data"))])
    collector = Collector()
    runtime = compiled(LftaSettings(heap_bytes=1))([lfta], collector)
    runtime.process(block_of([(0, ipv4(1, 2, udp(1, 2, data)))] * 200), 0)
    runtime.finish()
    assert collector.rows["lfta"] == [{"data": data}] * 200


def test_epochs_that_are_null_belong_to_no_group() -> None:
    epoch = NamedExpression("tb", call("idiv_int", field("sequence_number"), literal(10)))
    lfta = aggregation([epoch], [count()])
    for make in (compiled(), interpreted()):
        rows, engine = run(make, [lfta], [block_of(packets(30))], [(20 * SECOND, 0)])
        assert answer(lfta, rows["lfta"]) == {(0,): (20,)}
        assert engine.lfta_counters("lfta").without_epoch_tuples == 10
        assert engine.lfta_counters("lfta").matched_tuples == 30


def test_ordering_of_the_schema_decides_what_is_temporal() -> None:
    assert flow().schema["tb"].ordering == INCREASING
    assert flow().schema["tb"].type is GsqlType.INT


@pytest.mark.parametrize(
    "wrong", [{"table_slots": 3}, {"table_slots": 2}, {"batch_rows": 0}, {"buffers": 0}]
)
def test_sizes_that_cannot_work_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        LftaSettings(**wrong)
