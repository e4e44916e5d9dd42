"""A run for other hosts: it captures, and serves the rows of its LFTAs, or answers made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from gscope.capture.settings import ListenerSettings
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.cli.session.session import Session
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.queries.plan.program import Program


class NoAnswers:
    """The sink of a run that delivers no result."""

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Expect no result."""
        raise AssertionError(query, schema)

    def write(self, query: str, table: pa.Table) -> None:
        """Expect no rows."""
        raise AssertionError(query, table)

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:  # noqa: ARG002  # the protocol's
        """Return the state of the sink: it has none."""
        return {}

    def publish(self) -> None:
        """Show nothing."""

    def close(self, *, is_complete: bool) -> None:
        """Close nothing."""


def serve_rows(
    session: Session,
    listener: ListenerSettings,
    run_dir: RunDir,
    supervisor: Supervisor,
    program: Program,
) -> None:
    """Capture until the input ends, and serve until every reader has acknowledged everything.

    A program with streams of answers needs the HFTA job as well.

    Raises:
        UsageError: the queries save packets, or have no LFTA.
        GscopeError: the capture daemon was given up, or the user ended the run.
    """
    from gscope.cli.config.capture_files import ensure_there
    from gscope.cli.config.capture_settings import capture_settings
    from gscope.cli.delivery.delivery import Delivery
    from gscope.cli.delivery.stream_reader import Passthrough

    if program.saved_packets:
        message = "a run without a job saves no packets; leave save_packets out of DEFINE"
        raise UsageError(message)
    if not program.lftas:
        message = "the queries read no packets, so that a sensor has nothing to serve"
        raise UsageError(message)
    supervisor.reached("queries compiled")
    ensure_there(session.interfaces)
    settings = capture_settings(
        program, session.interfaces, session.config, session.limits, session.relay
    )
    # The job reads what it answers; all other rows are for other hosts alone.
    readers = settings.consumers if program.answers else ()
    supervisor.start_capture(program, replace(settings, consumers=readers, listener=listener))
    try:
        if program.answers:
            _answer(session, run_dir, supervisor, program)
        else:
            delivered = replace(program, results=(), orders=())
            supervisor.run(
                Delivery(delivered, supervisor.outputs, NoAnswers()),
                Passthrough(delivered, run_dir.path),
            )
    finally:
        supervisor.hide_progress()


def _answer(session: Session, run_dir: RunDir, supervisor: Supervisor, program: Program) -> None:
    """Answer what other hosts read of this one."""
    from gscope.cli.config.cluster import job_secrets
    from gscope.cli.delivery.answer_feed import AnswerFeed
    from gscope.cli.session.job_settings import job_settings

    supervisor.start_job(job_settings(session), job_secrets(session.config))
    feed = AnswerFeed(program, supervisor.outputs, run_dir.path)
    supervisor.run(feed, feed)
