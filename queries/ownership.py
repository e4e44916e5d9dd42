"""Checks that no other user can have written, or can replace, a file that this process trusts.

Compiled kernels, parser tables and class-data archives are executed when they are loaded, and the
folders of runs are deleted when the runs are over. Both are safe only in places that other users
cannot change: each folder on the way there belongs to this user or to root, and is either not
writable by others or has the sticky bit, as /tmp has.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from gscope.queries.os_errors import os_reason

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40


def ensure_private_folder(folder: Path) -> Path:
    """Create ``folder`` (mode 0700) if it is missing, and return its path without links.

    Raises:
        PermissionError: another user can write there, or can replace the folder or one above it.
        OSError: the folder cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := fault_of_folder(folder):
        raise PermissionError(reason)
    return folder.resolve()


def fault_of_folder(folder: Path) -> str | None:
    """Return why ``folder`` cannot be trusted, as one sentence.

    None if only this user and root can change it.
    """
    try:
        place = _walk(folder)
        status = place.lstat()
    except (PermissionError, NotADirectoryError) as error:
        return str(error.args[0] if len(error.args) == 1 else error)
    except OSError as error:
        return f"{folder}: {os_reason(error)}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{place} is not a folder"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"other users can write to {place} (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def is_trusted_file(path: Path) -> bool:
    """Return whether ``path`` is a regular file that only this user and root can have written.

    A link is not. The folder that holds it must be checked as well; see ``fault_of_folder``.
    """
    try:
        status = path.lstat()
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid in _trusted_owners()
        and not status.st_mode & _WRITABLE_BY_OTHERS
    )


def fault_of_script(status: os.stat_result) -> str | None:
    """Return why a file that a user wrote, such as user code, is not executed; None if it may be.

    The reason is half a sentence. Unlike a cache, the file may be writable by a group that only its
    owner is in, as every file is where users have groups of their own (umask 002).

    Args:
        status: the status of the open file.
    """
    if status.st_uid not in _trusted_owners():
        return f"it belongs to another user (uid {status.st_uid})"
    is_open = status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and not _is_own_group(status)
    )
    return (
        f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
        if is_open
        else None
    )


def fault_of_secret(status: os.stat_result) -> str | None:
    """Return why a token or key in a file is exposed; None if only its owner can read it.

    The reason is half a sentence.

    Args:
        status: the status of the open file.
    """
    if status.st_uid not in _trusted_owners():
        return f"it belongs to another user (uid {status.st_uid})"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    open_to_group = stat.S_IRWXG if not _is_own_group(status) else 0
    if status.st_mode & (stat.S_IRWXO | open_to_group):
        return f"other users can read it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _is_own_group(status: os.stat_result) -> bool:
    """Return whether the file's group has its owner's name and no other member."""
    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    is_named_so = group.gr_name == owner.pw_name and group.gr_gid == owner.pw_gid
    return is_named_so and set(group.gr_mem) <= {owner.pw_name}


def _walk(folder: Path) -> Path:
    """Follow ``folder`` step by step from the root, with its links, and return where it ends.

    Raises:
        PermissionError: a folder or link on the way belongs to another user, or others can replace
            it.
        OSError: a step does not exist.
    """
    place = Path("/")
    left = list(reversed(folder.absolute().parts[1:]))
    links = 0
    while left:
        name = left.pop()
        if name == "..":
            place = place.parent
            continue
        _ensure_entries_stay(place)
        place /= name
        status = place.lstat()
        if status.st_uid not in _trusted_owners():
            what = "link" if stat.S_ISLNK(status.st_mode) else "folder"
            message = f"the {what} {place} belongs to another user (uid {status.st_uid})"
            raise PermissionError(message)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                message = f"{folder} passes more than {_MOST_LINKS} links"
                raise PermissionError(message)
            target = place.readlink()
            place = Path("/") if target.is_absolute() else place.parent
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return place


def _ensure_entries_stay(folder: Path) -> None:
    """Refuse a folder in which other users can replace entries that are not theirs.

    Raises:
        PermissionError: they can.
    """
    mode = folder.lstat().st_mode
    if mode & _WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
        message = f"other users can write to {folder} (mode {stat.S_IMODE(mode):04o})"
        raise PermissionError(message)


def _trusted_owners() -> frozenset[int]:
    return frozenset({os.geteuid(), 0})
