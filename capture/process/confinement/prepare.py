"""Folders and a cache that the supervisor prepares for processes that run as another user."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.identity import chosen_identity
from gscope.capture.process.confinement.plan import Confinement
from gscope.queries.ownership import fault_of_folder
from gscope.queries.run_folder.layout import CAPTURE_FOLDER, CONFINEMENT_FILE, TEMPORARY_FOLDER
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.process.confinement.identity import Identity

_SYSTEM_CACHE = Path("/var/cache/gscope")


def prepare(
    run_dir: Path, folders: Iterable[str], user: str | None, *, is_sandboxed: bool
) -> Confinement:
    """Make the folder of a run ready for its processes, and return how they are confined.

    Args:
        run_dir: the folder of the run, which belongs to this user.
        folders: folders in it to which processes of the run write, besides the usual ones.
        user: the user to whom they change; None for the default.
        is_sandboxed: see ``Confinement``.

    Raises:
        UsageError: there is no such user, or only root could change to it.
        OSError: a folder cannot be created.
    """
    identity = chosen_identity(user)
    for folder in (CAPTURE_FOLDER, TEMPORARY_FOLDER, *folders):
        give_folder(run_dir / folder, identity)
    if identity is None:
        confinement = Confinement(is_sandboxed=is_sandboxed)
    else:
        _let_pass(run_dir, identity)
        cache = _cache_of(identity)
        confinement = Confinement(identity, is_sandboxed, None if cache is None else str(cache))
    confinement.write(run_dir)
    let_read(run_dir / CONFINEMENT_FILE, confinement)
    return confinement


def let_pass(folder: Path, identity: Identity | None) -> None:
    """Allow the user to pass a folder of root's, but not to list or write it."""
    if identity is not None:
        os.chown(folder, -1, identity.gid)
        folder.chmod(0o710)


def give_folder(folder: Path, identity: Identity | None) -> None:
    """Create a folder (mode 0700) of ``identity``, who gets what an earlier process left, too.

    Raises:
        OSError: the folder cannot be created.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    uid, gid = (os.geteuid(), os.getegid()) if identity is None else (identity.uid, identity.gid)
    if folder.lstat().st_uid == uid:
        return
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, uid, gid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(folder, uid, gid, follow_symlinks=False)


def let_read(path: Path, confinement: Confinement) -> None:
    """Allow the user of the run's processes to read a file; others cannot enter its folder."""
    if confinement.identity is not None:
        path.chmod(0o644)


def can_reach(path: Path, identity: Identity) -> bool:
    """Return whether ``identity`` can pass all folders above ``path``, by their modes."""
    return all(may(parent, identity, stat.S_IXOTH) for parent in path.absolute().parents)


def may(path: Path, identity: Identity, permission: int) -> bool:
    """Return whether ``identity`` has a permission for ``path``, by its mode.

    True if it does not exist.

    Args:
        path: a file or folder.
        identity: a user.
        permission: a bit as others have it, such as ``stat.S_IROTH``.
    """
    try:
        status = path.stat()
    except OSError:
        return True
    if identity.uid in (0, status.st_uid):
        return identity.uid == 0 or bool(status.st_mode & permission << 6)
    is_group = status.st_gid == identity.gid
    return bool(status.st_mode & (permission << 3 if is_group else permission))


def _let_pass(run_dir: Path, identity: Identity) -> None:
    """Allow the user to pass to its folders in the run's, but not to list or write those above."""
    passed = [run_dir]
    # The user is responsible for any other work dir; ``view.py`` makes a closed one reachable.
    if run_dir.parent.name == f"gscope-{os.geteuid()}":
        passed.append(run_dir.parent)
    for folder in passed:
        let_pass(folder, identity)


def _cache_of(identity: Identity) -> Path | None:
    """Create and return the cache folder of a user; None if it can be created nowhere."""
    places = []
    base = cache_folder()
    if base is not None and can_reach(base, identity):
        # It was created for root alone. Other users may pass it, but neither list it nor write to
        # it.
        base.chmod(0o711)
        places.append(base)
    places.append(_SYSTEM_CACHE)
    if base is not None:
        places.append(base)
    for place in places:
        with suppress(OSError):
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            if fault_of_folder(place) is None:
                own = place / f"user-{identity.uid}"
                give_folder(own, identity)
                return own
    return None
