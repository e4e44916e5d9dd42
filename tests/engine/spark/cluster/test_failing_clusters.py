"""Runs on clusters that do not work end with one sentence, in bounded time."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures
from tests.support.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, needs_captures]

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


def failed(cluster: SparkCluster, folder: Path, *settings: str) -> str:
    """What a replay on ``cluster`` says when it fails."""
    began = time.monotonic()
    flags = ["--master", cluster.url, "--spark-secret-file", str(cluster.secret_file), *settings]
    work = ["--work-dir", str(folder / "work"), "--user", "root"] if os.geteuid() == 0 else []
    ended = run("replay", "-e", QUERY, CAPTURES / "ndpi-dns.pcap", *flags, *work, "-o", "csv")
    assert ended.returncode == 1, ended.stderr
    assert time.monotonic() - began < MOST_S
    (line,) = ended.stderr.splitlines()
    return line


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
