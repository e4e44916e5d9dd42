"""The early start of a capture daemon: what its supervisor and the daemon agree on.

Most of a daemon's start is the import of libraries. The daemon of a replay is therefore started
while the queries are compiled, and waits for its settings with all privileges that it has. So it
loads only what starts no thread, and reads nothing that another user can write.
"""

from __future__ import annotations

import os

EARLY = "early"
"""The argument of a daemon that is started early."""

BEGIN = "capture"
"""The line on the supervisor's pipe after which the settings are there."""


def await_settings(supervisor_fd: int) -> None:
    """Return once the supervisor has written ``BEGIN``; exit if it has died."""
    line = f"{BEGIN}\n".encode()
    received = b""
    while received != line:
        # No more than that line: what follows is the end of the pipe, which the daemon follows.
        part = os.read(supervisor_fd, len(line) - len(received))
        if not part or not line.startswith(received + part):
            os._exit(1)
        received += part
