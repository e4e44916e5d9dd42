"""The executors of a cluster: waited for at the start, and compared with the driver.

Spark itself waits for executors without limit, and reports what is wrong with their Python in the
traceback of a task.
"""

from __future__ import annotations

import platform
import re
import socket
import sys
import time
from typing import TYPE_CHECKING

from gscope import __version__
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from gscope.engine.spark.cluster.settings import ClusterSettings

START_S = 120.0
"""Seconds within which the first executor must be there."""

_LOOK_S = 0.2

_TASKS_OF_A_CORE = 2
"""Tasks of the check for each core, so that few executors remain unchecked."""

_DRIVER = "driver"

_WIDTH = "spark.sql.shuffle.partitions"
_LEAST_WIDTH = 2

_REMEDY = (
    "install the same versions on all hosts and name the interpreter with spark.python"
    " (--spark-python), or ship an environment with spark.archives (docs/cluster.md)"
)

_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)".*?: (?:error=\d+, )?(.+)')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\] (.+)")


@dataclass(frozen=True, slots=True)
class ExecutorPython:
    """The Python of one executor.

    Attributes:
        host: the name of its host.
        python: the version of Python.
        gscope: the version of gscope.
    """

    host: str
    python: str
    gscope: str


def prepare_executors(session: SparkSession, cluster: ClusterSettings) -> None:
    """Wait for executors, check their Python, and make exchanges as wide as the cluster.

    Raises:
        EngineError: there are none, or they cannot run the job's tasks.
    """
    cores = await_executors(session)
    check_executors(session, cluster, cores)
    if _WIDTH not in cluster.conf:
        session.conf.set(_WIDTH, str(max(_LEAST_WIDTH, session.sparkContext.defaultParallelism)))


def await_executors(session: SparkSession, timeout_s: float = START_S) -> int:
    """Wait for the first executor; return the number of cores of all executors so far.

    Raises:
        EngineError: there is none within ``timeout_s``.
    """
    context = session.sparkContext
    until = time.monotonic() + timeout_s
    while not executors_of(session):
        if time.monotonic() > until:
            message = (
                f"no executor of {context.master} started within {timeout_s:g} s: check that the"
                " cluster has workers, that one of them has the cores and the memory that"
                " spark.executor.cores and spark.executor.memory ask for, and that executors can"
                f" connect to {context.getConf().get('spark.driver.host')}"
                " (spark.driver_host, --spark-driver-host)"
            )
            raise EngineError(message)
        time.sleep(_LOOK_S)
    return int(context.defaultParallelism)


class ExecutorWatch:
    """Measures for how long a cluster has had no executor: Spark waits for one without limit.

    Args:
        session: the session.
        limit_s: the seconds after which the job gives up.
        monotonic: the clock, in seconds.
    """

    def __init__(
        self,
        session: SparkSession,
        limit_s: float = START_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._limit_s = limit_s
        self._monotonic = monotonic
        self._alone_since_s: float | None = None

    def failure(self) -> str | None:
        """Look at the executors; return why the job cannot go on, None while it can."""
        if executors_of(self._session):
            self._alone_since_s = None
            return None
        now_s = self._monotonic()
        if self._alone_since_s is None:
            self._alone_since_s = now_s
        if now_s - self._alone_since_s < self._limit_s:
            return None
        master = self._session.sparkContext.master
        return f"{master} has had no executor for {self._limit_s:g} s"


def executors_of(session: SparkSession) -> list[str]:
    """Return the names of the executors that are alive, without the driver."""
    summaries = session.sparkContext._jsc.sc().statusStore().executorList(True)
    names = (str(summaries.apply(number).id()) for number in range(summaries.size()))
    return [name for name in names if name != _DRIVER]


def check_executors(session: SparkSession, cluster: ClusterSettings, cores: int) -> None:
    """Compare the Python of the executors with that of the driver, by tasks on all cores.

    Raises:
        EngineError: an executor has no Python, no gscope, or other versions.
    """
    tasks = _TASKS_OF_A_CORE * max(1, cores)
    try:
        found = session.sparkContext.parallelize(range(tasks), tasks).map(_look).collect()
    except Exception as error:
        raise EngineError(_explained(str(error), cluster)) from error
    for each in sorted(set(found), key=lambda each: each.host):
        if (each.python, each.gscope) != (platform.python_version(), __version__):
            message = (
                f"the executors on {each.host} have Python {each.python} and gscope {each.gscope},"
                f" expected Python {platform.python_version()} and gscope {__version__} as here;"
                f" {_REMEDY}"
            )
            raise EngineError(message)


def _look(_: int) -> ExecutorPython:
    return ExecutorPython(socket.gethostname(), platform.python_version(), __version__)


def _explained(trace: str, cluster: ClusterSettings) -> str:
    """Return one sentence for what Spark reports of a task that failed."""
    python = cluster.executor_python
    if found := _NO_PROGRAM.search(trace):
        return f"executors cannot run the Python {found[1]} ({found[2].lower()}); {_REMEDY}"
    if found := _NO_MODULE.search(trace):
        name = found[1].partition(".")[0]
        return f"the Python {python} of the executors has no {name}; {_REMEDY}"
    if found := _OTHER_PYTHON.search(trace):
        here = ".".join(map(str, sys.version_info[:2]))
        return f"the Python {python} of the executors is not Python {here}, as here; {_REMEDY}"
    first = next((line for line in trace.splitlines() if line.strip()), "no reason given")
    return f"the executors of {cluster.master} cannot run Python tasks: {first.strip()}"
