"""The view of a run, if its command line asks for one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gscope.cli.render.progress import RunObserver
    from gscope.cli.session.session import Session
    from gscope.cli.view.live_view import LiveView


def is_viewed(session: Session) -> bool:
    """Return whether the answers of a run go to a view; a run for other hosts has no answers."""
    from gscope.cli.sinks.open_sink import VIEW

    serves = session.listener is not None or session.requested is not None
    return session.config.output_format == VIEW and not serves


def ensure_viewable(session: Session) -> None:
    """Check that there is a terminal if the view is requested.

    Raises:
        UsageError: there is none, or answers go to files.
    """
    if not is_viewed(session):
        return
    if session.folder is not None:
        message = (
            "a view is not written to files; leave out -w, or choose csv, ndjson, parquet or arrow"
        )
        raise UsageError(message)
    from gscope.cli.view.terminal.screen import ensure_terminal

    ensure_terminal()


def live_view(
    session: Session, run_dir: Path, name: str, observer: RunObserver
) -> AbstractContextManager[LiveView | None]:
    """Return the view of a run; None if its command line asks for none.

    Args:
        session: the run.
        run_dir: its folder.
        name: its name.
        observer: the observer before and after the view.
    """
    if not is_viewed(session):
        return nullcontext()
    # Imported only here: a run without a view loads nothing of it.
    from gscope.cli.view.live_view import LiveView

    return LiveView(observer, name, run_dir, is_live=session.is_live)
