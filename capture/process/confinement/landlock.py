"""Landlock: the files and TCP ports that this thread and its children may use; see landlock(7).

It is called by system call numbers, because the C library has no functions for it. The ``landlock``
package on PyPI has only pre-releases, and gscope needs only the three calls below.
"""

from __future__ import annotations

import ctypes
import os
import stat
from contextlib import suppress
from enum import IntFlag
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.kernel_calls import system_call
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GIVE_VERSION = 1
_PATH_BENEATH = 1


class Access(IntFlag):
    """Rights over files; the values are the kernel's bits."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


READ = Access.READ_FILE | Access.READ_DIR
WRITE = (
    Access.WRITE_FILE
    | Access.REMOVE_DIR
    | Access.REMOVE_FILE
    | Access.MAKE_DIR
    | Access.MAKE_REG
    | Access.MAKE_SOCK
    | Access.MAKE_FIFO
    | Access.MAKE_SYM
    | Access.REFER
    | Access.TRUNCATE
)
_OF_FILES = (
    Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE | Access.IOCTL_DEV
)
"""Rights that a rule for a file may grant, unlike one for a folder."""

_ALL = Access((1 << 16) - 1)
_KNOWN = {1: Access.MAKE_SYM, 2: Access.REFER, 3: Access.TRUNCATE, 4: Access.TRUNCATE}
"""The last right that each version of Landlock supports; version 5 and later support all."""

_NETWORK_VERSION, _SCOPE_VERSION = 4, 6
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


@dataclass(frozen=True, slots=True)
class Rules:
    """What remains allowed. Files that are open already remain usable in any case.

    Attributes:
        access: rights to a folder (and everything below it) or a file; missing ones are skipped.
        has_reads: whether reading is restricted to ``access``, too, and not only writing.
        may_execute: whether files may be executed.
        has_tcp: whether TCP ports may be bound and connected to.
    """

    access: tuple[tuple[Path, Access], ...]
    has_reads: bool
    may_execute: bool
    has_tcp: bool


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 if it is missing or disabled."""
    try:
        return system_call(_CREATE_RULESET, None, 0, _GIVE_VERSION)
    except OSError:
        return 0


def restrict(rules: Rules, version: int) -> None:
    """Restrict this thread and its children to ``rules`` permanently.

    "no new privileges" must be set.

    Args:
        rules: what remains allowed.
        version: version of Landlock, at least 1.

    Raises:
        OSError: the kernel refuses.
    """
    handled = _handled(rules, version)
    attributes = _Ruleset(handled)
    size = 8
    if version >= _NETWORK_VERSION:
        size = 16
        attributes.handled_access_net = 0 if rules.has_tcp else _BIND_TCP | _CONNECT_TCP
    if version >= _SCOPE_VERSION:
        size = 24
        attributes.scoped = _ABSTRACT_SOCKETS | _SIGNALS
    ruleset = system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path, access in rules.access:
            # A missing file cannot be used either.
            with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
                _allow(ruleset, path, access & handled)
        system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _handled(rules: Rules, version: int) -> Access:
    last = _KNOWN.get(version)
    handled = _ALL if last is None else Access(2 * last - 1)
    if not rules.has_reads:
        handled &= ~READ
    return handled & ~Access.EXECUTE if rules.may_execute else handled


def _allow(ruleset: int, path: Path, access: Access) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _OF_FILES
        if access:
            rule = _PathBeneath(access, descriptor)
            system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)
