"""Runs a command as another user who can reach Python.

``python -m tests.safety.as_user UID GID COMMAND…``. Root's Python may be in a folder that is closed
to others; the command gets a view in which it is not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gscope.capture.process.confinement.confine import program_folders
from gscope.capture.process.confinement.identity import Identity
from gscope.capture.process.confinement.view import make_reachable, unreachable


def main() -> None:
    """Become the user and the command."""
    uid, gid = map(int, sys.argv[1:3])
    identity = Identity("test", uid, gid)
    if closed := unreachable([*program_folders(), Path.cwd()], identity):
        make_reachable(closed)
    os.chdir(Path.cwd())
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
