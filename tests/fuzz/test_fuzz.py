"""A small budget of mutated packets, capture files and query texts; ``python -m tests.fuzz`` is the long form.

The time is bounded, not the number, so that a slow machine tries fewer. Seeds go on from a number that changes with each run,
except in continuous integration; a finding names its seed.
"""

from __future__ import annotations

import os
import random
import time
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

BUDGET_S = 6.0
LEAST = 3
FIRST_SEED = 1 if os.environ.get("CI") else time.time_ns() % 2**32

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("check", [packets.check_packets, packets.check_file, queries.check_query])
def test_mutants_are_survived(check: Callable[[int], object]) -> None:
    check(FIRST_SEED)  # the first call compiles and reads, which the budget leaves out
    deadline = time.monotonic() + BUDGET_S
    tried = 0
    while tried < LEAST or time.monotonic() < deadline:
        seed = FIRST_SEED + tried
        found = check(seed)
        assert not found, f"seed {seed}: {found}"
        tried += 1


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
