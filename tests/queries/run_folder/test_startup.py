"""What processes settle before they load anything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT = (
    "import gc, os; from gscope.queries.run_folder.startup import settle; settle(); import numpy;"
    "print(len(os.listdir('/proc/self/task')), gc.get_threshold()[0],"
    " os.environ['OPENBLAS_NUM_THREADS'])"
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


ARROW = """
import sys
from gscope.queries.run_folder.startup import settle
installed, asked = {installed}, []
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        asked.append(name)
        return installed if name == "dateutil" else None
sys.meta_path[:] = [Finder, *(each for each in sys.meta_path if not installed)]
settle()
if not installed:
    import pyarrow as pa, pyarrow.compute as pc
    del asked[:]
    assert pc.add(pa.array([1, 2]), 1).to_pylist() == [2, 3]
print(asked.count("dateutil"), "dateutil" in sys.modules)
"""


@pytest.mark.parametrize(("installed", "said"), [(False, "0 True"), (True, "1 False")])
def test_arrow_does_not_look_for_what_is_not_installed(installed: bool, said: str) -> None:
    """It would look through all folders for each value of Python that it gets without a type."""
    ran = subprocess.run(
        [sys.executable, "-c", ARROW.format(installed=installed)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == said
