"""Settings of the HFTA job of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.shedding import chosen_shedding
from gscope.engine.settings import JobSettings

if TYPE_CHECKING:
    from gscope.cli.session.session import Session


MANY_QUERIES = 8
"""Query texts that take as long to compile as the job takes to load."""


def loads_early(session: Session) -> bool:
    """Return whether the HFTA job loads while the queries compile.

    A live capture lets packets in first, which it would do later beside a Java that starts. Many
    queries compile sooner alone, and the job then loads beside the capture.
    """
    if session.is_live:
        return False
    asked = len(session.request.queries) + len(session.request.expressions)
    return asked < MANY_QUERIES or not job_settings(session).starts_spark_when_needed


def job_settings(session: Session) -> JobSettings:
    """Return the settings of the HFTA job of ``session``."""
    config = session.config
    return JobSettings(
        sample_rate=chosen_shedding(config).rate,
        cores=config.spark_cores,
        heap_bytes=config.spark_memory_bytes,
        expected_bytes=session.expected_bytes,
        is_live=session.is_live,
        disk_bytes=config.job_disk_bytes,
        reports_bounds=bool(config.alerts),
        asks_for_heartbeats=config.heartbeat_mode.is_on_demand,
        latent_interfaces=tuple(i.name for i in session.interfaces if i.is_latent),
        master=config.spark_master,
        driver_host=config.spark_driver_host,
        executor_python=config.spark_python,
        spark_conf=dict(config.spark_conf),
        file_port=config.spark_file_port or 0,
    )
