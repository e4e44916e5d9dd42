"""The settings of a session on a cluster, as Spark's configuration."""

from __future__ import annotations

import secrets
import sys
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.engine.spark.cluster.master import MasterKind, own_address
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gscope.engine.spark.cluster.master import Master

LOOPBACK = "127.0.0.1"

_FORGOTTEN_FAILURES = {"spark.executor.failuresValidityInterval": "10min"}
"""Spark ends an application after a few failures of executors, and never forgets one by default."""

_ARCHIVES = ("spark.archives", "spark.yarn.dist.archives")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a session reaches the executors of a cluster, and they the driver.

    Attributes:
        master: the master; not a local one.
        driver_host: the name or address under which executors reach this host; None to find it.
        python: the interpreter of Python workers, as a path on the hosts of executors; None for
            the default of the master.
        secret: the secret of the cluster; "" where Spark makes one itself.
        conf: further configuration of the user, by name.
    """

    master: Master
    driver_host: str | None = None
    python: str | None = None
    secret: str = field(default="", repr=False)
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def executor_python(self) -> str:
        """The interpreter of Python workers on the hosts of executors."""
        if self.python is not None:
            return self.python
        for name in _ARCHIVES:
            _, unpacked, folder = self.conf.get(name, "").split(",")[0].partition("#")
            if unpacked and folder:
                return f"./{folder}/bin/python"
        # The image of a pod has a Python of its own.
        return "python3" if self.master.kind is MasterKind.KUBERNETES else sys.executable

    def chosen_driver_host(self) -> str:
        """Return the name or address under which executors reach this host.

        Raises:
            UsageError: it is not set, and nothing shows it.
        """
        if self.driver_host is not None:
            return self.driver_host
        if self.master.is_on_this_host:
            return LOOPBACK
        address = own_address(self.master)
        if address is None:
            message = (
                f"the executors of {self.master} need an address of this host: name it with"
                " spark.driver_host (--spark-driver-host)"
            )
            raise UsageError(message)
        return address

    def configuration(self, home: Path) -> dict[str, str]:
        """Return what a session on this cluster has besides the configuration of every session.

        Args:
            home: the folder of pyspark, with Spark's jars.

        Raises:
            UsageError: the address of this host is needed, and unknown.
        """
        host = self.chosen_driver_host()
        chosen = {
            "spark.driver.host": host,
            "spark.driver.bindAddress": LOOPBACK if host == LOOPBACK else "0.0.0.0",
            "spark.network.crypto.enabled": "true",
            # An idle core elsewhere is worth more than the bytes that its task fetches.
            "spark.locality.wait.node": "0s",
            # Rows that Python tasks fetch are of unknown size to Spark. By default it assumes more
            # than it would leave in one partition, and adds an exchange.
            "spark.sql.defaultSizeInBytes": str(1 << 30),
            "spark.sql.maxSinglePartitionBytes": str(1 << 50),
            # Workers start in a folder that others may write to, and must not import from it.
            "spark.executorEnv.PYTHONSAFEPATH": "1",
            "spark.executorEnv.LC_ALL": "C.UTF-8",
        }
        match self.master.kind:
            case MasterKind.LOCAL_CLUSTER:
                chosen["spark.authenticate.secret"] = self.secret or secrets.token_hex(32)
            case MasterKind.STANDALONE:
                chosen["spark.authenticate.secret"] = self.secret
            case MasterKind.KUBERNETES:
                chosen |= _FORGOTTEN_FAILURES
            case MasterKind.YARN:
                chosen |= _FORGOTTEN_FAILURES
                # What spark-submit would set.
                chosen["spark.yarn.isPython"] = "true"
                chosen["spark.yarn.jars"] = (home / "jars").as_uri() + "/*.jar"
                if archives := self.conf.get("spark.archives"):
                    chosen["spark.yarn.dist.archives"] = archives
            case _:
                pass
        return {**chosen, **self.conf, "spark.master": self.master.text}
