"""The log of a run: its events, and what its processes write to standard error. Bounded."""

from __future__ import annotations

import logging
import logging.handlers
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.queries.run_folder.layout import LOGS_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.rundir.records import RunRecord

FILE = "run.log"
MAX_FILE_BYTES = 1 << 20
KEPT_FILES = 4
MAX_LINE = 4_096
"""Characters of one line; a longer line of a process is truncated."""


class RunLog:
    """The file ``logs/run.log`` in a run's folder, one line for each event, and its older parts.

    May be used from several threads. On a full disk lines are lost, but the run goes on.

    Args:
        run_dir: the run's folder.
        extra: a further file to write to, that of ``--log-file``; None: none.

    Raises:
        OSError: a file cannot be created.
    """

    def __init__(self, run_dir: Path, extra: Path | None = None) -> None:
        folder = run_dir / LOGS_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        self._logger = logging.Logger(f"gscope.{run_dir.name}", logging.INFO)
        try:
            for path in (folder / FILE, *([extra] if extra is not None else ())):
                handler = _Rotating(
                    path, maxBytes=MAX_FILE_BYTES, backupCount=KEPT_FILES, encoding="utf-8"
                )
                handler.setFormatter(_stamped())
                self._logger.addHandler(handler)
        except OSError:
            self.close()
            raise

    def note(self, source: str, text: str) -> None:
        """Write a line, or one for each line of ``text``.

        Args:
            source: ``run``, or the name of the process that wrote the text.
            text: the lines.
        """
        for line in text.splitlines():
            record = logging.LogRecord(source, logging.INFO, "", 0, line[:MAX_LINE], None, None)
            self._logger.handle(record)

    def on_change(self, before: RunRecord, after: RunRecord) -> None:
        """Log what changed in the run's record."""
        if after.state != before.state:
            failure = f": {after.failure}" if after.failure else ""
            self.note("run", f"{after.state}{failure}")
        for name, process in after.processes.items():
            known = before.processes.get(name)
            if known is not None and process.restarts_total > known.restarts_total:
                self.note("run", f"{name} {process.restarts[-1].reason}; restarting it")
            elif process.pid is not None and (known is None or known.pid != process.pid):
                self.note("run", f"{name} started as process {process.pid}")

    def close(self) -> None:
        """Close the files; harmless when called twice. Later lines are discarded."""
        for handler in list(self._logger.handlers):
            self._logger.removeHandler(handler)
            with suppress(OSError):
                handler.close()
        self._logger.addHandler(logging.NullHandler())


class _Rotating(logging.handlers.RotatingFileHandler):
    """Discards lines that cannot be written: there is no better place to report them."""

    def handleError(self, _record: logging.LogRecord) -> None:  # the library's name
        return


def _stamped() -> logging.Formatter:
    """Return a formatter of lines with the time, UTC to the millisecond."""
    formatter = logging.Formatter("%(asctime)s %(name)s: %(message)s")
    formatter.converter = time.gmtime
    formatter.default_time_format = "%Y-%m-%dT%H:%M:%S"
    formatter.default_msec_format = "%s.%03dZ"
    return formatter
