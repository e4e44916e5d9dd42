"""One cluster for all tests of this folder, and one session on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.spark_cluster import ClusterSession, SparkCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shared_spark import SharedSpark


@pytest.fixture(scope="session")
def on_cluster(
    shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSession]:
    """A session on a standalone cluster of two workers."""
    shared_spark.release()
    folder = tmp_path_factory.mktemp("cluster")
    with SparkCluster(folder / "cluster") as cluster:
        cluster.add_workers(2)
        with ClusterSession.open(cluster, folder) as session:
            yield session
