"""The identity of a log: a random name, stored in its folder.

Sequence numbers begin at 0 in every log. A reader on another host, which keeps its cursors for
itself, notices by the identity that a sensor has begun a new log, to which they do not apply.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError
from gscope.queries.run_folder.whole_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY_NAME = "identity"

_PATTERN = re.compile(r"[0-9a-f]{32}")


def log_identity(folder: Path) -> str:
    """Return the identity of the log in ``folder``, making and storing it if there is none.

    Raises:
        StreamError: it cannot be read or stored, or is damaged.
    """
    path = folder / IDENTITY_NAME
    with plain_errors("read", path):
        if not path.exists():
            replace_file(path, secrets.token_hex(16), is_durable=True)
        found = path.read_text(encoding="ascii", errors="replace")
    if not _PATTERN.fullmatch(found):
        message = f"the identity {path} of the stream log is damaged"
        raise StreamError(message)
    return found
