"""The effective configuration: flags over environment over ``gscope.yaml`` over defaults."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.cli.config.settings import SETTINGS
from gscope.cli.config.shedding import imply_mode
from gscope.cli.config.yaml_file import (
    ConfiguredHost,
    ConfiguredInterface,
    FileContents,
    read_file,
)
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import fault_of_script
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.heartbeats.mode import HeartbeatMode
    from gscope.capture.log.remote.address import TcpAddress
    from gscope.capture.shedding.settings import SheddingMode
    from gscope.cli.config.destinations import Destination
    from gscope.cli.config.partition_unit import PartitionUnit
    from gscope.cli.config.time_style import TimeStyle
    from gscope.queries.gsql.alerts.rule import AlertRule

FILE_NAME = "gscope.yaml"
FILE_VARIABLE = "GSCOPE_CONFIG"


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """The text of a setting as the user wrote it, and where."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting with its value; see ``SETTINGS`` for their meaning.

    Attributes:
        interfaces: the interfaces of the file, by name.
        sets: the interface sets, by name.
        udf: the files of user code.
        hosts: the hosts of the file whose agents can be asked to capture, by name.
        origins: where each value comes from, by key of the setting.
        path: the file that was read; None for none.
        warnings: sentences on files that were not named and cannot be read.
    """

    output_format: str | None
    time_style: TimeStyle
    partition_unit: PartitionUnit
    destinations: tuple[Destination, ...]
    row_commands: tuple[str, ...]
    metrics_of: tuple[str, ...]
    metrics_series: int
    alerts: tuple[AlertRule, ...]
    is_strict: bool
    heartbeat_interval_ns: int
    heartbeat_mode: HeartbeatMode
    shedding_mode: SheddingMode
    min_sample_rate: float
    sample_rate: float | None
    failure_timeout_ns: int | None
    failure_step_timeout_ns: int | None
    listen: TcpAddress | None
    token_file: Path | None
    tls_certificate: Path | None
    tls_key: Path | None
    spark_cores: int | None
    spark_memory_bytes: int
    partitions: int
    spark_master: str
    spark_secret_file: Path | None
    spark_driver_host: str | None
    spark_python: str | None
    spark_file_port: int | None
    spark_conf: Mapping[str, str]
    table_slots: int
    output_rows: int
    block_bytes: int | None
    batch_rows: int
    batch_bytes: int
    open_bytes: int
    log_bytes: int
    memory_bytes: int | None
    job_disk_bytes: int
    spool_bytes: int
    alert_keys: int
    user: str | None
    is_sandboxed: bool
    work_dir: Path
    lookups: Mapping[str, str] = field(default_factory=dict)
    interfaces: Mapping[str, ConfiguredInterface] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    udf: tuple[str, ...] = ()
    hosts: Mapping[str, ConfiguredHost] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None
    warnings: tuple[str, ...] = ()


def load_config(given: Mapping[str, GivenSetting], path: Path | None) -> Config:
    """Return the effective configuration.

    Args:
        given: settings from flags and the environment, by key.
        path: the configuration file; by default the first that exists of $GSCOPE_CONFIG,
            ./gscope.yaml and $XDG_CONFIG_HOME/gscope/gscope.yaml.

    Raises:
        UsageError: a value is invalid, a key unknown, a file that was named is unreadable, or
            another user can have written a file that was not named.
    """
    warnings: tuple[str, ...] = ()
    found = path or _named_file()
    if found is None:
        found, warnings = _found_file()
    contents = read_file(found) if found is not None else FileContents()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        source = given.get(setting.key)
        if source is not None:
            try:
                value = setting.parse(source.text)
            except ValueError as error:
                message = f"{source.origin}: {error}"
                raise UsageError(message) from error
            origins[setting.key] = source.origin
        elif setting.key in contents.values:
            value = contents.values[setting.key]
            origins[setting.key] = contents.places[setting.key]
        else:
            value = setting.default
            origins[setting.key] = "default"
        values[setting.attribute] = value
    imply_mode(values, origins)
    return Config(
        **values,
        interfaces=contents.interfaces,
        sets=contents.sets,
        udf=contents.udf,
        hosts=contents.hosts,
        origins=origins,
        path=found,
        warnings=warnings,
    )


def _named_file() -> Path | None:
    named = os.environ.get(FILE_VARIABLE)
    return Path(named) if named else None


def _found_file() -> tuple[Path | None, tuple[str, ...]]:
    """Return the first readable file of those that are looked for unasked, and warnings on others.

    Raises:
        UsageError: another user can have written the file.
    """
    # Without a home, as in containers, "~" is not expanded.
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    candidates = [Path(FILE_NAME)]
    if Path(home).is_absolute():
        candidates.append(Path(home) / "gscope" / FILE_NAME)
    warnings: list[str] = []
    for candidate in candidates:
        try:
            if not candidate.is_file():
                continue
            with candidate.open("rb") as file:
                fault = fault_of_script(os.fstat(file.fileno()))
        except OSError as error:
            # People run gscope in folders, and with homes, that are not theirs.
            warnings.append(
                f"cannot read the configuration {candidate.absolute()}: {os_reason(error)};"
                " continuing without it"
            )
            continue
        if fault:
            message = (
                f"the configuration {candidate.absolute()} is not used: {fault}; if you trust it,"
                " name it with --config"
            )
            raise UsageError(message)
        return candidate, tuple(warnings)
    return None, tuple(warnings)
