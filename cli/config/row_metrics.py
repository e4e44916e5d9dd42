"""The settings of results whose rows are metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.quantities import parse_count
from gscope.cli.config.setting import Kind, Setting
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config

DEFAULT_METRICS_SERIES = 10_000


def parse_results(text: str) -> tuple[str, ...]:
    """Return the names of results on lines with one each.

    Raises:
        ValueError: one is given twice.
    """
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    for name in found:
        if found.count(name) > 1:
            message = f"the result {name} is given twice"
            raise ValueError(message)
    return found


def show_results(names: tuple[str, ...]) -> str:
    """Return lines that ``parse_results`` reads."""
    return "\n".join(names)


RESULTS = Kind("QUERY", parse_results, show_results, is_repeated=True, is_list=True)

ROW_METRICS_SETTINGS = (
    Setting(
        "metrics.of",
        "metrics_of",
        RESULTS,
        (),
        "show the rows of the latest complete epoch of the result QUERY as gauges of --metrics,"
        " gscope_row_<QUERY>_<COLUMN>: columns that an aggregate computes are values, the others"
        " are labels. May be repeated. Default: none",
    ),
    Setting(
        "metrics.series",
        "metrics_series",
        Kind("N", parse_count, str),
        DEFAULT_METRICS_SERIES,
        "show at most N series of each result of --metrics-of; further rows are left out and"
        " counted",
    ),
)


def is_requested(config: Config) -> bool:
    """Return whether the command or its environment names results, not only ``gscope.yaml``."""
    return config.origins.get("metrics.of") in ("--metrics-of", "$GSCOPE_METRICS_OF")


def ensure_served(config: Config, *, is_served: bool) -> None:
    """Check that there is an endpoint for the results that the command names.

    Raises:
        UsageError: there is none.
    """
    if is_requested(config) and not is_served:
        message = "--metrics-of needs the address at which metrics are served: --metrics PORT"
        raise UsageError(message)
