"""The user's cache folder: kernels, parser tables and class-data archives, slow to compute."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import ensure_private_folder, is_trusted_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REPORTED = "reported"
"""In the folder that replaces the usual one, the file that names the latter once it is reported."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the first candidate that this user, and no other, can write to; None if none is.

    The candidates are ``$XDG_CACHE_HOME/gscope``, ``~/.cache/gscope``, and ``gscope-<uid>/cache``
    among temporary files. The last serves users without a home, such as the numeric users of
    containers.

    Args:
        environ: the environment; by default that of this process.
    """
    for folder in _candidates(os.environ if environ is None else environ):
        if _fault(folder) is None:
            return folder.resolve()
    return None


def unusable_cache(environ: Mapping[str, str] | None = None) -> str | None:
    """Return one sentence on a usual cache folder that cannot be used, with the reason and remedy.

    None if it can be used, or if a call has reported it before, as the folder that replaces it
    records. If there is none, each call reports it.

    Args:
        environ: the environment; by default that of this process.
    """
    environment = os.environ if environ is None else environ
    usual = next(_candidates(environment))
    reason = _fault(usual)
    if reason is None:
        return None
    place = cache_folder(environment)
    if place is not None:
        with suppress(OSError):
            if keep_text(place / _REPORTED, f"{usual}\n"):
                return None
    consequence = (
        "each start compiles them again"
        if place is None
        else f"{place} replaces it until temporary files are deleted"
    )
    return (
        f"compiled kernels cannot be kept in {usual}: {reason}; {consequence}. "
        "Set XDG_CACHE_HOME to a folder that only you can write to"
    )


def keep_text(path: Path, text: str) -> bool:
    """Ensure that the file ``path`` holds ``text``, and return whether it did so before.

    Processes may do this at once: none reads a part of a text, and the file that is there first
    stays. A file that holds the text already keeps its time, by which a compiler recognises it.

    Args:
        path: a file in a folder that only this user can write to.
        text: all of its contents, written as UTF-8.

    Raises:
        OSError: the file cannot be written.
    """
    content = text.encode()
    if _holds(path, content):
        return True
    descriptor, name = tempfile.mkstemp(".tmp", f"{path.stem}.", path.parent)
    staged = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        with suppress(OSError):  # another process was faster, or the file system has no links
            os.link(staged, path)
        if not _holds(path, content):
            staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
    return False


def _fault(folder: Path) -> str | None:
    """Return why a folder cannot be the cache; None if it can. Creates it if it is missing."""
    try:
        found = ensure_private_folder(folder)
    except OSError as error:
        return os_reason(error)
    is_effective = os.access in os.supports_effective_ids
    if os.access(found, os.W_OK | os.X_OK, effective_ids=is_effective):
        return None
    return "this user cannot write to it"


def _holds(path: Path, content: bytes) -> bool:
    return is_trusted_file(path) and path.read_bytes() == content


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    if named.startswith("/"):
        yield Path(named) / "gscope"
    elif (home := environ.get("HOME") or _home()).startswith("/"):
        yield Path(home) / ".cache" / "gscope"
    yield Path(tempfile.gettempdir()) / f"gscope-{os.geteuid()}" / "cache"


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        # Neither $HOME nor an entry in the user database.
        return ""
