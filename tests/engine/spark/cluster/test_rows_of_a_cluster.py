"""Golden cases on a standalone cluster of two workers give the rows of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import Case, all_cases
from tests.golden.driver import BACKLOG, COMPILED, answer
from tests.support.long_form import cases

from gscope.engine.spark import evaluation
from gscope.engine.watermarks import release_size

if TYPE_CHECKING:
    from tests.support.spark_cluster import ClusterSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CASES = {case.name: case for case in all_cases()}

SHORT = ("full_flow", "max_dups", "merged_selection", "jitter", "snort_windows")
"""A join, an aggregate of aggregates, a merge, a fold, and a sliding window."""

CHOSEN = cases(
    [CASES[name] for name in SHORT],
    long=[case for name, case in CASES.items() if name not in SHORT],
)


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize(
    "case",
    cases([CASES["full_flow"]], long=[c for n, c in CASES.items() if n != "full_flow"]),
    ids=named,
)
def test_executors_give_the_expected_rows(case: Case, on_cluster: ClusterSession) -> None:
    rows = answer(case.program(case.files), case.files, COMPILED, on_cluster.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.parametrize("case", CHOSEN, ids=named)
def test_large_steps_and_crashes_give_the_expected_rows(
    case: Case, on_cluster: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that a small step leaves to the driver runs on executors."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    rows = answer(case.program(case.files), case.files, BACKLOG, on_cluster.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
