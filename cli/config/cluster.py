"""The settings of a Spark cluster, and what a run on one needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.log.remote.address import MAX_PORT
from gscope.cli.config.setting import FILE, Kind, Setting
from gscope.engine.settings import JobSecrets, JobSettings
from gscope.engine.spark.cluster.master import Master, MasterKind
from gscope.engine.spark.cluster.refused import refusal
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.cli.config.effective import Config

MIN_SECRET_LETTERS = 16

_MAKE_ONE = "`(umask 077; openssl rand -hex 32 > spark-secret)` makes one"

_NEEDS_SECRET = (MasterKind.STANDALONE,)
"""The masters whose secret Spark does not make itself."""


def parse_master(text: str) -> str:
    """Return the name of a master, as Spark takes it.

    Raises:
        ValueError: it is none, or no run can use it.
    """
    try:
        master = Master.parse(text.strip())
    except UsageError as error:
        raise ValueError(str(error)) from error
    if master.kind is MasterKind.LOCAL_CLUSTER:
        # Its workers write to the folder of pyspark, which the user of the job may not.
        message = (
            f"the master {master} is for tests of Spark: its workers write to Spark's own folder;"
            " use local, or a standalone cluster on this machine (docs/cluster.md)"
        )
        raise ValueError(message)
    return master.text


def parse_conf(text: str) -> dict[str, str]:
    """Return Spark's configuration from lines ``NAME=VALUE``.

    Raises:
        ValueError: a line is invalid, or a setting is refused; the message says why.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, is_given, value = (part.strip() for part in line.partition("="))
        if not is_given or not name:
            message = f"invalid Spark configuration {line.strip()!r}: expected NAME=VALUE"
            raise ValueError(message)
        if reason := refusal(name):
            message = f"the Spark setting {name} cannot be set: {reason}"
            raise ValueError(message)
        if name in found:
            message = f"the Spark setting {name} is given twice"
            raise ValueError(message)
        found[name] = value
    return found


def show_conf(conf: Mapping[str, str]) -> str:
    """Return lines that ``parse_conf`` reads."""
    return "\n".join(f"{name}={value}" for name, value in conf.items())


def job_secrets(config: Config) -> JobSecrets | None:
    """Return the secrets that the job of a run on a cluster needs; None without a cluster.

    Raises:
        UsageError: the cluster needs a secret that is not there, cannot be read, or is too short;
            a certificate cannot be used; or a setting of a cluster is given without one.
    """
    master = Master.parse(config.spark_master)
    if master.is_local:
        _ensure_nothing_of_clusters(config)
        return None
    return JobSecrets(_spark_secret(config, master), *_certificate_and_key(config))


def _spark_secret(config: Config, master: Master) -> str:
    if config.spark_secret_file is None:
        if master.kind not in _NEEDS_SECRET:
            return ""
        message = (
            f"the master {master} needs a secret, which it and its workers share with gscope as"
            " spark.authenticate.secret: name its file with spark.secret_file"
            f" (--spark-secret-file); {_MAKE_ONE} (docs/cluster.md)"
        )
        raise UsageError(message)
    from gscope.capture.log.remote.credentials import read_secret

    secret = read_secret(config.spark_secret_file, "Spark secret").decode("latin-1").strip()
    is_plain = secret.isascii() and secret.isprintable() and " " not in secret
    if not is_plain or len(secret) < MIN_SECRET_LETTERS:
        message = (
            f"invalid Spark secret in {config.spark_secret_file}: expected one line of at least"
            f" {MIN_SECRET_LETTERS} letters and digits; {_MAKE_ONE}"
        )
        raise UsageError(message)
    return secret


def _certificate_and_key(config: Config) -> tuple[str, str]:
    """Return what the job serves files to executors with; ("", "") without TLS."""
    certificate, key = config.tls_certificate, config.tls_key
    if certificate is None or key is None:
        if certificate is not key:
            missing = "--tls-key" if key is None else "--tls-certificate"
            message = f"TLS needs a certificate and its key; {missing} is missing"
            raise UsageError(message)
        return "", ""
    from gscope.capture.log.remote.credentials import read_secret, server_context

    server_context(certificate, key)
    texts = certificate.read_bytes(), read_secret(key, "key")
    return texts[0].decode("latin-1"), texts[1].decode("latin-1")


def _ensure_nothing_of_clusters(config: Config) -> None:
    for value, key in (
        (config.spark_secret_file, "spark.secret_file (--spark-secret-file)"),
        (config.spark_driver_host, "spark.driver_host (--spark-driver-host)"),
        (config.spark_python, "spark.python (--spark-python)"),
        (config.spark_file_port, "spark.file_port (--spark-file-port)"),
    ):
        if value is not None:
            message = (
                f"{key} is for executors of a cluster; name its master with spark.master (--master)"
            )
            raise UsageError(message)


def _parse_host(text: str) -> str:
    host = text.strip()
    if not host.isascii() or not host.isprintable() or not host or set(host) & set(" /:@"):
        message = f"invalid host {text!r}: expected a name or an IPv4 address"
        raise ValueError(message)
    return host


def _parse_port(text: str) -> int:
    port = text.strip()
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= MAX_PORT):
        message = f"invalid port {text!r}: expected a number from 1 to {MAX_PORT}"
        raise ValueError(message)
    return int(port)


def _parse_path(text: str) -> str:
    if not text.strip() or "\0" in text:
        message = f"invalid path {text!r}: expected the path of an interpreter"
        raise ValueError(message)
    return text.strip()


MASTER = Kind("MASTER", parse_master, str)
HOST = Kind("HOST", _parse_host, str)
INTERPRETER = Kind("PATH", _parse_path, str)
PORT = Kind("PORT", _parse_port, str)
CONF = Kind("NAME=VALUE", parse_conf, show_conf, is_repeated=True)
_ENGINE = JobSettings()

CLUSTER_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "spark.master",
        "spark_master",
        MASTER,
        _ENGINE.master,
        "where Spark evaluates steps: local for this machine, or the cluster spark://HOST:PORT,"
        " yarn or k8s://https://HOST:PORT; see docs/cluster.md",
        flag="--master",
    ),
    Setting(
        "spark.secret_file",
        "spark_secret_file",
        FILE,
        None,
        "file with the secret that a standalone cluster shares with gscope"
        " (spark.authenticate.secret), which only its owner may read. Default: none",
    ),
    Setting(
        "spark.driver_host",
        "spark_driver_host",
        HOST,
        None,
        "name or address under which executors of a cluster reach this host. Default: the address"
        " from which this host reaches the master",
    ),
    Setting(
        "spark.python",
        "spark_python",
        INTERPRETER,
        None,
        "Python interpreter on the hosts of a cluster, which needs the same versions of Python and"
        " gscope as here. Default: that of the environment in spark.archives, else the path of this"
        " one; on Kubernetes python3",
    ),
    Setting(
        "spark.file_port",
        "spark_file_port",
        PORT,
        None,
        "port at which executors that do not share the run's folder fetch and return files, over"
        " TLS with --tls-certificate and --tls-key. Default: a free one",
    ),
    Setting(
        "spark.conf",
        "spark_conf",
        CONF,
        _ENGINE.spark_conf,
        "further configuration of Spark, such as spark.executor.memory=4g. May be repeated",
    ),
)
