"""The command on clusters: an environment that is shipped, and what does not work.

Each failure is one sentence, in bounded time.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import time
import venv
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures
from tests.support.spark_cluster import SparkCluster

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, needs_captures]

CAPTURE = CAPTURES / "ndpi-dns.pcap"
QUERY = "SELECT tb, count(*) FROM IP GROUP BY time/10 as tb"
MOST_S = 300.0

OTHER_VERSION = """\
#!{python}
import platform, runpy, sys
platform.python_version = lambda: "3.99.1"
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("failing") / "cluster") as running:
        running.add_worker()
        yield running


def replayed(
    cluster: SparkCluster, folder: Path, *settings: str, query: str = QUERY
) -> subprocess.CompletedProcess[str]:
    """Replay a capture on ``cluster``."""
    began = time.monotonic()
    flags = ["--master", cluster.url, "--spark-secret-file", str(cluster.secret_file), *settings]
    work = ["--work-dir", str(folder / "work"), "--user", "root"] if os.geteuid() == 0 else []
    ended = run("replay", "-e", query, CAPTURE, *flags, *work, "-o", "csv")
    assert time.monotonic() - began < MOST_S
    return ended


def failed(cluster: SparkCluster, folder: Path, *settings: str) -> str:
    """What a replay on ``cluster`` says when it fails."""
    ended = replayed(cluster, folder, *settings)
    assert ended.returncode == 1, ended.stderr
    (line,) = ended.stderr.splitlines()
    return line


def test_an_environment_that_is_shipped(cluster: SparkCluster, tmp_path: Path) -> None:
    """Executors unpack it, and run the Python in it."""
    venv.create(tmp_path / "env", symlinks=True)
    (packages,) = (tmp_path / "env/lib").glob("python*/site-packages")
    mark = tmp_path / "used"
    paths = [path for path in sys.path if path.startswith("/")]
    script = f"import pathlib; pathlib.Path({str(mark)!r}).touch()"
    (packages / "all.pth").write_text("\n".join([*paths, script]))
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "env", arcname=".")
    shipped = f"spark.archives={tmp_path / 'env.tar.gz'}#environment"
    ended = replayed(cluster, tmp_path, "--spark-conf", shipped)
    assert ended.returncode == 0, ended.stderr
    assert mark.exists()
    local = run("replay", "-e", QUERY, CAPTURE, "-o", "csv", "--work-dir", tmp_path / "here")
    assert ended.stdout == local.stdout


def test_a_python_that_does_not_exist(cluster: SparkCluster, tmp_path: Path) -> None:
    said = failed(cluster, tmp_path, "--spark-python", "/no/python")
    assert "executors cannot run the Python /no/python (no such file or directory)" in said


def test_an_environment_without_gscope(cluster: SparkCluster, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    said = failed(cluster, tmp_path, "--spark-python", str(bare))
    assert re.search("the Python .*/python of the executors has no gscope", said)


def test_another_version_of_python(cluster: SparkCluster, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(OTHER_VERSION.format(python=sys.executable))
    other.chmod(0o755)
    said = failed(cluster, tmp_path, "--spark-python", str(other))
    assert "have Python 3.99.1 and gscope" in said


def test_more_memory_than_any_worker_has(cluster: SparkCluster, tmp_path: Path) -> None:
    said = failed(cluster, tmp_path, "--spark-conf", "spark.executor.memory=100g")
    assert "no executor of" in said
    assert "spark.executor.memory" in said


def test_another_secret(cluster: SparkCluster, tmp_path: Path) -> None:
    other = tmp_path / "secret"
    other.write_text("another secret of 32 letters".replace(" ", "-"))
    other.chmod(0o600)
    said = failed(cluster, tmp_path, "--spark-secret-file", str(other))
    assert "does not accept this driver: its secret" in said


def test_a_master_without_authentication(tmp_path: Path) -> None:
    with SparkCluster(tmp_path / "open", has_secret=False) as cluster:
        said = failed(cluster, tmp_path)
    assert "it runs without spark.authenticate" in said


def test_executors_look_values_up(cluster: SparkCluster, tmp_path: Path) -> None:
    """The tables of lookups reach them in functions."""
    networks = tmp_path / "networks.csv"
    networks.write_text("0.0.0.0/1,low\n128.0.0.0/1,high\n192.168.0.0/16,home\n")
    looked_up = (
        "SELECT tb, network(srcIP) AS net, count(*) AS n FROM IP"
        " GROUP BY time/3600 AS tb, network(srcIP) ORDER BY net"
    )
    given = ("--lookup", f"networks={networks}")
    ended = replayed(cluster, tmp_path, *given, query=looked_up)
    assert ended.returncode == 0, ended.stderr
    work = ["--work-dir", str(tmp_path / "here")]
    work += ["--user", "root"] if os.geteuid() == 0 else []
    local = run("replay", "-e", looked_up, *given, CAPTURE, "-o", "csv", *work)
    assert "home" in local.stdout
    assert ended.stdout == local.stdout
