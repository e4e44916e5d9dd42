"""What all tests share.

Hypothesis profiles, an order, limits on time and on tests that CI may skip.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from benchmarks.installed import compile_modules
from hypothesis import HealthCheck, settings
from tests.support.deadline import TEARDOWN_S, deadline
from tests.support.divided_steps import divided_steps
from tests.support.home_network import HomeNetwork
from tests.support.requirements import lacking_for_cluster
from tests.support.shared_spark import SharedSpark, session_here
from tests.support.temporary_place import TemporaryPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from _pytest.terminal import TerminalReporter
    from pyspark.sql import SparkSession

MAX_SKIPS_IN_CI = 0
"""Raise it only together with the reason why a test cannot run there."""

_HOME = HomeNetwork()
_PLACE = pytest.StashKey[TemporaryPlace]()

# Machines are shared and noisy: a slow example is not a finding. The default run is reproducible;
# ``--hypothesis-profile explore`` draws other examples each time.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", _COMMON)
settings.register_profile("reproducible", _COMMON, derandomize=True)
settings.load_profile("reproducible")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kill-rounds", type=int, default=4, help="how often faults/test_kills.py kills"
    )
    parser.addoption(
        "--executor-kills",
        type=int,
        default=1,
        help="how often engine/spark/cluster/test_executors_apart.py kills executors, and workers",
    )
    parser.addoption(
        "--cluster",
        action="store_true",
        help="golden/ and differential/ run steps on a standalone Spark cluster of two workers that"
        " do not see the folders of runs (needs root)",
    )
    parser.addoption(
        "--partitions",
        type=int,
        default=1,
        help="into how many partitions golden/ and differential/ divide the rows of every step",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_PLACE] = TemporaryPlace()
    _keep_byte_code(is_worker=hasattr(config, "workerinput"))
    # A shell starts what is in its background with SIGINT ignored: commands would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--cluster") and (missing := lacking_for_cluster()):
        message = f"--cluster needs {', '.join(missing)}"
        raise pytest.UsageError(message)
    if config.getoption("--partitions") < 1:
        message = "--partitions must be at least 1"
        raise pytest.UsageError(message)


def _keep_byte_code(*, is_worker: bool) -> None:
    """Compile the modules of gscope and of the tests once.

    They are not compiled in each of the processes that use them. Without byte code, each ``gscope``
    command that a test starts spends a third of its CPU time on compiling, and each test process
    half of its collection.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not is_worker:
        compile_modules()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_PLACE].close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules with sessions of their own first, then those that share one, then slow ones.

    Processes begin with an equal part of the items each: only the first starts a session as long as
    the others have something else to do, and take a half of what another has left whenever they
    have nothing.
    A module that ends the shared session comes before there is one, and slow tests come before
    others, so that what is shared at the end is short.
    """
    ranks: dict[Path, int] = {}
    for item in items:
        ranks[item.path] = min(ranks.get(item.path, len(_RANKS)), _rank(item))
    items.sort(key=lambda item: ranks[item.path])


_RANKS = ("own session", "slow, shared session", "shared session", "slow", "others")


def _rank(item: pytest.Item) -> int:
    is_slow = item.get_closest_marker("slow") is not None
    if item.get_closest_marker("own_session"):
        kind = "own session"
    elif "shared_spark" in getattr(item, "fixturenames", ()):
        kind = "slow, shared session" if is_slow else "shared session"
    else:
        kind = "slow" if is_slow else "others"
    return _RANKS.index(kind)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None]:
    with deadline():
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    # A long search takes as long as it takes.
    with nullcontext() if item.get_closest_marker("bench") else deadline():
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None]:
    with deadline(TEARDOWN_S):
        yield
    _HOME.ensure_here()


def pytest_enter_pdb() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)  # debugging takes its time


@pytest.fixture
def temporary_place(pytestconfig: pytest.Config) -> TemporaryPlace:
    """Where this process, and what it starts, keep temporary files and the default work dir."""
    return pytestconfig.stash[_PLACE]


@pytest.fixture
def kill_rounds(request: pytest.FixtureRequest) -> int:
    """How often processes of a live run are killed."""
    return int(request.config.getoption("--kill-rounds"))


@pytest.fixture
def executor_kills(request: pytest.FixtureRequest) -> int:
    """How often executors of a cluster are killed, and how often workers."""
    return int(request.config.getoption("--executor-kills"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter: TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return
    # Interfaces of a test's own need rights that not every machine gives.
    reports = reporter.stats.get("skipped", [])
    skipped = sum("live" not in getattr(report, "keywords", ()) for report in reports)
    if skipped > MAX_SKIPS_IN_CI and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{skipped} tests were skipped, at most {MAX_SKIPS_IN_CI} may be")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def partitions(request: pytest.FixtureRequest) -> Iterator[int]:
    """Into how many partitions rows are divided; if it is not one, those of every step are."""
    count = int(request.config.getoption("--partitions"))
    with divided_steps() if count > 1 else nullcontext():
        yield count


@pytest.fixture(scope="session")
def shared_spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedSpark]:
    """The holder of the session that tests share."""
    opened: Callable[[Path], AbstractContextManager[SparkSession]] = session_here
    if request.config.getoption("--cluster"):
        from tests.support.spark_apart import session_apart as opened
    shared = SharedSpark(tmp_path_factory.mktemp("spark"), opened)
    yield shared
    shared.release()


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    """The session that tests share."""
    return shared_spark.session()
