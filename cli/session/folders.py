"""Folders that are prepared for processes without privileges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.capture.process.confinement.plan import Confinement
    from gscope.cli.config.effective import Config


def prepared(folder: Path, further: Iterable[str], config: Config) -> Confinement:
    """Prepare a folder, and further ones in it, for processes without privileges.

    Raises:
        UsageError: a folder cannot be created, or the user does not exist.
    """
    from gscope.capture.process.confinement.prepare import prepare

    try:
        return prepare(folder, further, config.user, is_sandboxed=config.is_sandboxed)
    except OSError as error:
        message = f"cannot prepare {folder}: {os_reason(error)}"
        raise UsageError(message) from error
