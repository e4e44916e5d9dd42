"""One Spark session for all tests of a process; PySpark allows no second one beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from gscope.engine.spark.jvm import class_data_archive
from gscope.engine.spark.jvm.class_data_archive import (
    BUILD_TIMEOUT_S,
    DISABLED_BY,
    archive_path,
    can_archive,
    with_archive,
)
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import (
    INTERPRETED,
    SessionSettings,
    start_session,
    stop_session,
)
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession


def archived(settings: JvmSettings) -> JvmSettings:
    """Return ``settings`` with the class-data archive of this user, built now if it is missing.

    The jobs of a test run start often enough for it to pay at once. Those that root starts run as
    another user, and build an archive that root does not use.
    """
    if not os.environ.get(DISABLED_BY) and can_archive(settings):
        with suppress(EngineError):  # this user may have no cache
            if not archive_path(settings).exists():
                command = [sys.executable, "-P", "-m", class_data_archive.__name__]
                subprocess.run(command, check=False, capture_output=True, timeout=BUILD_TIMEOUT_S)
    return with_archive(settings)


@contextmanager
def session_here(folder: Path) -> Iterator[SparkSession]:
    """Run a session in a Java of its own, whose files are in ``folder``, and end both."""
    jvm = launch_jvm(archived(JvmSettings(find_java(), heap_bytes=2 << 30)), folder)
    session = start_session(jvm, SessionSettings(cores=2))
    try:
        yield session
    finally:
        stop_session(session, jvm)


class SharedSpark:
    """Starts on first use. A test that needs the process without a session calls ``release``.

    Args:
        folder: holds the files of the session.
        opened: runs a session with its files in that folder.
    """

    def __init__(
        self,
        folder: Path,
        opened: Callable[[Path], AbstractContextManager[SparkSession]] = session_here,
    ) -> None:
        self._folder = folder
        self._opened = opened
        self._session: SparkSession | None = None
        self._stack = ExitStack()

    def session(self) -> SparkSession:
        """The session, started if need be."""
        if self._session is None:
            self._session = self._stack.enter_context(self._opened(self._folder))
        return self._session

    def release(self) -> None:
        """End the session and its JVM; the next use starts another."""
        self._session = None
        self._stack.close()


@contextmanager
def plans_interpreted(session: SparkSession) -> Iterator[None]:
    """Let the session interpret plans, as for a small replay, and not compile them to Java code."""
    for key, value in INTERPRETED.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in INTERPRETED:
            session.conf.unset(key)
