"""Clusters for all tests of this folder, one at a time, and a session on each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.spark_apart import cluster_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shared_spark import SharedSpark
    from tests.support.spark_cluster import ClusterSession


@pytest.fixture(scope="module")
def apart(
    shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSession]:
    """A session on a standalone cluster of two workers that do not see the folders of runs."""
    shared_spark.release()
    with cluster_apart(tmp_path_factory.mktemp("apart")) as session:
        yield session
