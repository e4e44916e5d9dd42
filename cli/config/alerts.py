"""The settings of alerts on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.quantities import parse_count
from gscope.cli.config.setting import Kind, Setting

if TYPE_CHECKING:
    from gscope.queries.gsql.alerts.rule import AlertRule

DEFAULT_ALERT_KEYS = 10_000
"""The most keys that an alert keeps in mind at a time."""


def parse_alerts(text: str) -> tuple[AlertRule, ...]:
    """Return the alerts of lines with one each.

    Raises:
        ValueError: a line is not an alert, or two have the same name; the message says what is
            expected.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ()
    # Imported only where there are alerts, to keep start-up short.
    from gscope.queries.gsql.alerts.parser import parse_alert

    found = tuple(map(parse_alert, lines))
    names = [rule.name for rule in found]
    for rule in found:
        if names.count(rule.name) > 1:
            message = (
                f"two alerts are called {rule.name}; name one of them: 'NAME = {rule.query}: …'"
            )
            raise ValueError(message)
    return found


def show_alerts(rules: tuple[AlertRule, ...]) -> str:
    """Return lines that ``parse_alerts`` reads."""
    return "\n".join(rule.text for rule in rules)


ALERTS = Kind("ALERT", parse_alerts, show_alerts, is_repeated=True, is_list=True)

ALERT = Setting(
    "output.alerts",
    "alerts",
    ALERTS,
    (),
    "send events instead of the rows of a query: 'QUERY: raise COLUMN > NUMBER for N epochs,"
    " clear COLUMN < NUMBER or silent for N epochs' sends one when the alert is raised for a group"
    " and one when it is cleared. QUERY alone is raised by any row, and cleared by an epoch without"
    " one. Needs --to or --on-row. May be repeated. Default: none",
    flag="--alert",
)

ALERT_KEYS = Setting(
    "limits.alert_keys",
    "alert_keys",
    Kind("N", parse_count, str),
    DEFAULT_ALERT_KEYS,
    "track at most N groups for each alert; rows of further groups are ignored and counted",
    flag="--alert-keys",
)

ALERT_SETTINGS = (ALERT, ALERT_KEYS)
