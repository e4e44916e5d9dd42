"""The user to which processes that read packets change if root starts them."""

from __future__ import annotations

import os
import pwd
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_USERS = ("gscope", "nobody")
"""Default users; the first that exists is used."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and its group.

    Attributes:
        name: name for messages.
        uid: id of the user.
        gid: id of its primary group, the only group that the process keeps.
    """

    name: str
    uid: int
    gid: int


def chosen_identity(name: str | None) -> Identity | None:
    """Return the user to change to; None to keep the current one.

    Args:
        name: a user name or uid as given on the command line; None for the default. Only root can
            change to another user.

    Raises:
        UsageError: there is no such user, or only root could change to it.
    """
    if name is None:
        return _default() if os.geteuid() == 0 else None
    identity = _named(name)
    if identity.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        message = f"--user {name}: only root can change to another user"
        raise UsageError(message)
    return identity


def become(identity: Identity) -> None:
    """Change all threads to ``identity`` permanently, which drops their capabilities.

    Raises:
        OSError: the kernel refuses.
    """
    os.setgroups([])
    os.setresgid(identity.gid, identity.gid, identity.gid)
    os.setresuid(identity.uid, identity.uid, identity.uid)


@contextmanager
def acting_as(identity: Identity) -> Iterator[None]:
    """Make this process, which is root, access files as ``identity`` in all of its threads."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(identity.gid)
    os.seteuid(identity.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def _default() -> Identity | None:
    for name in DEFAULT_USERS:
        try:
            return _of_entry(pwd.getpwnam(name))
        except KeyError:
            continue
    # An image without a user database: the uid that the kernel uses for unknown users.
    return Identity("65534", 65534, 65534)


def _named(name: str) -> Identity:
    try:
        return _of_entry(pwd.getpwnam(name))
    except KeyError:
        pass
    if name.isascii() and name.isdigit() and 0 <= int(name) < (1 << 32) - 1:
        uid = int(name)
        try:
            return _of_entry(pwd.getpwuid(uid))
        except KeyError:
            return Identity(name, uid, uid)
    message = f"--user {name}: unknown user; expected a user name or uid"
    raise UsageError(message)


def _of_entry(entry: pwd.struct_passwd) -> Identity:
    return Identity(entry.pw_name, entry.pw_uid, entry.pw_gid)
