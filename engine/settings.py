"""Settings of the HFTA job, which the supervisor leaves in the run's folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, field
from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import JOB_SECRETS_FILE, JOB_SETTINGS_FILE
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_MUCH_BYTES = 4 << 30
_SPARK_AT_ONCE_BYTES = 16 << 30
"""Larger captures are left to Spark as soon as it is ready: its processes hold the rows of
tasks."""
_LITTLE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings of the HFTA job.

    Attributes:
        cores: the number of threads that run Spark tasks; None for all cores of the machine.
        heap_bytes: the size of the heap of Spark's Java.
        consumer: the job's name towards the stream log.
        expected_bytes: the size of all captures together; None if it is unknown (a pipe, an
            interface).
        is_live: whether the input cannot be read again, so that a full log sheds batches.
        disk_bytes: the disk budget of undelivered answers and of carried rows.
        asks_for_heartbeats: whether operators that wait ask the capture daemon for heartbeats.
        reports_bounds: whether bounds of a live run that rise without a commit are reported, since
            an alert waits for them.
        latent_interfaces: the interfaces whose tuples need no order: a merge of these alone
            forwards rows as they arrive.
        sample_rate: share of groups or packets that the capture keeps, by which estimates are
            scaled.
        master: where Spark's tasks run, as Spark names it.
        driver_host: the name or address under which executors reach this host; None to find it.
        executor_python: the interpreter of Python workers on the hosts of a cluster; None for the
            default of the master.
        spark_conf: further configuration of Spark, by name.
        file_port: the port at which executors that do not share the run's folder fetch its files; 0
            for a free one.
    """

    cores: int | None = None
    heap_bytes: int = 2 << 30
    consumer: str = "hfta"
    expected_bytes: int | None = None
    asks_for_heartbeats: bool = False
    reports_bounds: bool = False
    latent_interfaces: tuple[str, ...] = ()
    is_live: bool = False
    disk_bytes: int = 8 << 30
    sample_rate: float = 1.0
    master: str = "local"
    driver_host: str | None = None
    executor_python: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    file_port: int = 0

    @property
    def leaves_all_to_spark(self) -> bool:
        """Whether a user chose how tasks run: no step is evaluated before Spark is ready."""
        return self.master != "local" or bool(self.spark_conf)

    @property
    def starts_spark_when_needed(self) -> bool:
        """Whether a run may end before a step needs Spark: a replay of captures of known size."""
        return (
            not self.leaves_all_to_spark
            and not self.is_live
            and self.expected_bytes is not None
            and self.expected_bytes < _SPARK_AT_ONCE_BYTES
        )

    @property
    def expects_much(self) -> bool:
        """Whether Java should use all its compilers: they pay in runs of many large steps."""
        return self.expected_bytes is not None and self.expected_bytes >= _MUCH_BYTES

    @property
    def expects_little(self) -> bool:
        """Whether Spark should interpret: compiling its plans would take longer than the work."""
        return self.expected_bytes is not None and self.expected_bytes < _LITTLE_BYTES

    def write(self, run_dir: Path) -> None:
        """Write the settings to ``run_dir``, where the job reads them."""
        (run_dir / JOB_SETTINGS_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, run_dir: Path) -> JobSettings:
        """Return the settings that ``write`` left in ``run_dir``.

        Raises:
            EngineError: the settings are missing, or this version does not understand them.
        """
        path = run_dir / JOB_SETTINGS_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            message = f"the settings {path} of the HFTA job are unusable: {error}"
            raise EngineError(message) from error


@dataclass(frozen=True, slots=True)
class JobSecrets:
    """Secrets of the HFTA job, in a file that only its user can read.

    Attributes:
        spark: the secret that the job shares with a cluster; "" if it needs none.
        certificate: the certificate chain with which the job serves files to executors, in PEM; ""
            without TLS.
        key: its key.
    """

    spark: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def tls(self) -> tuple[str, str] | None:
        """The certificate chain and its key; None without TLS."""
        return (self.certificate, self.key) if self.certificate else None

    def write(self, run_dir: Path, uid: int, gid: int) -> None:
        """Write the secrets to ``run_dir``, for that user alone.

        Raises:
            EngineError: the file cannot be written.
        """
        path = run_dir / JOB_SECRETS_FILE
        try:
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                if (uid, gid) != (os.geteuid(), os.getegid()):
                    os.fchown(descriptor, uid, gid)
                json.dump(asdict(self), file)
        except OSError as error:
            message = f"cannot write {path}: {os_reason(error)}"
            raise EngineError(message) from error

    @classmethod
    def read(cls, run_dir: Path) -> JobSecrets:
        """Return the secrets that ``write`` left in ``run_dir``; none if there are none.

        Raises:
            EngineError: the file cannot be read, or this version does not understand it.
        """
        path = run_dir / JOB_SECRETS_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError) as error:
            message = f"the secrets {path} of the HFTA job are unusable: {error}"
            raise EngineError(message) from error
