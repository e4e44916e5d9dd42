"""Confines this process: its view of the file system, its user, its rights.

In this order: mounts (which need root), the user, capabilities, and then Landlock and seccomp,
which need no privileges. This must be done before the process starts another thread, because
Landlock and seccomp apply to threads.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import gscope
from gscope.capture.process.confinement import seccomp
from gscope.capture.process.confinement.identity import Identity, become
from gscope.capture.process.confinement.kernel_calls import stay_dumpable
from gscope.capture.process.confinement.landlock import (
    READ,
    WRITE,
    Access,
    Rules,
    landlock_version,
    restrict,
)
from gscope.capture.process.confinement.privileges import drop_bounding_set, drop_privileges
from gscope.capture.process.confinement.view import make_reachable, unreachable
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import TEMPORARY_FOLDER
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.process.confinement.plan import Confinement

OLDEST_LANDLOCK = 2
"""Oldest supported version of Landlock: version 1 forbids renames from folder to folder."""


_SYSTEM = (
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/nix",
    "/gnu",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")


def confine(
    confinement: Confinement,
    run_dir: Path,
    folders: Iterable[str],
    *,
    read: Iterable[Path] | None,
    may_execute: bool,
    has_internet: bool,
) -> list[str]:
    """Confine this process, which has one thread, and return what failed, a sentence each.

    Args:
        confinement: how to confine it.
        run_dir: the folder of the run.
        folders: folders in it to which the process may write.
        read: further files and folders that it may read, besides those of the system, of Python and
            of the run; None for everything.
        may_execute: whether it may execute files.
        has_internet: whether it may open TCP and UDP sockets.

    Raises:
        CaptureError: the process would keep privileges, or the other user could not reach the files
            it needs.
    """
    writable = [run_dir / folder for folder in (*folders, TEMPORARY_FOLDER)]
    _set_environment(confinement, writable[-1])
    programs = program_folders()
    if confinement.identity is not None:
        own = [] if confinement.cache is None else [confinement.cache]
        needed = [*programs, run_dir, *map(Path, (*own, *confinement.needed))]
        _change_user(confinement.identity, needed)
    drop_privileges()
    caches = _caches()
    if not confinement.is_sandboxed:
        return ["sandbox switched off: neither Landlock nor seccomp is used"]
    access = [(path, READ | WRITE) for path in (*writable, *caches)]
    access += [(Path(device), Access.WRITE_FILE | Access.READ_FILE) for device in _DEVICES]
    if read is not None:
        readable = [*map(Path, _SYSTEM), *programs, run_dir, *read]
        access += [(path, READ) for path in readable]
    rules = Rules(tuple(access), read is not None, may_execute, has_internet)
    return [
        *_landlocked(rules),
        *_with_seccomp(may_execute=may_execute, has_internet=has_internet),
    ]


def _set_environment(confinement: Confinement, temporary: Path) -> None:
    """Point the environment of this process and its children to folders that they may write to."""
    usual = cache_folder() if confinement.cache is None else None
    if temporary.is_dir():
        os.environ["TMPDIR"] = str(temporary)
        tempfile.tempdir = None
    if confinement.cache is not None:
        os.environ["XDG_CACHE_HOME"] = confinement.cache
        os.environ.pop("NUMBA_CACHE_DIR", None)
    elif usual is not None and cache_folder() != usual:
        # The cache is among the user's temporary files; those of the run are deleted with it.
        os.environ["XDG_CACHE_HOME"] = str(usual)
    if confinement.identity is not None:
        # The user cannot enter root's home, and a library that looks for its own file there would
        # fail.
        os.environ["HOME"] = str(temporary)


def _caches() -> list[Path]:
    """Return the folders of compiled kernels and class-data archives."""
    folder = cache_folder()
    own = os.environ.get("NUMBA_CACHE_DIR")
    return [*([] if folder is None else [folder]), *([Path(own)] if own else [])]


def program_folders() -> list[Path]:
    """Return the folders that Python, Java and gscope are loaded from."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
    paths += [str(Path(sys.executable).resolve().parents[1])]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if java_home := os.environ.get("JAVA_HOME"):
        paths.append(java_home)
    rooms = [Path(__file__).parents[1], *_rooms()]
    found = [Path(path) for path in paths if path.startswith("/")] + rooms
    resolved = [path.resolve() for path in found]
    return list(dict.fromkeys(path for path in (*found, *resolved) if path != Path("/")))


def _rooms() -> list[Path]:
    """Return the folders of gscope's code, which are links in an editable installation."""
    package = Path(gscope.__file__).parent
    return [package, *(path for path in package.iterdir() if path.is_dir())]


def _change_user(identity: Identity, needed: list[Path]) -> None:
    try:
        closed = unreachable(needed, identity)
        if closed:
            make_reachable(closed)
    except OSError as error:
        folder = next(iter(closed), Path("/"))
        message = (
            f"the user {identity.name} cannot reach {closed.get(folder, ['it'])[0]} below the "
            f"closed folder {folder}, and the kernel does not permit gscope to remount it "
            f"({os_reason(error)}): move gscope and --work-dir to folders "
            "that this user can reach, or name another user with --user"
        )
        raise CaptureError(message) from error
    try:
        drop_bounding_set()
        become(identity)
        stay_dumpable()
    except OSError as error:
        message = (
            f"cannot change to the user {identity.name}: "
            f"{os_reason(error)}; name another user with --user"
        )
        raise CaptureError(message) from error


def _landlocked(rules: Rules) -> list[str]:
    version = landlock_version()
    if version < OLDEST_LANDLOCK:
        found = f"version {version} of Landlock is too old" if version else "no Landlock"
        return [f"files are not restricted: {found} in this kernel"]
    try:
        restrict(rules, version)
    except OSError as error:
        return [f"files are not restricted: Landlock: {os_reason(error)}"]
    return []


def _with_seccomp(*, may_execute: bool, has_internet: bool) -> list[str]:
    if not seccomp.is_supported():
        return [f"system calls are not restricted: unknown architecture {os.uname().machine}"]
    try:
        seccomp.refuse_calls(may_execute=may_execute, has_internet=has_internet)
    except OSError as error:
        return [f"system calls are not restricted: seccomp: {os_reason(error)}"]
    return []
