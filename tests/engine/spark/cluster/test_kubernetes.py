"""Runs on Kubernetes: what is posted to its API, what its pods answer, and what fails.

The API and its pods are those of ``tests/support/kubernetes_api.py``; the client, the scheduler and
the executors are Spark's own.
"""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.golden.cases import all_cases
from tests.support.certificates import make_certificate
from tests.support.executor_kills import answers_under_kills
from tests.support.gscope_command import run
from tests.support.kubernetes_api import KubernetesApi
from tests.support.requirements import CAPTURES, ROOT, needs, needs_captures, needs_root
from tests.support.spark_cluster import ClusterSession

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.own_session,
    pytest.mark.slow,
    pytest.mark.long,
    needs_captures,
    needs_root,
    needs("unshare", "openssl"),
]

CAPTURE = CAPTURES / "ndpi-dns.pcap"
QUERY = "SELECT tb, count(*) FROM IP GROUP BY time/10 as tb"
FULL_FLOW = next(case for case in all_cases() if case.name == "full_flow")
ROLE = re.search(
    r"```yaml\n(apiVersion: rbac.*?)```", (ROOT / "docs/cluster.md").read_text(), re.DOTALL
)
POD = {
    "spark.kubernetes.container.image": "registry.example/gscope:test",
    "spark.kubernetes.namespace": "monitoring",
}
MOST_S = 300.0


@contextmanager
def api_in(folder: Path, hidden: Path) -> Iterator[KubernetesApi]:
    """An API whose pods find the Python of the tests, and not the folder ``hidden``."""
    hidden.mkdir()
    python = folder / "bin"
    python.mkdir()
    (python / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (python / "python3").chmod(0o755)
    assert ROLE is not None
    role = yaml.safe_load(ROLE[1])
    with KubernetesApi(folder / "api", python, role, hidden=[hidden]) as api:
        yield api


def replayed(
    api: KubernetesApi, folder: Path, *, token: str | None = None, **conf: str
) -> subprocess.CompletedProcess[str]:
    """Replay a capture on the pods of ``api``; ``folder`` holds the run."""
    kubeconfig = api.kubeconfig(token)
    made = make_certificate(folder, "driver")
    settings = {**POD, **{f"spark.{name.replace('_', '.')}": text for name, text in conf.items()}}
    flags = [f"--spark-conf={name}={text}" for name, text in settings.items()]
    flags += ["--tls-certificate", str(made.certificate), "--tls-key", str(made.key)]
    began = time.monotonic()
    master = f"k8s://https://127.0.0.1:{api.port}"
    arguments: list[str | Path] = ["replay", "-e", QUERY, CAPTURE, "--master", master, *flags]
    arguments += ["--work-dir", folder / "runs", "--user", "root", "-o", "csv"]
    ended = run(
        *arguments,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    assert time.monotonic() - began < MOST_S
    return ended


@pytest.fixture
def api(tmp_path: Path) -> Iterator[KubernetesApi]:
    with api_in(tmp_path, tmp_path / "runs") as running:
        yield running


def test_pods_that_share_no_folder_with_the_run_answer_it(
    api: KubernetesApi, tmp_path: Path
) -> None:
    ended = replayed(api, tmp_path, executor_instances="2")
    assert ended.returncode == 0, ended.stderr
    local = run("replay", "-e", QUERY, CAPTURE, "-o", "csv", "--work-dir", tmp_path / "here")
    assert ended.stdout == local.stdout
    assert re.search(r"executors fetched [1-9][0-9,]* bytes of segments", ended.stderr)
    assert not api.refused, "every manifest follows the schema of its kind"
    pods = [each for each in api.posted if each["kind"] == "Pod"]
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert container["image"] == POD["spark.kubernetes.container.image"]
        values = {each["name"]: each.get("value") for each in container["env"]}
        assert values["PYTHONSAFEPATH"] == "1"
        assert pod["metadata"]["labels"]["spark-app-name"] == "gscope"
    assert not api.select("monitoring", "pods", "", None), "pods are gone with the run"
    assert all(process.poll() is not None for process in api.pods.values())


def test_nothing_is_lost_or_answered_twice_when_pods_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor_kills: int
) -> None:
    runs = tmp_path / "runs"
    with api_in(tmp_path, runs) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig()))
        monkeypatch.setattr("tempfile.tempdir", str(runs))
        made = make_certificate(tmp_path, "driver")
        tls = made.certificate.read_text(), made.key.read_text()
        url = f"k8s://https://127.0.0.1:{api.port}"
        # The kills may all hit the same task, and Spark fails a stage at the fourth.
        limits = ("spark.executor.maxNumFailures", "spark.task.maxFailures")
        most = dict.fromkeys(limits, str(executor_kills + 1))
        conf = {**POD, **most, "spark.executor.instances": "2"}
        with ClusterSession.on(url, "", tmp_path, runs, tls, conf=conf) as opened:
            assert not opened.files.is_shared
            for rows in answers_under_kills(
                FULL_FLOW, opened.session, api.kill_pod, executor_kills, monkeypatch
            ):
                found = {query: sorted(each) for query, each in rows.items()}
                assert found == FULL_FLOW.expected()
    assert not api.refused
    assert len(api.pods) >= 2 + executor_kills


def test_an_api_that_does_not_know_the_user(api: KubernetesApi, tmp_path: Path) -> None:
    ended = replayed(api, tmp_path, token="another")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "401" in line, line
    assert not api.pods


def test_pods_that_end_at_once(api: KubernetesApi, tmp_path: Path) -> None:
    api.main_class = "no.such.Class"
    ended = replayed(api, tmp_path)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "failed more than 3 times before one was ready" in line
    assert "spark.kubernetes.executor.deleteOnTermination=false" in line
    assert len(api.pods) < 10, "the job is not restarted"
