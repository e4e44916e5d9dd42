"""Spark's own cluster in one process: executors that share the run's folder."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import all_cases
from tests.golden.driver import BACKLOG, answer
from tests.support.long_form import cases
from tests.support.spark_cluster import ClusterSession

from gscope.engine.spark import evaluation
from gscope.engine.spark.cluster.traffic import EXCHANGED, TrafficMeter
from gscope.engine.watermarks import release_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.cases import Case
    from tests.support.shared_spark import SharedSpark

pytestmark = [pytest.mark.spark, pytest.mark.own_session, pytest.mark.slow]

CASES = {case.name: case for case in all_cases()}
CHOSEN = cases([CASES["max_dups"]], long=[c for n, c in CASES.items() if n != "max_dups"])


@pytest.fixture(scope="module")
def together(
    shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSession]:
    shared_spark.release()
    folder = tmp_path_factory.mktemp("local-cluster")
    runs = tmp_path_factory.mktemp("runs")
    before, tempfile.tempdir = tempfile.tempdir, str(runs)
    try:
        with ClusterSession.on("local-cluster[2,1,1024]", "", folder, runs) as session:
            yield session
    finally:
        tempfile.tempdir = before


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_executors_that_share_the_folder_give_the_expected_rows(
    case: Case, together: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert together.files.is_shared
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    meter = TrafficMeter.of(together.session)
    assert meter is not None
    rows = answer(case.program(case.files), case.files, BACKLOG, together.session)
    # Spark SQL exchanges rows between its stages; files are where all executors see them.
    moved = {kind: size for kind, size in meter.bytes_by_kind().items() if kind != EXCHANGED}
    assert moved
    assert not any(moved.values()), moved
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
