"""The flow query: compiled and interpreted, and against tshark on every capture."""

from __future__ import annotations

import csv
import ipaddress
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.lfta.lfta_builders import (
    aggregation,
    block_of,
    count,
    epoch_of,
    flow,
    ipv4,
    ipv6,
    udp,
)
from tests.capture.lfta.lfta_collect import Collector, Row, compiled, interpreted, merged, run
from tests.support.requirements import EXPECTED, captures

from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.sources.files.open import open_source
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9


def packets(number: int) -> list[tuple[int, bytes]]:
    return [
        (
            SECOND * n // 3,
            ipv4(n % 7, 5, udp(1000 + n % 3, 53)) if n % 2 else ipv6(n % 5, 2**127, udp(n % 2, 8)),
        )
        for n in range(number)
    ]


@pytest.mark.parametrize("slots", [4, 16, 1 << 16])
def test_a_table_of_any_size_gives_the_interpreters_groups(slots: int) -> None:
    blocks = [block_of(packets(1000))]
    expected, _ = run(interpreted(), [flow()], blocks)
    rows, engine = run(compiled(LftaSettings(table_slots=slots)), [flow()], blocks)
    assert merged(flow(), rows["flow"]) == merged(flow(), expected["flow"])
    counters = engine.lfta_counters("flow")
    assert counters.matched_tuples == 1000
    assert counters.out_tuples == len(rows["flow"])
    assert counters.live_groups == 0
    assert (counters.evicted_groups > 0) or slots > 16


def test_output_buffers_are_emitted_when_full_and_used_again() -> None:
    blocks = [block_of([(n * SECOND, ipv4(n, 1, udp(n, 1))) for n in range(2000)])]
    settings = LftaSettings(table_slots=4, batch_rows=128)
    rows, _ = run(compiled(settings), [flow()], blocks)
    assert len(rows["flow"]) == 2000
    assert {row["srcPort"] for row in rows["flow"]} == set(range(2000))


def test_groups_of_a_closed_epoch_leave_at_the_heartbeat() -> None:
    collector = Collector()
    engine = compiled()([flow()], collector)
    engine.process(block_of(packets(90)), 0)
    promises = engine.heartbeat(20 * SECOND)
    assert {row["tb"] for row in collector.rows["flow"]} == {0, 1}
    assert promises["flow"][0].bound == 2
    assert engine.lfta_counters("flow").live_groups > 0


def test_packets_below_the_bound_are_late_for_all_lftas() -> None:
    collector = Collector()
    per_second = aggregation([epoch_of(1)], [count()], name="per_second")
    engine = compiled()([flow(), per_second], collector)
    engine.heartbeat(20 * SECOND, skew_ns=5 * SECOND)
    engine.process(block_of(packets(60)), 0)
    engine.finish()
    assert engine.interface_counters.late_packets == 45
    assert engine.interface_counters.packets == 60
    assert sum(row["cnt"] for row in collector.rows["per_second"]) == 15


def expected_flows(path: Path) -> list[tuple[Any, ...]]:
    with (EXPECTED / f"{path.name}.flows.csv").open() as file:
        return sorted(
            tuple(
                ipaddress.ip_address(value).packed if name.endswith("IP") else int(value)
                for name, value in row.items()
            )
            for row in csv.DictReader(file)
        )


def as_tshark(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        v[12:] if isinstance(v, bytes) and v[:12] == bytes(10) + b"\xff\xff" else v for v in row
    )


def flows_of(path: Path, settings: LftaSettings) -> list[tuple[Any, ...]]:
    collector = Collector()
    engine = compiled(settings)([flow()], collector)
    try:
        source = open_source(str(path))
    except CaptureError:
        # A few files of the collection are not captures; tshark has no rows for them either.
        return []
    taken = 0
    while (block := source.next_block()) is not None:
        engine.process(block, 0)
        taken += block.count
    source.close()
    engine.finish()
    assert engine.interface_counters.packets == taken
    rows: list[Row] = collector.rows.get("flow", [])
    groups = merged(flow(), rows)
    return sorted(as_tshark(key + states) for key, states in groups.items())


@pytest.mark.parametrize("slots", [4, 1 << 12])
def test_flows_of_every_capture_are_those_of_tshark(slots: int) -> None:
    assert len(captures()) == 85
    settings = LftaSettings(table_slots=slots)
    wrong = [path.name for path in captures() if flows_of(path, settings) != expected_flows(path)]
    assert wrong == []
