"""A live capture keeps the groups of its sample, on every lane and after a crash."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.lfta.lfta_builders import field, flow
from tests.capture.lfta.lfta_collect import Collector
from tests.capture.lfta.lfta_strategies import blocks_of
from tests.capture.lfta.test_sampled_kernels import ALONE, by_groups, by_tuples, many, of_rate
from tests.capture.live.test_fanout_interface import (
    FLOWS,
    captured,
    rows,
    wait_for_heartbeats,
)
from tests.capture.live.test_resume import Lives
from tests.capture.sources.af_packet.live_frames import udp_frame
from tests.capture.sources.af_packet.network import own_network, send

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.live.fanout_interface import Lane, LaneEngines
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms, threshold_of

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.plan.program import Lfta

SHEDDING = SheddingSettings(SheddingMode.FIXED, 0.4, seed=77)
BY_PORT = by_groups(flow(), field("srcPort"))
TIMES = 20


def kept_ports() -> set[int]:
    key = HashKey.of_seed(SHEDDING.seed)
    return {
        port
        for port in range(1000, 1000 + FLOWS)
        if hash_terms((port,), (GsqlType.INT,), key) <= threshold_of(SHEDDING.rate)
    }


def talked(folder: Path, fanout: int, lfta: Lfta) -> Any:
    """Capture ``TIMES`` packets of each flow; the summary of the interface."""
    with own_network():

        def talk(_: object) -> None:
            for _ in range(TIMES // 10):
                send(udp_frame(number, 1000 + number % FLOWS) for number in range(10 * FLOWS))
                threading.Event().wait(0.05)
            wait_for_heartbeats(folder, 3)

        summary, _ = captured(folder, talk, fanout, lfta, shedding=SHEDDING)
    assert summary.sample_rate == SHEDDING.rate
    assert summary.log["shed_tuples_total"] == 0
    (interface,) = summary.interfaces
    assert interface.received == TIMES * FLOWS == interface.accepted + interface.shed
    return interface


@pytest.mark.live
@pytest.mark.parametrize("fanout", [1, 3])
def test_the_groups_that_are_kept_do_not_depend_on_threads(tmp_path: Path, fanout: int) -> None:
    interface = talked(tmp_path / "log", fanout, BY_PORT)
    assert 10 < len(kept_ports()) < 30
    assert rows(tmp_path / "log") == {(port, 53): TIMES for port in kept_ports()}
    assert interface.accepted == TIMES * len(kept_ports())


@pytest.mark.live
def test_lanes_do_not_keep_the_same_numbers(tmp_path: Path) -> None:
    interface = talked(tmp_path / "log", 3, by_tuples(flow()))
    # 0.4 of 1,000 packets, with a standard deviation of 15.5.
    assert abs(interface.accepted - 400) < 80
    assert rows(tmp_path / "log").total() == interface.accepted


def test_a_threshold_holds_on_all_lanes_from_the_next_block_on() -> None:
    kernel = load_kernel(ALONE)
    engines = [
        LftaRuntime(
            ALONE, "main", LftaSettings(), kernel, Collector(), sampling=of_rate(1.0, ALONE)
        )
        for _ in range(2)
    ]
    both = LaneEngines([Lane(SimpleNamespace(name="main", runtime=each)) for each in engines])  # type: ignore[arg-type]
    (block,) = blocks_of(many(1000), 1000)
    for each in engines:
        each.process(block, 0)
    assert both.interface_counters.shed_packets == 0
    both.set_threshold("flow", threshold_of(0.3))
    for each in engines:
        each.process(block, 0)
    shed = [each.interface_counters.shed_packets for each in engines]
    assert shed[0] == shed[1] > 500
    assert both.interface_counters.shed_packets == sum(shed)
    assert both.interface_counters.packets == 4000


def test_packets_that_were_shed_before_a_crash_stay_in_the_account(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "log")
    lives.program = replace(
        lives.program,
        lftas=(replace(lives.program.lftas[0], sampling=BY_PORT.sampling),),
    )
    # One flow only: it is in the sample, or it is not.
    lives.shedding = SheddingSettings(SheddingMode.FIXED, 1e-9, seed=77)
    for second in (1, 2, 12):
        lives.world.at(second, lives.source.send_now)
    lives.live_until_crash(15.5)
    assert lives.counters["shed_packets_total"] == 3
    lives.world.at(20, lives.source.send_now)
    summary = lives.run(40)
    counters = next(iter(summary.lftas.values()))
    assert counters["shed_packets_total"] == counters["packets_total"] == 4
    assert lives.epochs == {}
