"""Sizes, heartbeats, skews, chunks and crashes never show in an answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.golden.cases import all_cases
from tests.golden.driver import COMPILED, Variation, answer, capture
from tests.support.long_form import cases

from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.cases import Case
    from tests.support.shared_spark import SharedSpark

CASES = {case.name: case for case in all_cases()}

variations = st.builds(
    Variation,
    name=st.just("random"),
    table_slots=st.integers(2, 12).map(lambda power: 2**power),
    output_rows=st.sampled_from([1, 3, 100, 1 << 15]),
    block_bytes=st.sampled_from([64, 1000, 4096, 65_537, 1 << 20]),
    batch_rows=st.sampled_from([5, 64, 1000, 1 << 20]),
    heartbeat_interval_ns=st.integers(10_000_000, 300_000_000_000),
    heartbeat_every_tick=st.booleans(),
    skew_ns=st.sampled_from([0, 1, 999_999_999, 3_000_000_001, 10**10, 10**13]),
    chunks=st.integers(1, 8),
    crashes=st.integers(0, 2),
    seed=st.integers(0, 2**16),
)
# Smaller examples would not be clearer here, and each costs a run.
UNSHRUNK = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


def counts(case: Case, variation: Variation, folder: Path) -> Counter[tuple[object, ...]]:
    """The first partial, a count, of each group of each LFTA of ``case``.

    It is over all evictions of the group.
    """
    program = case.program(case.files)
    found: Counter[tuple[object, ...]] = Counter()
    lftas = {stream: lfta for lfta in program.lftas for stream in lfta.streams}
    for message in capture(program, case.files, variation, folder):
        if isinstance(message, Batch):
            lfta = lftas[message.stream]
            for row in pq.read_table(folder / message.path).to_pylist():
                *keys, count = list(row.values())[: len(lfta.keys) + 1]
                found[(lfta.name, *keys)] += count
    return found


@pytest.mark.parametrize("name", cases(["heaviest"], long=["tcp_flows", "statistics"]))
def test_no_setting_shows_in_what_lftas_count(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = CASES[name]
    expected = counts(case, COMPILED, tmp_path_factory.mktemp("plain"))

    @settings(UNSHRUNK, max_examples=15)
    @given(variation=variations)
    def holds(variation: Variation) -> None:
        assert counts(case, variation, tmp_path_factory.mktemp("varied")) == expected

    holds()


@settings(UNSHRUNK, max_examples=10)
@given(variation=variations)
def test_no_setting_shows_in_an_answer_without_spark(variation: Variation) -> None:
    case = CASES["selection"]
    rows = answer(case.program(case.files), case.files, variation, None)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", cases(["merge", "tcp_flows"], long=["heaviest"]))
@settings(UNSHRUNK, max_examples=5)
@given(variation=variations)
def test_no_setting_shows_in_an_answer(
    name: str, variation: Variation, shared_spark: SharedSpark
) -> None:
    case = CASES[name]
    rows = answer(case.program(case.files), case.files, variation, shared_spark.session())
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
