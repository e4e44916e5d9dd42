"""Another path to a run's folder, for libraries that do not accept every path.

Spark splits lists of folders at commas and expands brackets, addresses of sockets are URIs, and
Java decodes its options by the locale. If the path of a run's folder has other than plain
characters, the processes of the run get a path through a link. The links are in a private folder;
each exists until its run ends.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from gscope.errors import UsageError
from gscope.queries.ownership import ensure_private_folder

_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
_PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/run")  # only below a folder whose owner is checked


def is_plain(path: Path) -> bool:
    """Return whether every library accepts ``path``."""
    return _PLAIN.fullmatch(str(path)) is not None


def plain_path(folder: Path) -> Path:
    """Return a path to ``folder`` that every library accepts: its own, or that of a link.

    Raises:
        UsageError: no folder can hold a link.
    """
    if is_plain(folder):
        return folder
    name = sha256(os.fsencode(folder)).hexdigest()[:24]
    for place in dict.fromkeys((tempfile.gettempdir(), *_PLACES)):
        if not is_plain(Path(place)):
            continue
        with suppress(OSError):
            links = ensure_private_folder(Path(place) / f"gscope-{os.geteuid()}-links")
            _remove_dangling(links)
            link = links / name
            link.unlink(missing_ok=True)
            link.symlink_to(folder)
            return link
    message = (
        f"cannot use {str(folder)!r}: it has characters other than letters, digits and . _ - "
        "/, and no folder can hold a link to it; name another work dir with --work-dir"
    )
    raise UsageError(message)


def forget(path: Path) -> None:
    """Delete the link that ``plain_path`` returned; a folder is left alone."""
    if path.is_symlink():
        with suppress(OSError):
            path.unlink()


def _remove_dangling(links: Path) -> None:
    """Delete links to folders that do not exist any more."""
    for link in links.iterdir():
        if stat.S_ISLNK(link.lstat().st_mode) and not link.exists():
            with suppress(OSError):
                link.unlink()
