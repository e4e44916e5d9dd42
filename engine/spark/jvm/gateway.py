"""Starts Spark's gateway JVM directly and early, and makes sure that it goes away.

Spark's own launcher runs two shell scripts and a second JVM, and demands a module that trimmed
runtimes lack. Here one ``java`` is started at once; Python goes on (importing pyspark, compiling
queries) and asks for the gateway when it needs it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pwd
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gscope.engine.spark.jvm.cause import cause_in
from gscope.engine.spark.jvm.class_path import class_path, spark_home
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.spark.jvm.java import Java

DEFAULT_HEAP_BYTES = 2 << 30
MINIMUM_HEAP_BYTES = 512 << 20
"""Spark refuses to start below 450 MiB."""

START_TIMEOUT_S = 60.0
_MAX_READ = 1 << 20
"""At most this many characters of what Java wrote before it ended are searched, from the first."""

_log = logging.getLogger(__name__)

# What org.apache.spark.launcher.JavaModuleOptions of Spark 4.3 opens to reflection.
_OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL})

_COMMON_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    # No /tmp/hsperfdata files, and no warning about archives on anyone's terminal.
    "-XX:-UsePerfData",
    "-XX:-CreateCoredumpOnCrash",
    "-Xlog:disable",
    "-XX:+UseSerialGC",
    # A start touches some 250 MB for the first time: in pages of 2 MB, where the system lets us ask for them.
    "-XX:+UseTransparentHugePages",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)

_WHERE_IT_WAS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Maps the archive where it was made for, if that is free. Anywhere else, Java's default, each of its
pointers is written anew: all of its 160 MB are read, copied and held in memory, half a second of CPU time."""

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
class JvmSettings:
    """How the gateway JVM is started.

    Attributes:
        java: the runtime.
        heap_bytes: the most its heap may take, at least ``MINIMUM_HEAP_BYTES``.
        only_c1: compile with the quick compiler alone: best for steps of up to some 200,000
            tuples; False for millions.
        archive: a class-data archive to map; None to load classes from their jars.
        options: further JVM options, after all others.
    """

    java: Java
    heap_bytes: int = DEFAULT_HEAP_BYTES
    only_c1: bool = True
    archive: Path | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the JVM listens on the loopback address, and the secret it wants to hear."""

    port: int
    secret: str = field(repr=False)


def archive_options(java: Java, archive: Path) -> list[str]:
    """The options that map ``archive``; an unsuitable one is then ignored by the JVM."""
    if uses_aot_cache(java):
        return [*_WHERE_IT_WAS, f"-XX:AOTCache={archive}"]
    return [*_WHERE_IT_WAS, "-Xshare:auto", f"-XX:SharedArchiveFile={archive}"]


def uses_aot_cache(java: Java) -> bool:
    """Whether archives of this Java are ahead-of-time caches (JEP 514) and not CDS archives."""
    return java.major >= 25


def launch_jvm(
    settings: JvmSettings, directory: Path, *, environ: Mapping[str, str] | None = None
) -> JvmProcess:
    """Starts the gateway JVM and returns at once.

    The JVM ends when the returned process is stopped, when its owner dies in whatever way, or
    when the owner's end of its standard input is closed. It is in a session of its own, so a
    Ctrl-C at the terminal does not reach it. Its output goes to ``directory/jvm.log``;
    somebody has to call ``bound_log`` now and then.

    Args:
        settings: runtime, memory and archive.
        directory: a folder of the run; a private folder (mode 0700) is made in it for the
            JVM's temporary files and removed by ``JvmProcess.stop``.
        environ: the environment to derive the JVM's from; the process's own by default.

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
    jars = class_path(home)
    if not jars:
        message = f"{home / 'jars'} holds no jars: reinstall pyspark"
        raise EngineError(message)
    log = directory / "jvm.log"
    try:
        private = Path(tempfile.mkdtemp(prefix="jvm-", dir=directory)).absolute()
        (private / "tmp").mkdir()
        (private / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        (private / "classpath").write_text(_class_path_argument(jars), encoding="utf-8")
        environment = _environment(os.environ if environ is None else environ, private)
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
        # Another thread may stop it while its owner starts it once more.
        self._starting = threading.Lock()
        self._is_stopped = False
        self._address: GatewayAddress | None = None
        self._lifeline: int | None
        self._process, self._lifeline = self._spawn()

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        command = [
            str(self.settings.java.executable),
            *_options(self.settings, self.directory),
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
        """Waits until the JVM accepts connections.

        Spark writes port and secret to a file and then, in order to notice the death of its
        owner, reads its standard input and ignores what it finds there. That pipe was filled to
        the brim by ``launch_jvm``; so it becomes writable the moment the file is complete, and
        broken if the JVM dies. No polling is needed.

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
        """Tries once more if a damaged archive may be the cause; else says what is known."""
        code = self._process.wait()
        archive = self.settings.archive
        # Told not to dump core, a JVM that crashed exits with 1, but it leaves a report.
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
        with self.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._logged_before)
            why = cause_in(log.read(_MAX_READ).splitlines())
        message = f"Spark's Java ended at its start with code {code}: {why} (log: {self.log})"
        raise EngineError(message)

    def close_input(self) -> None:
        """Lets go of the JVM: it shuts down in its own time."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """The exit code once the JVM has ended, or None if it still runs after ``timeout_s``."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float = 0.0) -> None:
        """Ends the JVM and removes its private folder; does nothing the second time. From any thread.

        Args:
            grace_s: how long it may take to shut down by itself before it is killed. Nothing
                is lost without: answers are committed by rename, and the folder is ours.
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
            # The group is the JVM's own; commands that Hadoop runs are in it.
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _options(settings: JvmSettings, private: Path) -> list[str]:
    java = settings.java
    options = [f"-Xmx{settings.heap_bytes >> 10}k", *_COMMON_OPTIONS]
    options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    if java.major >= 24:
        options += ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
    if settings.only_c1:
        options.append("-XX:TieredStopAtLevel=1")
    options.append(f"-Djava.io.tmpdir={private / 'tmp'}")
    # A uid without an entry in the user database, as containers have, has neither home nor name for Java: Spark and
    # Hadoop fail on that. Nothing of ours is looked for in a home.
    options += [f"-Duser.home={private / 'tmp'}", f"-Duser.name={user_name()}"]
    options.append(f"-Dlog4j2.configurationFile={(private / 'log4j2.properties').as_uri()}")
    if settings.archive is not None:
        options += archive_options(java, settings.archive)
    return [*options, *settings.options]


def has_name() -> bool:
    """Return whether the user database knows this user."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def user_name() -> str:
    """Return the name of this user, or its number if it has no name."""
    return pwd.getpwuid(os.geteuid()).pw_name if has_name() else str(os.geteuid())


def _class_path_argument(jars: list[Path]) -> str:
    """The class path as a file of arguments: one argument may not exceed 128 KiB on Linux."""
    quoted = os.pathsep.join(map(str, jars)).replace("\\", "\\\\").replace('"', '\\"')
    return f'-cp "{quoted}"\n'


def _environment(environ: Mapping[str, str], private: Path) -> dict[str, str]:
    """The JVM's environment: another Spark installation's settings must not leak into it.

    Without SPARK_HOME its Python workers import the installed pyspark. With it they would take the one
    in Spark's zip file, which each of them compiles anew, for half a second.
    """
    kept = {
        key: value for key, value in environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))
    }
    return kept | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_connection_file(private)),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Java encodes file names by the locale.
        "LC_ALL": "C.UTF-8",
        # Python workers start where the user is: a json.py there is not theirs to import.
        "PYTHONSAFEPATH": "1",
    }


def _connection_file(private: Path) -> Path:
    return private / "connection"


def _spawn(
    command: list[str], environment: dict[str, str], log: Path
) -> tuple[subprocess.Popen[bytes], int]:
    """Runs ``command`` with a full pipe as its input; returns it and the pipe's write end."""
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
    """Port, length of the secret, secret: as org.apache.spark.api.python writes them."""
    try:
        content = path.read_bytes()
        path.unlink()
        port, length = struct.unpack_from("!ii", content)
        secret = content[8 : 8 + length].decode("ascii")
    except (OSError, struct.error, UnicodeDecodeError) as error:
        message = f"Spark's Java wrote no usable connection file: {error}"
        raise EngineError(message) from error
    return GatewayAddress(port, secret)
