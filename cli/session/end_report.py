"""What a run reports at its end: lines on standard error, and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.cli.config.effective import Config
    from gscope.cli.render.outcome import Outcome

EXIT_FAILED = 1
EXIT_LOST = 3


@dataclass(frozen=True, slots=True)
class EndReport:
    """What a run prints to standard error at its end.

    Attributes:
        is_quiet: whether only errors are printed.
        has_timings: whether the duration of each phase is printed.
        is_strict: whether loss is an error, which ``is_quiet`` does not hide.
    """

    is_quiet: bool
    has_timings: bool
    is_strict: bool = False

    def lines(self, outcome: Outcome, rows: Mapping[str, int]) -> Iterator[str]:
        """Yield the lines to print.

        Args:
            outcome: the outcome of the run.
            rows: number of rows by query.
        """
        from gscope.cli.render.summary import failure_lines, is_whole, summary_lines
        from gscope.cli.render.timings import timing_lines

        if not self.is_quiet or (self.is_strict and not is_whole(outcome)):
            yield from summary_lines(outcome, rows)
        if self.has_timings:
            yield from timing_lines(outcome)
        # As with cat, the other inputs are answered, and the exit code reports the failure.
        for line in failure_lines(outcome.finished_capture):
            yield f"gscope: {line}"


def exit_code(outcome: Outcome, config: Config) -> int:
    """Return the exit code of a run; a signal that ended it comes before losses."""
    from gscope.cli.render.summary import is_whole

    if outcome.finished_capture.failed:
        return EXIT_FAILED
    if outcome.signal:
        return 128 + outcome.signal
    if outcome.finished_capture.refused:
        return EXIT_FAILED
    return EXIT_LOST if config.is_strict and not is_whole(outcome) else 0
