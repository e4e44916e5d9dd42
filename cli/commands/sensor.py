"""What ``--no-job`` and ``--listen`` ask for together: a sensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.config.listening import ListenRequest
    from gscope.cli.config.saving import SaveRequest


def requested_sensor(
    config: Config, output: OutputRequest, saving: SaveRequest | None, *, has_no_job: bool
) -> ListenRequest | None:
    """Return where a sensor serves its rows; None for a run that answers its queries itself.

    Raises:
        UsageError: options contradict each other, or one is missing.
    """
    from gscope.cli.config.listening import listen_request
    from gscope.cli.config.row_metrics import is_requested
    from gscope.cli.config.shedding import ensure_unsampled

    if not has_no_job:
        if config.listen is not None and config.origins["listen"] in ("--listen", "$GSCOPE_LISTEN"):
            message = (
                "--listen serves the rows of a run that does not answer its queries itself; add "
                "--no-job, or leave --listen out"
            )
            raise UsageError(message)
        return None
    for option, is_given in (
        ("-w", output.folder is not None),
        ("--to", bool(config.destinations)),
        ("--on-row", bool(config.row_commands)),
        ("--metrics-of", is_requested(config)),
        ("--alert", bool(config.alerts)),
        ("--save-packets", saving is not None),
    ):
        if is_given:
            message = (
                f"{option} has no meaning with --no-job: answers are written where the rows are "
                "read"
            )
            raise UsageError(message)
    ensure_unsampled(config)
    return listen_request(config)
