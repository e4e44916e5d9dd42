"""Clusters for all tests of this folder, one at a time, and a session on each."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.support.certificates import make_certificate
from tests.support.spark_cluster import ClusterSession, SparkCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shared_spark import SharedSpark


@pytest.fixture(scope="module")
def apart(
    shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSession]:
    """A session on a standalone cluster of two workers that do not see the folders of runs.

    To them these are empty, as on other hosts. Temporary files of tests are there.
    """
    shared_spark.release()
    folder = tmp_path_factory.mktemp("apart")
    runs = tmp_path_factory.mktemp("runs")
    made = make_certificate(folder, "driver")
    tls = made.certificate.read_text(), made.key.read_text()
    with ExitStack() as stack:
        cluster = stack.enter_context(SparkCluster(folder / "cluster"))
        cluster.add_workers(2, hidden=[runs])
        session = stack.enter_context(ClusterSession.open(cluster, folder, runs, tls))
        assert not session.files.is_shared, "the workers see the folder of runs"
        stack.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(runs)
        yield session
