"""A replay keeps the same packets however its input is cut into blocks, batches and files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.lfta.lfta_builders import field, flow
from tests.capture.lfta.test_sampled_kernels import by_groups, by_tuples, many
from tests.capture.replay.test_replay_capture import write_pcap

from gscope.capture.interface.open_log import open_log
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.log.log import read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.capture.shedding.thresholds import initial_sampling
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms, threshold_of
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.plan.program import Lfta

PACKETS = 3000
SHEDDING = SheddingSettings(SheddingMode.FIXED, 0.2, seed=5)
INTERFACES = ("left", "right")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Two captures for each of two interfaces, with the same packets."""
    folder = tmp_path_factory.mktemp("captures")
    packets = [(packet.time_ns, packet.data) for packet in many(PACKETS)]
    half = PACKETS // 2
    for name, part in (("one", packets[:half]), ("two", packets[half:])):
        write_pcap(folder / f"{name}.pcap", part)
    paths = [str(folder / f"{name}.pcap") for name in ("one", "two")]
    return dict.fromkeys(INTERFACES, paths)


def replayed(
    folder: Path,
    lfta: Lfta,
    files: dict[str, list[str]],
    *,
    is_interpreted: bool = False,
    shedding: SheddingSettings | None = SHEDDING,
    **more: Any,
) -> tuple[CaptureSummary, dict[str, Counter[int]]]:
    """The summary, and for each interface the packets of each source port."""
    lfta = replace(lfta, interfaces=INTERFACES)
    program = Program(INTERFACES, (lfta,), (), (), ())
    chosen = CaptureSettings(
        tuple(InterfaceSettings(name, tuple(paths)) for name, paths in files.items()),
        shedding=shedding,
        **more,
    )
    sampling = initial_sampling(program, shedding)

    def interpreters(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaInterpreter:
        return LftaInterpreter(program.lftas, interface, emit, sampling=sampling)

    log = open_log(folder, program, chosen)
    try:
        summary = replay_capture(
            program, chosen, log, engines=interpreters if is_interpreted else None
        )
    finally:
        log.close()
    found: dict[str, Counter[int]] = {name: Counter() for name in INTERFACES}
    for message in read_log(folder):
        if isinstance(message, Batch):
            for row in pq.read_table(folder / message.path).to_pylist():
                found[message.stream.partition("@")[2]][row["srcPort"]] += row["cnt"]
    return summary, found


WAYS: list[dict[str, Any]] = [
    {"block_bytes": 4096},
    {"heartbeat_every_tick": True, "heartbeat_interval_ns": 77_000_000},
    {"table_slots": 4, "output_rows": 1, "read_ahead": False},
    {"is_interpreted": True},
]


@pytest.mark.parametrize("lfta", [by_groups(flow(), field("srcPort")), by_tuples(flow())])
def test_what_is_kept_does_not_depend_on_blocks(
    tmp_path: Path, files: dict[str, list[str]], lfta: Lfta
) -> None:
    summary, kept = replayed(tmp_path / "log", lfta, files)
    for number, way in enumerate(WAYS):
        again, found = replayed(tmp_path / f"log{number}", lfta, files, **way)
        assert found == kept
        assert [i.shed for i in again.interfaces] == [i.shed for i in summary.interfaces]
    for interface in summary.interfaces:
        assert interface.received == PACKETS == interface.accepted + interface.shed
        assert interface.accepted == kept[interface.name].total()
    assert summary.log["shed_tuples_total"] == 0
    assert (summary.sample_rate, summary.least_rate) == (SHEDDING.rate, 1)


def test_interfaces_keep_the_same_groups_and_not_the_same_numbers(
    tmp_path: Path, files: dict[str, list[str]]
) -> None:
    _, groups = replayed(tmp_path / "groups", by_groups(flow(), field("srcPort")), files)
    assert groups["left"] == groups["right"]
    key = HashKey.of_seed(SHEDDING.seed)
    _, full = replayed(tmp_path / "full", flow(), files, shedding=None)
    low = threshold_of(SHEDDING.rate)
    assert groups["left"] == {
        port: packets
        for port, packets in full["left"].items()
        if hash_terms((port,), (GsqlType.INT,), key) <= low
    }
    _, tuples = replayed(tmp_path / "tuples", by_tuples(flow()), files)
    assert tuples["left"] != tuples["right"]


def test_a_sampled_program_keeps_all_packets_without_settings(
    tmp_path: Path, files: dict[str, list[str]]
) -> None:
    summary, found = replayed(tmp_path / "log", by_tuples(flow()), files, shedding=None)
    assert found["left"].total() == PACKETS
    assert summary.sample_rate == 1
