"""A new kernel starts unoptimised, and is optimised while it runs once that pays."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.capture.lfta.lfta_builders import block_of, flow, ipv4, udp
from tests.capture.lfta.lfta_collect import Collector, answer, interpreted, run

from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.kernels import kept_module
from gscope.capture.kernels.native import machine_code
from gscope.capture.kernels.native.machine_code import Optimization
from gscope.capture.lfta import native_kernel, tiers
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.sources.block import Block

LFTA = flow("tiered")


@pytest.fixture
def compiled_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Optimization]:
    """The levels at which modules were compiled, with a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tiers, "OPTIMIZE_AFTER", 1000)
    levels: list[Optimization] = []

    def noted(assembly: str, optimization: Optimization) -> bytes:
        levels.append(optimization)
        return machine_code.machine_code(assembly, optimization)

    monkeypatch.setattr(kept_module, "machine_code", noted)
    return levels


def block(packets: int) -> Block:
    return block_of([(n // 400, ipv4(n % 5, 2, udp(n % 3, 4))) for n in range(packets)])


def test_few_packets_never_wait_for_the_optimiser(compiled_at: list[Optimization]) -> None:
    for _ in range(2):
        kernel = load_kernel([LFTA], is_quick=True)
        runtime = LftaRuntime([LFTA], "main", LftaSettings(), kernel, Collector())
        runtime.process(block(999), 0)
        kernel.tiers.wait(60)
        assert compiled_at == [Optimization.NONE] * 2  # the decoder and the kernel, once


def test_an_optimised_kernel_takes_over_between_two_calls(compiled_at: list[Optimization]) -> None:
    kernel = load_kernel([LFTA], is_quick=True)
    collector = Collector()
    runtime = LftaRuntime([LFTA], "main", LftaSettings(), kernel, collector)
    first = kernel.tiers.functions
    runtime.process(block(1000), 0)
    kernel.tiers.wait(60)
    assert kernel.tiers.functions is not first
    assert compiled_at == [Optimization.NONE] * 2 + [Optimization.FULL] * 2
    runtime.process(block(1000), 0)
    runtime.finish()
    expected, _ = run(interpreted(), [LFTA], [block(1000), block(1000)])
    assert answer(LFTA, collector.rows[LFTA.name]) == answer(LFTA, expected[LFTA.name])
    assert load_kernel([LFTA], is_quick=True).tiers.functions.address is not None
    assert len(compiled_at) == 4  # the next process begins with the optimised kernel


def test_counts_of_the_pump_start_the_optimiser(compiled_at: list[Optimization]) -> None:
    kernel = load_kernel([LFTA], is_quick=True)
    runtime = LftaRuntime([LFTA], "main", LftaSettings(), kernel, Collector())
    before = runtime.kernel_entry()
    runtime.count(999)
    runtime.count(1)
    kernel.tiers.wait(60)
    after = runtime.kernel_entry()
    assert before is not None
    assert after is not None
    assert before.address != after.address
    assert before.state is after.state


@pytest.mark.parametrize("is_live", [False, True])
def test_a_live_capture_optimises_before_the_first_packet(
    is_live: bool, compiled_at: list[Optimization]
) -> None:
    query = QueryText("SELECT tb, count(*) FROM IP GROUP BY time/7 AS tb", "q")
    program = compile_queries([query], CompileContext(("main",))).program
    settings = CaptureSettings((InterfaceSettings("main", ("unused.pcap",)),))
    compiled_engines(program, settings, is_live=is_live)
    for thread in threading.enumerate():
        if thread.name == "optimise kernel":
            thread.join(60)
    assert (Optimization.FULL in compiled_at) is is_live


def test_one_optimiser_for_all_threads(compiled_at: list[Optimization]) -> None:
    kernel = load_kernel([LFTA], is_quick=True)
    together = threading.Barrier(4)

    def count() -> None:
        together.wait(60)
        kernel.tiers.count(1000)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    kernel.tiers.wait(60)
    assert compiled_at.count(Optimization.FULL) == 2


def test_a_capture_goes_on_if_its_kernel_cannot_be_optimised(
    compiled_at: list[Optimization],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kernel = load_kernel([LFTA], is_quick=True)
    runtime = LftaRuntime([LFTA], "main", LftaSettings(), kernel, Collector())

    def broken(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(kept_module, "machine_code", broken)
    first = kernel.tiers.functions
    with caplog.at_level(logging.WARNING):
        runtime.process(block(1000), 0)
        kernel.tiers.wait(60)
    assert "cannot optimise the kernel" in caplog.text
    assert kernel.tiers.functions is first
    assert runtime.process(block(500), 0) == 500


def test_what_an_interrupted_optimiser_has_made_is_used_by_the_next_process(
    compiled_at: list[Optimization], monkeypatch: pytest.MonkeyPatch
) -> None:
    lftas = [flow(name) for name in ("first", "second", "third")]
    compile_module = vars(kept_module)["machine_code"]

    def interrupted(assembly: str, optimization: Optimization) -> bytes:
        if compiled_at.count(Optimization.FULL) == 3:
            raise MemoryError
        code: bytes = compile_module(assembly, optimization)
        return code

    monkeypatch.setattr(kept_module, "machine_code", interrupted)
    kernel = load_kernel(lftas, is_quick=True)
    kernel.tiers.optimize()
    kernel.tiers.wait(60)
    assert compiled_at == [Optimization.NONE] * 5 + [Optimization.FULL] * 3
    monkeypatch.setattr(kept_module, "machine_code", compile_module)

    # The decoder, run and flush, and the first LFTA are optimised, the others are not.
    folder = kernel.path.parent
    kept = {path.name for path in folder.glob("*.o")}
    optimised = {name for name in kept if not name.endswith(".quick.o")}
    assert len(optimised) == 3
    for name in optimised:
        (folder / f"{name.removesuffix('.o')}.quick.o").unlink()
    mixed, _ = run(
        lambda lftas, emit: LftaRuntime(
            lftas, "main", LftaSettings(), load_kernel(lftas, is_quick=True), emit
        ),
        lftas,
        [block(900)],
    )
    expected, _ = run(interpreted(), lftas, [block(900)])
    for lfta in lftas:
        assert answer(lfta, mixed[lfta.name]) == answer(lfta, expected[lfta.name])
    assert len(compiled_at) == 8

    kernel = load_kernel(lftas, is_quick=True)
    kernel.tiers.optimize()
    kernel.tiers.wait(60)
    assert compiled_at[8:] == [Optimization.FULL] * 2


def test_both_tiers_are_compiled_from_one_translation(
    compiled_at: list[Optimization], monkeypatch: pytest.MonkeyPatch
) -> None:
    translated: list[str] = []
    for name in ("_decoder_assembly", "_kernel_assembly", "_part_assembly"):
        translate = getattr(native_kernel, name)

        def counted(*arguments: Any, _translate: Any = translate, _name: str = name) -> str:
            translated.append(_name)
            return str(_translate(*arguments))

        monkeypatch.setattr(native_kernel, name, counted)
    kernel = load_kernel([flow("first"), flow("second")], is_quick=True)
    kernel.tiers.optimize()
    kernel.tiers.wait(60)
    assert len(compiled_at) == 2 * 4
    assert sorted(translated) == ["_decoder_assembly", "_kernel_assembly", *["_part_assembly"] * 2]


def test_both_tiers_flush_nothing_of_no_lfta(compiled_at: list[Optimization]) -> None:
    for is_quick in (True, False):
        functions = load_kernel([LFTA], is_quick=is_quick).tiers.functions
        functions.flush(-1, np.zeros(1, np.int64), 0)
    assert compiled_at == [Optimization.NONE] * 2 + [Optimization.FULL] * 2
