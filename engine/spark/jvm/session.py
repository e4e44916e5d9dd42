"""The one Spark session of an HFTA job, opened by PySpark in the gateway JVM."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.engine.spark.jvm.cause import cause_in
from gscope.engine.spark.jvm.class_path import spark_home
from gscope.engine.spark.jvm.ended_java import how_java_ended
from gscope.engine.spark.jvm.jvm_settings import has_name, user_name
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from gscope.engine.spark.cluster.settings import ClusterSettings
    from gscope.engine.spark.jvm.gateway import JvmProcess

_FIXED_CONFIGURATION = {
    "spark.app.name": "gscope",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
    "spark.submit.deployMode": "client",
    # The job plans a step once; planning again at run time costs more than it gains.
    "spark.sql.adaptive.enabled": "false",
    # Spark 4.3 would evaluate all branches of a union of coalesced inputs in one task. Earlier
    # versions ignore the setting.
    "spark.sql.unionOutputPartitioning": "false",
    "spark.sql.ansi.enabled": "false",
    # Names of GSQL are case-sensitive.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # With the default of 100, each step compiles the stages of some 50 standing queries again.
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.python.daemon.module": "gscope.engine.spark.jvm.worker_daemon",
    # The job decides the order and grouping in which segments are scanned.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}


_log = logging.getLogger(__name__)

_MANAGED = ("k8s://", "yarn")
"""How the masters begin that keep an application until its driver ends it."""

END_S = 15.0
"""Seconds that such a master has to confirm the end."""

_NOT_ACCEPTED = "All masters are unresponsive"
"""What Spark logs after a minute of attempts."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings that differ between sessions.

    Attributes:
        cores: the number of threads that run tasks; None for all cores of the machine, or those
            that the cluster gives.
        master: ``local`` with the number of threads in brackets; None to follow ``cores``.
        shuffle_partitions: the number of partitions after an exchange.
        interprets: whether plans are interpreted instead of compiled to Java code, which is faster
            for a few steps of some ten thousand tuples.
        extra: further Spark configuration, which overrides everything else.
        cluster: the cluster on which tasks run; None for the threads of this Java.
    """

    cores: int | None = None
    shuffle_partitions: int = 2
    interprets: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    cluster: ClusterSettings | None = None

    @property
    def python(self) -> str:
        """The interpreter of Python workers, as a path on their hosts."""
        return sys.executable if self.cluster is None else self.cluster.executor_python

    def configuration(self, jvm: JvmProcess) -> dict[str, str]:
        """Return the whole Spark configuration of a session in ``jvm``."""
        return {
            **_FIXED_CONFIGURATION,
            "spark.master": self.master or f"local[{'*' if self.cores is None else self.cores}]",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.local.dir": str(jvm.directory / "local"),
            "spark.sql.warehouse.dir": (jvm.directory / "warehouse").as_uri(),
            **(INTERPRETED if self.interprets else {}),
            **self._of_cluster(),
            **self.extra,
        }

    def _of_cluster(self) -> dict[str, str]:
        if self.cluster is None:
            return {}
        cores = {} if self.cores is None else {"spark.cores.max": str(self.cores)}
        return cores | self.cluster.configuration(spark_home())


def start_session(jvm: JvmProcess, settings: SessionSettings | None = None) -> SparkSession:
    """Open the session of this process in ``jvm``, once the JVM is ready.

    Python workers on this host use the interpreter of this process. The handler of SIGINT is
    unchanged.

    Raises:
        EngineError: the JVM does not start or was killed, or a session is open already.
    """
    address = jvm.gateway()
    import pyspark
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if pyspark.SparkContext._active_spark_context is not None:
        message = "a Spark session is open already; stop it first"
        raise EngineError(message)
    chosen = settings or SessionSettings()
    with _variables(PYSPARK_GATEWAY_PORT=str(address.port), PYSPARK_GATEWAY_SECRET=address.secret):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        conf = pyspark.SparkConf(loadDefaults=False)
        conf.setAll(list(chosen.configuration(jvm).items()))
        with _interrupts_untouched(), _variables(PYSPARK_PYTHON=chosen.python):
            _log_in(gateway)
            context = pyspark.SparkContext(conf=conf, gateway=gateway)
        return SparkSession(context)
    except Exception as error:
        _forget_gateway(gateway)
        gone = how_java_ended(jvm)
        # A signal is all there is to say; if Java ended by itself, its log says why.
        if gone is not None and (jvm.wait(0) or 0) < 0:
            raise gone from error
        if not isinstance(error, Py4JError | PySparkException):
            raise
        why = cause_in(str(error).splitlines())
        if chosen.cluster is not None and _NOT_ACCEPTED in jvm.log_since_start():
            why = (
                f"the master {chosen.cluster.master} does not accept this driver: its secret"
                " (spark.authenticate.secret) is not that of spark.secret_file, it runs without"
                " spark.authenticate, or it is of another version of Spark"
            )
        message = f"the Spark session could not be opened: {why} (log: {jvm.log})"
        raise EngineError(message) from error


def _log_in(gateway: Any) -> None:
    """Set Hadoop's user if the user database has no name, for its own look-up would fail."""
    if not has_name():
        group_information = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        group_information.setLoginUser(group_information.createRemoteUser(user_name()))


def stop_session(session: SparkSession, jvm: JvmProcess) -> None:
    """Close the session and end its JVM at once; the process may open another afterwards.

    On YARN and Kubernetes, Spark first reports to the manager that the application is over.
    """
    if str(session.sparkContext.master).startswith(_MANAGED):
        _end_application(session)
    detach_session(session)
    jvm.stop()


def _end_application(session: SparkSession) -> None:
    """Have Spark remove the pods of a Kubernetes, or report success to YARN.

    That takes at most ``END_S``.
    """
    scala = session.sparkContext._jsc

    def end() -> None:
        with suppress(Exception):
            scala.stop()

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(END_S)
    if ending.is_alive():
        _log.warning("the Spark master did not confirm the end of the application in %g s", END_S)


def detach_session(session: SparkSession) -> None:
    """Release the session, whatever the state of its JVM, which remains with its owner.

    Spark's own stop has the JVM tear down a context that ends with the JVM anyway, and waits half a
    second for the accumulator thread to notice its flag.
    """
    context = session.sparkContext
    gateway: Any = context._gateway
    if context._accumulatorServer is not None:
        server: Any = context._accumulatorServer
        # It would print a traceback when the JVM ends and cuts its connection.
        server.handle_error = _ignore
        threading.Thread(target=_shut, args=(server,), daemon=True).start()
    context._jsc = None
    context._accumulatorServer = None  # type: ignore[assignment]
    # This also clears the default session in the JVM, which may be gone.
    with suppress(Exception):
        session.stop()
    _forget_gateway(gateway)


def _ignore(*_: object) -> None:
    """Ignore an error."""


def _shut(server: Any) -> None:
    server.shutdown()
    server.server_close()


def _forget_gateway(gateway: Any) -> None:
    """Close PySpark's connections and clear its process-wide gateway."""
    import pyspark

    with suppress(Exception):
        gateway.close()
        gateway.shutdown_callback_server()
    pyspark.SparkContext._gateway = None
    pyspark.SparkContext._jvm = None
    pyspark.SparkContext._active_spark_context = None


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    """Set environment variables while PySpark reads them."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@contextmanager
def _interrupts_untouched() -> Iterator[None]:
    """Restore the SIGINT handler that a SparkContext replaces in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
