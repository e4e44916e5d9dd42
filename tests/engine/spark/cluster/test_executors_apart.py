"""Golden cases on workers that do not see the run's folder give the rows of the reference."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.differential.harness import compare, random_scenario
from tests.golden.cases import Case, all_cases
from tests.golden.driver import BACKLOG, COMPILED, Job, answer, capture
from tests.support.divided_steps import divided_steps
from tests.support.executor_kills import answers_under_kills
from tests.support.gscope_command import wait_for
from tests.support.long_form import cases
from tests.support.requirements import CLUSTER_PROGRAMS, needs, needs_root

from gscope.engine.spark import evaluation
from gscope.engine.spark.cluster.executors import executors_of
from gscope.engine.spark.cluster.placement import _near_hosts
from gscope.engine.spark.cluster.traffic import TrafficMeter
from gscope.engine.watermarks import release_size
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.spark_cluster import ClusterSession


pytestmark = [
    pytest.mark.spark,
    pytest.mark.own_session,
    pytest.mark.slow,
    needs_root,
    needs(*CLUSTER_PROGRAMS),
]

CASES = {case.name: case for case in all_cases()}

SHORT = ("full_flow", "max_dups", "merged_selection", "jitter", "snort_windows")
"""A join, an aggregate of aggregates, a merge, a fold, and a sliding window."""

CHOSEN = cases(
    [CASES[name] for name in SHORT],
    long=[case for name, case in CASES.items() if name not in SHORT],
)


EXCHANGED = ("all_aggregates",)
"""Cases of which SQL aggregates rows."""


def named(case: Case) -> str:
    return case.name


@contextmanager
def transferred(apart: ClusterSession) -> Iterator[dict[str, int]]:
    """The bytes that the block transfers, by kind, when it is over."""
    found: dict[str, int] = {}
    meter = TrafficMeter.of(apart.session)
    assert meter is not None
    yield found
    found |= meter.bytes_by_kind()


@pytest.mark.long
@pytest.mark.parametrize("case", CASES.values(), ids=named)
def test_executors_give_the_expected_rows(case: Case, apart: ClusterSession) -> None:
    rows = answer(case.program(case.files), case.files, COMPILED, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.parametrize("case", CHOSEN, ids=named)
def test_large_steps_and_crashes_give_the_expected_rows(
    case: Case, apart: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that a small step leaves to the driver runs on executors."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    rows = answer(case.program(case.files), case.files, BACKLOG, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.parametrize(
    "case",
    cases([CASES["flow_pairs"]], long=[c for n, c in CASES.items() if n != "flow_pairs"]),
    ids=named,
)
def test_operators_in_partitions_give_the_expected_rows(case: Case, apart: ClusterSession) -> None:
    """Their tasks read row groups of segments, and exchange nothing."""
    program = case.program(case.files, 3)
    with transferred(apart) as bytes_of, divided_steps():
        rows = answer(program, case.files, COMPILED, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
    assert (bytes_of["exchanged"] > 0) == (case.name in EXCHANGED)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3001, 3012))
def test_random_queries_in_partitions_give_the_answers_of_the_reference(
    seed: int, apart: ClusterSession
) -> None:
    """Queries of every kind over random traffic, as in ``tests/differential/``."""
    outcome = compare(random_scenario(seed, 6, partitions=3), apart.session)
    assert outcome.compared
    assert not outcome.disagreements


@pytest.mark.parametrize("name", ["all_syn_count"])
def test_fetched_bytes_are_those_of_the_segments(name: str, apart: ClusterSession) -> None:
    """All columns of all segments cross the network once, and nothing is exchanged."""
    case = CASES[name]
    program = case.program(case.files)
    folder = Path(tempfile.mkdtemp())
    messages = capture(program, case.files, COMPILED, folder / "log")
    with transferred(apart) as found:
        rows = Job(program, messages, folder, apart.session, COMPILED).answers()
    assert {query: sorted(each) for query, each in rows.items()} == case.expected()
    segments = [folder / "log" / each.path for each in messages if isinstance(each, Batch)]
    batches = [batch for path in segments for batch in pq.read_table(path).to_batches()]
    assert found["segments"] == sum(map(pa.ipc.get_record_batch_size, batches)) > 0
    assert found["returned"] > 0
    assert found["exchanged"] == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["flow_pairs", "full_flow"])
def test_executors_beside_the_log_transfer_nothing(name: str, apart: ClusterSession) -> None:
    """With a third executor, which sees the folder of the run: a plan in partitions, then SQL."""
    case = CASES[name]
    worker = apart.cluster.add_worker(host="127.0.0.2")
    conf = apart.session.sparkContext._jsc.sc().conf()
    try:
        wait_for(lambda: _near_hosts(apart.session) == ("127.0.0.2",), "an executor beside the log")
        # All tasks wait for it, although others are idle.
        conf.set("spark.locality.wait.node", "600s")
        for partitions, way in ((3, divided_steps()), (1, nullcontext())):
            with transferred(apart) as found, way:
                program = case.program(case.files, partitions)
                rows = answer(program, case.files, COMPILED, apart.session)
            assert {query: sorted(each) for query, each in rows.items()} == case.expected()
            assert found == dict.fromkeys(("segments", "carried", "returned", "exchanged"), 0)
    finally:
        conf.set("spark.locality.wait.node", "0s")
        apart.cluster.workers.remove(worker)
        known = set(executors_of(apart.session))
        worker.kill()
        wait_for(lambda: set(executors_of(apart.session)) < known, "the end of the executor")


def kill_executor(apart: ClusterSession) -> None:
    """Kill one executor; its worker starts another."""
    pids = [pid for worker in apart.cluster.workers for pid in worker.executors()]
    os.kill(pids[0], signal.SIGKILL)


def kill_worker(apart: ClusterSession) -> None:
    """Kill a worker: its executors end by themselves, and another worker comes."""
    apart.cluster.workers.pop(0).kill()
    apart.cluster.add_worker(hidden=apart.hidden)


@pytest.mark.parametrize("kill", [kill_executor, kill_worker])
@pytest.mark.parametrize("name", ["full_flow"])
def test_nothing_is_lost_or_answered_twice_when_executors_are_killed(
    name: str,
    kill: Callable[[ClusterSession], None],
    apart: ClusterSession,
    monkeypatch: pytest.MonkeyPatch,
    executor_kills: int,
) -> None:
    case = CASES[name]
    for rows in answers_under_kills(
        case, apart.session, lambda: kill(apart), executor_kills, monkeypatch
    ):
        assert {query: sorted(found) for query, found in rows.items()} == case.expected()
