"""Two workers that do not see the folders of runs, as if they were other hosts."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.certificates import make_certificate
from tests.support.spark_cluster import ClusterSession, SparkCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@contextmanager
def cluster_apart(parent: Path) -> Iterator[ClusterSession]:
    """Run a session on a standalone cluster of two workers that do not see the folders of runs.

    To them these are empty, as on other hosts. Until it ends, temporary files of this process are
    there.

    Args:
        parent: where the folders of the cluster and of runs are made.
    """
    folder = Path(tempfile.mkdtemp(prefix="apart-", dir=parent))
    runs = Path(tempfile.mkdtemp(prefix="runs-", dir=parent))
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


@contextmanager
def session_apart(parent: Path) -> Iterator[SparkSession]:
    """Run the Spark session of such a cluster; see ``cluster_apart``."""
    with cluster_apart(parent) as opened:
        yield opened.session
