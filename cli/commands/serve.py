"""``gscope serve``: answers in files for other programs to pull, over Arrow Flight."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import with_config
from gscope.cli.commands.options import HeadedCommand
from gscope.cli.completion import candidates
from gscope.cli.config.setting_groups import OF_LISTENERS
from gscope.cli.config.settings import SETTINGS
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config


@click.command(cls=HeadedCommand, short_help="Serve answers in files over Arrow Flight.")
@click.argument(
    "folder",
    metavar="DIR",
    shell_complete=candidates.folders,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@with_config(
    without=tuple(each.key for each in SETTINGS if each.key not in OF_LISTENERS), has_udf=False
)
def serve(folder: Path, config: Config) -> int:
    """Serve the answers in DIR, which runs write there with -o parquet or -o arrow.

    Each answer is a flight, which pyarrow, pandas and DuckDB pull with Arrow Flight. Every batch
    comes with a position; a client that stores it with the rows gets each row once, whatever is
    killed. Runs are not affected: only their files are read, for as long as they exist. Ctrl-C or
    SIGTERM ends it.

    \b
      gscope run flow -i eth0 -o parquet -w answers -d
      gscope serve answers --listen 127.0.0.1:9490 --token-file token

    Exit codes: 0 success, 1 it cannot serve, 2 usage error.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    from gscope.cli.config.listening import listen_request, listening
    from gscope.cli.serve.service import serve as serve_folder

    if config.listen is None:
        message = "name the address with --listen HOST:PORT, such as 127.0.0.1:9490"
        raise UsageError(message)
    with listening(listen_request(config)) as settings:
        serve_folder(folder, settings, _notify)
    return 0


def _notify(text: str) -> None:
    click.echo(f"gscope: {text}", err=True)
