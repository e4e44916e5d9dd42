"""The process of Spark's gateway JVM: its start, directly and early, and its certain end.

Spark's own launcher runs two shell scripts and a second JVM, and needs a module that trimmed
runtimes lack. Here one ``java`` is started at once; Python goes on importing pyspark and compiling
queries, and asks for the gateway when it needs it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gscope.engine.spark.cluster.master import MasterKind
from gscope.engine.spark.jvm.cause import cause_in
from gscope.engine.spark.jvm.class_path import class_path, scala_version, spark_home
from gscope.engine.spark.jvm.jvm_settings import MINIMUM_HEAP_BYTES, JvmSettings, jvm_options
from gscope.errors import EngineError
from gscope.queries.os_errors import ended_with
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


START_TIMEOUT_S = 60.0
_MAX_READ = 1 << 20
"""The most characters of Java's output that are searched for the cause of its end."""

_log = logging.getLogger(__name__)

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL})

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = error
"""


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """The port on which the JVM listens on the loopback address, and the secret that it expects."""

    port: int
    secret: str = field(repr=False)


def launch_jvm(
    settings: JvmSettings, directory: Path, *, environ: Mapping[str, str] | None = None
) -> JvmProcess:
    """Start the gateway JVM and return at once.

    The JVM ends when the returned process is stopped, when its owner dies in any way, or when the
    owner's end of its standard input is closed. It is in a session of its own, so a Ctrl-C at the
    terminal does not reach it. Its output goes to ``directory/jvm.log``, which the owner bounds
    with ``bound_log``.

    Args:
        settings: the runtime, memory and archive.
        directory: a folder of the run. A private folder (mode 0700) in it holds the JVM's temporary
            files until ``JvmProcess.stop`` deletes it.
        environ: the environment from which the JVM's is derived; the process's own by default.

    Raises:
        EngineError: the heap is too small, Spark's jars are missing, or Java does not start.
    """
    if settings.heap_bytes < MINIMUM_HEAP_BYTES:
        message = (
            f"a Java heap of {settings.heap_bytes} bytes is too small for Spark; "
            f"give it at least {MINIMUM_HEAP_BYTES}"
        )
        raise EngineError(message)
    home = spark_home()
    jars = class_path(home, has_managers=settings.has_managers)
    if not jars:
        message = f"{home / 'jars'} holds no jars: reinstall pyspark"
        raise EngineError(message)
    log = directory / "jvm.log"
    try:
        private = Path(tempfile.mkdtemp(prefix="jvm-", dir=directory)).absolute()
        (private / "tmp").mkdir()
        (private / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        known = os.environ if environ is None else environ
        paths = [*_configured(known, settings), *jars]
        (private / "classpath").write_text(_class_path_argument(paths), encoding="utf-8")
        environment = _environment(known, private, settings, home)
        return JvmProcess(settings, private, log, environment)
    except OSError as error:
        message = f"Java ({settings.java.executable}) could not be started: {error}"
        raise EngineError(message) from error


class JvmProcess:
    """A running gateway JVM. Its owner must ``stop`` it; use it as a context manager."""

    def __init__(
        self, settings: JvmSettings, private: Path, log: Path, environment: dict[str, str]
    ) -> None:
        self.settings = settings
        self.directory = private
        self.log = log
        self._logged_before = log.stat().st_size if log.exists() else 0
        self._crash_log = log.with_name("jvm-crash.log")
        self._environment = environment
        # Another thread may stop it while its owner starts it again.
        self._starting = threading.Lock()
        self._is_stopped = False
        self._address: GatewayAddress | None = None
        self._lifeline: int | None
        self._process, self._lifeline = self._spawn()

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        command = [
            str(self.settings.java.executable),
            *jvm_options(self.settings, self.directory),
            f"-XX:ErrorFile={self._crash_log}",
            f"@{self.directory / 'classpath'}",
            "org.apache.spark.deploy.SparkSubmit",
            "pyspark-shell",
        ]
        return _spawn(command, self._environment, self.log)

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    def gateway(self, timeout_s: float = START_TIMEOUT_S) -> GatewayAddress:
        """Wait until the JVM accepts connections.

        Spark writes port and secret to a file and then, to notice the death of its owner, reads its
        standard input and ignores what it reads. ``launch_jvm`` has filled that pipe to capacity,
        so it becomes writable as soon as the file is complete, and breaks if the JVM dies. No
        polling is needed.

        Raises:
            EngineError: the JVM ended, was stopped, or took longer than ``timeout_s``.
        """
        if self._address is None:
            self._address = self._shake_hands(timeout_s)
        return self._address

    def _shake_hands(self, timeout_s: float) -> GatewayAddress:
        if self._lifeline is None:
            message = "Spark's Java was stopped before it was ready"
            raise EngineError(message)
        waiter = select.poll()
        waiter.register(self._lifeline, select.POLLOUT)
        events = waiter.poll(max(0.0, timeout_s) * 1000)
        if not events:
            message = f"Spark's Java was not ready after {timeout_s:g} s; its log is {self.log}"
            raise EngineError(message)
        if events[0][1] & (select.POLLERR | select.POLLNVAL):
            return self._after_death(timeout_s)
        return _read_address(_connection_file(self.directory))

    def _after_death(self, timeout_s: float) -> GatewayAddress:
        """Start again if a damaged archive may be the cause; else raise an error that names it."""
        code = self._process.wait()
        archive = self.settings.archive
        # A JVM that crashes without dumping core exits with 1, but it leaves a report.
        crashed = -code in _CRASHES or self._crash_log.exists()
        if archive is not None and crashed:
            _log.warning("Java crashed on its class-data archive %s, which is removed", archive)
            archive.unlink(missing_ok=True)
            self._crash_log.unlink(missing_ok=True)
            self.close_input()
            self.settings = replace(self.settings, archive=None)
            with self._starting:
                if not self._is_stopped:
                    self._process, self._lifeline = self._spawn()
            return self._shake_hands(timeout_s)
        why = cause_in(self.log_since_start().splitlines())
        how = ended_with(code)
        message = f"Spark's Java ended at its start with {how}: {why} (log: {self.log})"
        raise EngineError(message)

    def log_since_start(self) -> str:
        """Return the beginning of what this JVM has written to its log."""
        with self.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._logged_before)
            return log.read(_MAX_READ)

    def close_input(self) -> None:
        """Close the JVM's standard input, which makes it shut down in its own time."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code when the JVM has ended.

        None if it still runs after ``timeout_s``.
        """
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float = 0.0) -> None:
        """End the JVM and delete its private folder; do nothing the second time.

        Any thread may call it.

        Args:
            grace_s: how long it may take to shut down by itself before it is killed, in seconds.
                Nothing is lost with 0: answers are committed by rename, and the folder is private.
        """
        with self._starting:
            self._is_stopped = True
            self.close_input()
        if grace_s <= 0 or self.wait(grace_s) is None:
            self._kill()
        self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _kill(self) -> None:
        if self._process.poll() is None:
            # The process group is the JVM's own, with the commands that Hadoop runs.
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _class_path_argument(jars: list[Path]) -> str:
    """Return the class path for an argument file: on Linux an argument has at most 128 KiB."""
    quoted = os.pathsep.join(map(str, jars)).replace("\\", "\\\\").replace('"', '\\"')
    return f'-cp "{quoted}"\n'


def _configured(environ: Mapping[str, str], settings: JvmSettings) -> list[Path]:
    """Return the folders with the configuration of Hadoop that YARN needs, first on its path."""
    if settings.master.kind is not MasterKind.YARN:
        return []
    named = (environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    return [Path(folder) for folder in dict.fromkeys(named) if folder]


def _environment(
    environ: Mapping[str, str], private: Path, settings: JvmSettings, home: Path
) -> dict[str, str]:
    """Return the JVM's environment, without the settings of another Spark installation.

    Without SPARK_HOME, its Python workers import the installed pyspark. With it, they would import
    the one in Spark's zip file, which each worker compiles again, for half a second. Only
    ``local-cluster`` needs it, to start its executors.
    """
    kept = {
        key: value for key, value in environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))
    }
    if settings.master.is_local:
        kept["SPARK_LOCAL_IP"] = "127.0.0.1"
    if settings.master.kind is MasterKind.LOCAL_CLUSTER:
        kept["SPARK_HOME"] = str(home)
        kept["SPARK_SCALA_VERSION"] = scala_version(home)
        kept["SPARK_WORKER_DIR"] = str(private / "work")
        kept["SPARK_LOCAL_IP"] = "127.0.0.1"
    return kept | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_connection_file(private)),
        "SPARK_CONNECT_MODE": "0",
        # Java encodes file names according to the locale.
        "LC_ALL": "C.UTF-8",
        # Python workers start in the user's folder, and must not import a json.py from there.
        "PYTHONSAFEPATH": "1",
    }


def _connection_file(private: Path) -> Path:
    return private / "connection"


def _spawn(
    command: list[str], environment: dict[str, str], log: Path
) -> tuple[subprocess.Popen[bytes], int]:
    """Run ``command`` with a full pipe as its input; return it and the pipe's write end."""
    read_end, write_end = os.pipe()
    try:
        os.set_blocking(write_end, False)
        capacity = fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
        os.write(write_end, bytes(capacity))
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=read_end,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    return process, write_end


def _read_address(path: Path) -> GatewayAddress:
    """Return port and secret from the file that org.apache.spark.api.python writes."""
    try:
        content = path.read_bytes()
        path.unlink()
        port, length = struct.unpack_from("!ii", content)
        secret = content[8 : 8 + length].decode("ascii")
    except (OSError, struct.error, UnicodeDecodeError) as error:
        message = f"Spark's Java wrote no usable connection file: {error}"
        raise EngineError(message) from error
    return GatewayAddress(port, secret)
