"""All alerts of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.cli.outlets.alert import Alert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from gscope.cli.outlets.alert_columns import AlertColumns
    from gscope.queries.gsql.alerts.rule import AlertRule


class Alerts:
    """Turns rows of the results that have alerts into events.

    Args:
        rules: the alerts with the columns that they read.
        most_keys: the most keys that each keeps in mind.
        report: shows a sentence to the user.
    """

    def __init__(
        self,
        rules: Sequence[tuple[AlertRule, AlertColumns]],
        most_keys: int,
        report: Callable[[str], None],
    ) -> None:
        self._rules = rules
        self._most_keys = most_keys
        self._report = report
        self._alerts: list[Alert] = []
        self._reported: set[str] = set()

    def restore(self, before: Mapping[str, Any]) -> None:
        """Begin, from the last ``state`` on record; {} for a new run.

        An alert that was written otherwise then begins without keys.
        """
        self._alerts = [
            Alert(rule, columns, self._most_keys, before.get(rule.text, {}))
            for rule, columns in self._rules
        ]

    def state(self) -> dict[str, Any]:
        """Return the state of each alert, by its text."""
        return {alert.rule.text: alert.state() for alert in self._alerts}

    def accounts(self) -> list[dict[str, Any]]:
        """Return what became of the keys and rows of each alert, since the run began."""
        return [alert.account() for alert in self._alerts]

    def judges(self, query: str) -> bool:
        """Return whether an alert reads the rows of ``query``."""
        return any(alert.rule.query == query for alert in self._alerts)

    def take(self, query: str, table: pa.Table) -> list[bytes]:
        """Return the events of the epochs of ``query`` that close with its next rows."""
        events = []
        for alert in self._alerts:
            if alert.rule.query == query:
                events += alert.take(table)
                self._report_ignored(alert)
        return events

    def advance(self, query: str, bound: int) -> list[bytes]:
        """Return the events of the epochs of ``query`` below ``bound``, which no row follows."""
        alerts = [alert for alert in self._alerts if alert.rule.query == query]
        return [event for alert in alerts for event in alert.advance(bound)]

    def finish(self) -> Iterator[tuple[str, list[bytes]]]:
        """Yield the events of the last epoch of each result; report what was not judged."""
        for alert in self._alerts:
            yield alert.rule.query, alert.finish()
            name = alert.rule.name
            if alert.ignored_keys:
                self._report(
                    f"alert {name}: {alert.ignored_keys:,} rows that count for raising were not"
                    f" judged, because {self._most_keys:,} other keys were kept in mind"
                )
            if alert.late_rows:
                self._report(f"alert {name}: {alert.late_rows:,} rows came too late to be judged")

    def _report_ignored(self, alert: Alert) -> None:
        if alert.ignored_keys and alert.rule.name not in self._reported:
            self._reported.add(alert.rule.name)
            self._report(
                f"alert {alert.rule.name}: keeps {self._most_keys:,} keys in mind and ignores"
                " others; raise --alert-keys or the threshold"
            )
