"""What is loaded before Java is started, which takes longer than all the rest of a small replay."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

UNTIL = """
import sys

class Reached(BaseException):
    pass

def reached(*arguments, **options):
    raise Reached

try:
    {start}
except Reached:
    print(*(name for name in sys.modules))
"""

SUPERVISOR = """
    from gscope.cli.supervision.process_set import RunProcesses
    RunProcesses._supervise = reached
    from gscope.cli.main import run
    run(["replay", sys.argv[1], "-e", "SELECT time FROM IP", "--work-dir", sys.argv[2]])
"""

JOB = """
    from pathlib import Path
    from gscope.engine.settings import JobSettings
    JobSettings().write(Path(sys.argv[2]))
    import gscope.cli.supervision.unprivileged
    from gscope.engine import job
    from gscope.engine.spark import spark_start
    spark_start.launch_jvm = reached
    from gscope.queries.streams.event_codec import EventWriter
    from gscope.engine.termination import Termination
    job.Job(Path(sys.argv[2]), EventWriter(sys.stdout), Termination()).run()
"""


def loaded(start: str, folder: Path) -> set[str]:
    """Return the modules that a process has loaded when it starts another."""
    work_dir = folder / "work"
    work_dir.mkdir(mode=0o700)
    capture = folder / "a.pcap"
    capture.touch()
    done = subprocess.run(
        [sys.executable, "-c", UNTIL.format(start=start), capture, work_dir],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_the_supervisor_starts_the_job_before_it_loads_the_compiler(tmp_path: Path) -> None:
    names = loaded(SUPERVISOR, tmp_path)
    assert "gscope.cli.supervision.process_set" in names
    rooms = ("gscope.queries.gsql", "gscope.queries.plan", "gscope.queries.catalog")
    assert [name for name in names if name.startswith((*rooms, "gscope.queries.analysis"))] == []
    assert {"lark", "pyarrow", "numpy", "numba"} & names == set()


def test_the_job_starts_java_before_it_loads_what_steps_need(tmp_path: Path) -> None:
    names = loaded(JOB, tmp_path)
    assert "gscope.engine.spark.jvm.gateway" in names
    late = {"storage.commits", "log_client.inbox"}
    late |= {f"steps.{name}" for name in ("batch_leases", "disk_budget", "steps")}
    assert all(find_spec(f"gscope.engine.{name}") for name in late)
    assert {f"gscope.engine.{name}" for name in late} & names == set()
    assert {"gscope.queries.streams.messages", "gscope.capture.settings"} & names == set()
    assert {"argparse", "pyarrow", "numpy", "pyspark", "py4j"} & names == set()
