"""What processes settle before they load anything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT = (
    "import gc, os; from gscope.queries.run_folder.startup import settle; settle(); import numpy;"
    "print(len(os.listdir('/proc/self/task')), gc.get_threshold()[0], os.environ['OPENBLAS_NUM_THREADS'])"
)


@pytest.mark.parametrize(("given", "kept"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_numpy_starts_no_threads_unless_configured(given: dict[str, str], kept: str) -> None:
    environ = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"} | given
    said = subprocess.run(
        [sys.executable, "-c", COUNT], env=environ, capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(said[1]) >= 10_000
    assert said[2] == kept
    if not given:
        assert said[0] == "1"


def test_commands_do_not_load_numpy_before_they_settle() -> None:
    check = (
        "import sys, gscope.cli.main, gscope.capture.daemon, gscope.engine.job;"
        "print('numpy' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == "False"
