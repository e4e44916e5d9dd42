"""The Spark of a job: its Java and its session, started at once or when a step first needs them."""

from __future__ import annotations

import threading
import time
import traceback
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Self

from gscope.engine.settings import JobSecrets
from gscope.engine.spark.cluster.master import Master
from gscope.engine.spark.jvm.class_data_archive import build_later, with_archive
from gscope.engine.spark.jvm.ended_java import how_java_ended
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.job_pulse import JobPulse
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.jvm_watchdog import JvmWatchdog, report_failure
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import JOB_FOLDER
from gscope.queries.streams.process_events import JavaStarted, SparkReady

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pyspark.sql import SparkSession

    from gscope.engine.monitoring.step_progress import StepWatch
    from gscope.engine.settings import JobSettings
    from gscope.engine.spark.cluster.executors import ExecutorWatch
    from gscope.engine.spark.cluster.settings import ClusterSettings
    from gscope.engine.spark.jvm.gateway import JvmProcess
    from gscope.engine.spark.jvm.session import SessionSettings
    from gscope.engine.spark.tasks.here import TasksHere
    from gscope.engine.storage.transfer.run_files import RunFiles
    from gscope.engine.termination import Termination
    from gscope.queries.streams.event_codec import EventWriter


class SparkStart:
    """A context manager that starts Spark in a thread, once, and ends it; see ``Spark``.

    A Spark that cannot start ends the process, whether or not a step waits for it.

    Args:
        run_dir: the folder of the run.
        settings: the settings of the job.
        events: the events for the supervisor.
        termination: ends Java before the process ends.
        watch: the progress of the current step, which the watchdog reports.
        here: the tasks that run in this process.

    Attributes:
        phases: when Java was launched and when the session was open, in seconds since the
            construction.
    """

    def __init__(
        self,
        run_dir: Path,
        settings: JobSettings,
        events: EventWriter,
        termination: Termination,
        watch: StepWatch,
        here: TasksHere,
    ) -> None:
        self.phases: dict[str, float] = {}
        self._began = time.monotonic()
        self._run_dir = run_dir
        self._settings = settings
        self._events = events
        self._termination = termination
        self._here = here
        self._master = Master.parse(settings.master)
        self._starting = threading.Lock()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._opened = threading.Event()
        self._is_closing = False
        self._waiting = 0
        self._jvm: JvmProcess | None = None
        self._session: SparkSession | None = None
        self._files: RunFiles | None = None
        self._watch = watch
        self._pulse = JobPulse(events, watch, lambda: here.ended, lambda: self._waiting > 0)
        self._watchdog: JvmWatchdog | None = None

    def __enter__(self) -> Self:
        self._pulse.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pulse.stop()
        try:
            if self._watchdog is not None:
                self._watchdog.__exit__(kind, error, trace)
        finally:
            self._close()

    @property
    def is_ready(self) -> bool:
        """See ``Spark``."""
        return self._opened.is_set()

    @property
    def cores(self) -> int:
        """See ``Spark``."""
        session = self._session
        return self._here.cores if session is None else session.sparkContext.defaultParallelism

    @property
    def java_pid(self) -> int | None:
        """The process id of Java; None without one."""
        return None if self._jvm is None else self._jvm.pid

    @property
    def session(self) -> SparkSession:
        """See ``Spark``."""
        if not self._opened.is_set():
            self.start()
            with self._lock:
                self._waiting += 1
            try:
                self._opened.wait()
            finally:
                with self._lock:
                    self._waiting -= 1
        assert self._session is not None
        return self._session

    def start(self) -> None:
        """Start Java, and a thread that opens the session, unless that was done; for any thread.

        Raises:
            EngineError: Java cannot be started.
        """
        with self._starting:
            if self._thread is None:
                jvm = self._launch(self._jvm_settings)
                self._phase("jvm_launched")
                self._events.send(JavaStarted(jvm.pid))
                self._thread = threading.Thread(
                    target=self._open_or_leave, args=(jvm,), name="spark", daemon=True
                )
                self._thread.start()

    def build_archive_later(self) -> None:
        """Have a process of low priority make the archive of classes that later starts use."""
        with suppress(GscopeError):  # only a step that needs Java reports that there is none
            if not self._jvm_settings.has_managers:
                build_later(self._jvm_settings)

    @cached_property
    def _jvm_settings(self) -> JvmSettings:
        settings, master = self._settings, self._master
        return with_archive(
            JvmSettings(
                find_java(),
                heap_bytes=settings.heap_bytes,
                only_c1=not settings.expects_much,
                master=master,
                # Further configuration may name jars of the user.
                verifies=not master.is_local or bool(settings.spark_conf),
            )
        )

    def _open_or_leave(self, jvm: JvmProcess) -> None:
        """Open the session, or end the process."""
        try:
            self._open(jvm)
        except Exception as error:
            if self._is_closing:
                return
            failure = error if isinstance(error, GscopeError) else how_java_ended(jvm)
            jvm.stop()
            if failure is not None:
                report_failure(self._events, failure)
            else:
                traceback.print_exc()
            self._termination.leave(1)

    def _open(self, jvm: JvmProcess) -> None:
        # imported only now, while the JVM starts
        from gscope.engine.spark.jvm.session import start_session

        chosen = self._session_settings()
        session = start_session(jvm, chosen)
        executors = None
        if chosen.cluster is not None:
            executors = self._prepare_cluster(session, chosen.cluster, jvm)
        self._phase("session")
        # Another process if the first could not use its class-data archive.
        self._events.send(JavaStarted(jvm.pid))
        with self._termination.opening():
            if self._is_closing:
                return
            leave = self._termination.leave
            self._watchdog = JvmWatchdog(jvm, session, self._events, self._watch, leave, executors)
            self._watchdog.__enter__()
            self._pulse.stop()
            self._session = session
        self._opened.set()
        self._events.send(SparkReady(self.phases["session"]))

    def _launch(self, settings: JvmSettings) -> JvmProcess:
        """Start a Java that does not outlive this process, whenever that is terminated."""
        with self._termination.opening():
            jvm = launch_jvm(settings, self._run_dir / JOB_FOLDER)
            self._termination.close_first(jvm.stop)
            self._jvm = jvm
        return jvm

    def _session_settings(self) -> SessionSettings:
        from gscope.engine.spark.jvm.session import SessionSettings

        settings, master = self._settings, self._master
        cluster = None
        if not master.is_local:
            from gscope.engine.spark.cluster.settings import ClusterSettings

            cluster = ClusterSettings(
                master,
                settings.driver_host,
                settings.executor_python,
                JobSecrets.read(self._run_dir).spark,
                settings.spark_conf,
            )
        return SessionSettings(
            cores=settings.cores,
            interprets=settings.expects_little,
            master=master.text if master.text != "local" else None,
            extra={} if cluster is not None else settings.spark_conf,
            cluster=cluster,
        )

    def _prepare_cluster(
        self, session: SparkSession, cluster: ClusterSettings, jvm: JvmProcess
    ) -> ExecutorWatch:
        """Wait for executors, check them, and let them reach the files of the run."""
        from gscope.engine.spark.cluster.executors import ExecutorWatch, prepare_executors
        from gscope.engine.spark.jvm.ended_java import explained_end
        from gscope.engine.storage.transfer.run_files import prepare_files

        with explained_end(cluster.master, jvm):
            prepare_executors(session, cluster)
        self._files = prepare_files(
            session,
            self._run_dir,
            self._run_dir / JOB_FOLDER,
            cluster.chosen_driver_host(),
            self._settings.file_port,
            JobSecrets.read(self._run_dir).tls,
        )
        return ExecutorWatch(session)

    def _close(self) -> None:
        """End the session and Java, also while they start."""
        with self._termination.opening():
            self._is_closing = True
        if self._session is not None and self._jvm is not None:
            from gscope.engine.spark.jvm.session import stop_session

            stop_session(self._session, self._jvm)
        elif self._jvm is not None:
            self._jvm.stop()
        if self._files is not None:
            self._files.stop()

    def _phase(self, name: str) -> None:
        self.phases[name] = time.monotonic() - self._began
