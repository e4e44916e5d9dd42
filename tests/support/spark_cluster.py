"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

With ``hidden``, a worker and its executors live in a mount namespace in which those folders are
empty: what is there exists for the driver only, as if the worker were another host.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.gscope_command import wait_for
from tests.support.shared_spark import archived

from gscope.engine.spark.cluster.executors import prepare_executors
from gscope.engine.spark.cluster.master import Master
from gscope.engine.spark.cluster.settings import ClusterSettings
from gscope.engine.spark.jvm.class_path import class_path, scala_version, spark_home
from gscope.engine.spark.jvm.gateway import JvmProcess, launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings, archive_options
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session
from gscope.engine.storage.transfer.run_files import RunFiles, prepare_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
"""


@dataclass(slots=True)
class SparkWorker:
    """One worker; ``folder`` holds its log and the folders of its executors."""

    folder: Path
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Kill the worker alone, without its executors."""
        self.process.kill()
        self.process.wait()

    def executors(self) -> list[int]:
        """Return the process ids of its executors."""
        mark = "--worker-url\0spark://Worker@"
        return [pid for pid in _children_of(self.folder) if mark in _command(pid)]


@dataclass(slots=True)
class SparkCluster:
    """A master and its workers; a context manager that ends all of them.

    Attributes:
        folder: holds the logs, the secret and the folders of workers.
        url: the address of the master.
        secret_file: the file with the secret.
        workers: the workers that were started.
    """

    folder: Path
    url: str = ""
    has_secret: bool = True
    workers: list[SparkWorker] = field(default_factory=list)
    _started: int = 0
    _master: subprocess.Popen[bytes] | None = None

    @property
    def secret_file(self) -> Path:
        return self.folder / "secret"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = secrets.token_hex(32)
        self.secret_file.write_text(f"{secret}\n")
        self.secret_file.chmod(0o600)
        settings = [f"spark.authenticate.secret {secret}", "spark.authenticate true"]
        settings += ["spark.network.crypto.enabled true", "spark.master.rest.enabled false"]
        settings += ["spark.ui.enabled false", "spark.worker.timeout 10"]
        (self.folder / "spark.conf").write_text(
            "".join(f"{line}\n" for line in settings if self.has_secret)
        )
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        arguments = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        log = self.folder / "master.log"
        self._master = self._start([*arguments, "--webui-port", "0"], log, self.folder)
        self.url = wait_for(lambda: _found(_STARTED, log), f"the start of a master ({log})")
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*(worker.process for worker in self.workers), self._master):
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        # Executors have process groups of their own, and those of a killed worker may be there.
        for pid in _children_of(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def add_workers(self, count: int, **settings: Any) -> None:
        """Start several workers at the same time, and wait until they are registered."""
        for worker in [self._spawn(**settings) for _ in range(count)]:
            _await_registration(worker)

    def add_worker(self, **settings: Any) -> SparkWorker:
        """Start a worker and wait until it is registered; see ``_spawn``."""
        worker = self._spawn(**settings)
        _await_registration(worker)
        return worker

    def _spawn(
        self,
        *,
        cores: int = 1,
        memory: str = "1g",
        hidden: Sequence[Path] = (),
        uid: int | None = None,
        host: str = "127.0.0.1",
    ) -> SparkWorker:
        """Start a worker.

        Args:
            cores: what it offers.
            memory: what it offers.
            hidden: folders that are empty for it and its executors.
            uid: the user and group that it runs as; None for this user.
            host: the name of its host for Spark, one of loopback's addresses.
        """
        self._started += 1
        folder = self.folder / f"worker-{self._started}"
        folder.mkdir()
        (folder / "tmp").mkdir()
        arguments = ["org.apache.spark.deploy.worker.Worker", self.url, "--host", host]
        arguments += ["--cores", str(cores), "--memory", memory, "--webui-port", "0"]
        arguments += ["--work-dir", str(folder / "work")]
        log = folder / "worker.log"
        process = self._start(arguments, log, folder, hidden=hidden, uid=uid, host=host)
        worker = SparkWorker(folder, process)
        self.workers.append(worker)
        return worker

    def _start(
        self,
        arguments: list[str],
        log: Path,
        folder: Path,
        *,
        hidden: Sequence[Path] = (),
        uid: int | None = None,
        host: str = "127.0.0.1",
    ) -> subprocess.Popen[bytes]:
        home = spark_home()
        jars = os.pathsep.join(map(str, class_path(home)))
        java = [
            str(find_java().executable),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
        ]
        archive = archived(JvmSettings(find_java())).archive
        java += [] if archive is None else archive_options(find_java(), archive)
        java += ["-Djava.net.preferIPv4Stack=true", f"-Djava.io.tmpdir={folder}"]
        java += [f"-Dlog4j2.configurationFile={(self.folder / 'log4j2.properties').as_uri()}"]
        java += ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
        java += ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
        java += ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
        command = [*java, "-cp", jars, *arguments]
        command += ["--properties-file", str(self.folder / "spark.conf")]
        if uid is not None:
            os.chown(folder, uid, uid)
            os.chown(folder / "tmp", uid, uid)
            (self.folder / "spark.conf").chmod(0o644)
            command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command]
        if hidden:
            mounts = " && ".join(f"mount -t tmpfs none '{path}'" for path in hidden)
            shell = f'{mounts} && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", shell, "worker", *command]
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": scala_version(home),
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "tmp"),
            "SPARK_LOCAL_IP": host,
            "JAVA_HOME": str(find_java().home),
            "TMPDIR": str(folder / "tmp"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        with log.open("wb") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                process_group=0,
            )


def _executors_of_tests() -> dict[str, str]:
    """Return what lets executors start fast.

    With the class-data archive, where its jars come first.
    """
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    archive = archived(JvmSettings(find_java())).archive
    if archive is None:
        return {"spark.executor.extraJavaOptions": " ".join(options)}
    options += archive_options(find_java(), archive)
    jars = os.pathsep.join(map(str, class_path(spark_home())))
    return {
        "spark.executor.extraJavaOptions": " ".join(options),
        "spark.executor.extraClassPath": jars,
    }


def _await_registration(worker: SparkWorker) -> None:
    log = worker.folder / "worker.log"
    wait_for(lambda: _found(_REGISTERED, log), f"the registration of a worker ({log})")


def _found(pattern: re.Pattern[str], log: Path) -> str | None:
    match = pattern.search(log.read_text(errors="replace"))
    return None if match is None else match[match.lastindex or 0]


def _children_of(folder: Path) -> list[int]:
    """Return the processes whose working directory or command line is below ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder) in _environ(int(process.name)):
                found.append(int(process.name))
    return found


def _environ(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@dataclass(slots=True)
class ClusterSession:
    """A session whose tasks run on a cluster."""

    session: SparkSession
    jvm: JvmProcess
    files: RunFiles
    hidden: tuple[Path, ...] = ()
    cluster: SparkCluster = field(default_factory=lambda: SparkCluster(Path()))

    @classmethod
    @contextmanager
    def open(
        cls,
        cluster: SparkCluster,
        folder: Path,
        runs: Path,
        tls: tuple[str, str] | None = None,
        **settings: Any,
    ) -> Iterator[ClusterSession]:
        """Open a session as the HFTA job does, and end it.

        Args:
            cluster: the cluster.
            folder: holds the files of Java.
            runs: holds the folders of runs.
            tls: certificate and key with which files are served.
            settings: of ``ClusterSettings``.
        """
        secret = cluster.secret_file.read_text().strip()
        with cls.on(cluster.url, secret, folder, runs, tls, **settings) as opened:
            opened.cluster = cluster
            yield opened

    @classmethod
    @contextmanager
    def on(
        cls,
        url: str,
        secret: str,
        folder: Path,
        runs: Path,
        tls: tuple[str, str] | None = None,
        **settings: Any,
    ) -> Iterator[ClusterSession]:
        """Open a session on a master; see ``open``."""
        master = Master.parse(url)
        conf = {**_executors_of_tests(), **settings.pop("conf", {})}
        chosen = ClusterSettings(master, secret=secret, conf=conf, **settings)
        java = JvmSettings(find_java(), heap_bytes=1 << 30, master=master)
        with launch_jvm(archived(java), folder) as jvm:
            session = start_session(jvm, SessionSettings(cluster=chosen))
            try:
                prepare_executors(session, chosen)
                files = prepare_files(session, runs, runs, chosen.chosen_driver_host(), tls=tls)
                yield cls(session, jvm, files, (runs,))
                files.stop()
            finally:
                stop_session(session, jvm)
