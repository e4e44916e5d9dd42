"""What ``--record`` asks for: hosts capture now, and a later run answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.commands.run import ServiceRequest
    from gscope.cli.session.session import Session


def refuse_answers(output: OutputRequest, service: ServiceRequest) -> None:
    """Refuse options about answers, of which a recording has none.

    Raises:
        UsageError: one is given.
    """
    for option, is_given in (
        ("-w", output.folder is not None),
        ("--detach", service.is_detached),
        ("--metrics", service.metrics is not None),
        ("--log-file", service.log_file is not None),
    ):
        if is_given:
            message = f"{option} has no meaning with --record; give it to the run that answers"
            raise UsageError(message)


def recorded(session: Session, output: OutputRequest) -> int:
    """Let the hosts of a run record, and return the exit code."""
    from gscope.cli.render.progress import NullProgress
    from gscope.cli.session.recording import record

    return record(session, NullProgress(is_quiet=output.is_quiet))
