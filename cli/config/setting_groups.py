"""Groups of settings that several commands leave out.

Where a group has a whole section of ``gscope.yaml``, its keys are not listed: new ones join it.
"""

from __future__ import annotations

from gscope.cli.config.settings import SETTINGS


def _within(*sections: str) -> tuple[str, ...]:
    """Return the keys of all settings in ``sections``."""
    return tuple(each.key for each in SETTINGS if each.key.partition(".")[0] in sections)


OF_METRICS = _within("metrics")
"""Settings of the gauges that the rows of live runs become."""

OF_ANSWERS = (*_within("output"), *OF_METRICS, "limits.spool", "limits.alert_keys")
"""Settings of what becomes of answers: their form, their destinations, their alerts."""

OF_SHEDDING = _within("shedding")
"""Settings of samples, which the host that answers decides."""

OF_JOBS = (
    *_within("spark"),
    "partitions",
    "lookups",
    "failure.step_timeout",
    "limits.job_disk",
)
"""Settings of the HFTA job."""

OF_CAPTURES = (
    "limits.table_slots",
    "limits.output_rows",
    "limits.block",
    "limits.batch_rows",
    "limits.batch",
    "limits.open",
    "limits.memory",
)
"""Limits of LFTAs and of the memory of a capture."""

OF_LISTENERS = ("listen", "token_file", *_within("tls"))
"""Settings of what serves other hosts."""

OF_RUNS = tuple(each.key for each in SETTINGS if each.key != "lookups")
"""Settings that only commands that run queries use."""
