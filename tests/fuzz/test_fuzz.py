"""A small budget of mutated packets, capture files and query texts.

``python -m tests.fuzz`` is the long form. Seeds and their number are fixed; a finding names its
seeds.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.fuzz import packets, queries
from tests.fuzz.sums import unaccounted

from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.dissect import dissect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.capture.packet.kernel_reader import RawPacket
    from tests.fuzz.sums import Dissected

    from gscope.capture.lfta.counters import InterfaceCounters

MUTANTS: dict[Callable[[int], object], int] = {
    packets.check_packets: 200,
    packets.check_file: 400,
    queries.check_query: 1000,
}
"""Seeds of each check, from 1 on: fixed, so that the default run is reproducible. The long form,
``python -m tests.fuzz``, goes on from any seed."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("check", MUTANTS)
def test_mutants_are_survived(check: Callable[[int], object]) -> None:
    findings = {seed: found for seed in range(1, MUTANTS[check] + 1) if (found := check(seed))}
    assert not findings


@pytest.mark.parametrize("make", [packets.mutated, queries.mutated])
def test_a_seed_makes_the_same_mutant_again(make: Callable[[object], object]) -> None:
    assert [make(random.Random(n)) for n in range(20)] == [
        make(random.Random(n)) for n in range(20)
    ]


def test_damaged_lz4_gives_the_same_packets_in_blocks_of_any_size() -> None:
    """The seed that found it: a large read lost what a small one had got out before the damage."""
    assert packets.check_file(1052928360) == ""


def _mutants() -> tuple[list[RawPacket], list[Dissected]]:
    chance = random.Random(1)
    made = [packets.mutated(chance) for _ in range(packets.BATCH)]
    return made, [
        dissect(each.data, linktype=each.linktype, wirelen=each.wirelen, time_ns=each.time_ns)
        for each in made
    ]


def test_a_packet_that_is_counted_for_another_reason_is_found() -> None:
    made, dissected = _mutants()
    assert unaccounted(made, dissected, random.Random(2)) == ""
    dissected[5] = dissected[5][0], Reason.TOO_DEEP
    assert "counted by reason" in unaccounted(made, dissected, random.Random(2))


def test_a_packet_in_no_counter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made, dissected = _mutants()
    real = vars(LftaRuntime)["interface_counters"].fget

    def one_less(runtime: LftaRuntime) -> InterfaceCounters:
        counters: InterfaceCounters = real(runtime)
        counters.late_packets -= 1
        return counters

    monkeypatch.setattr(LftaRuntime, "interface_counters", property(one_less))
    assert "late packets" in unaccounted(made, dissected, random.Random(2))
