"""Makes folders reachable for a user without access, in this process and its children only.

Root may have installed Python below /root, or keep its work dir there. Another user cannot pass
such a folder, although files in it may be readable by all. So the process gets mounts of its own,
with an empty folder in place of the closed one that holds only what is needed, at the same paths.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.identity import acting_as
from gscope.capture.process.confinement.kernel_calls import (
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    mount,
    unshare_mounts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.process.confinement.identity import Identity


def unreachable(paths: Iterable[Path], identity: Identity) -> dict[Path, list[Path]]:
    """Return ``paths`` that exist out of reach of ``identity``, by the folder it cannot pass.

    Links are followed: both the links and their targets are needed.
    """
    needed = {Path(os.path.abspath(path)) for path in paths if path.exists()}  # noqa: PTH100  # keeps links
    needed |= {path.resolve() for path in needed}
    closed: dict[Path, list[Path]] = {}
    with acting_as(identity):
        for path in sorted(needed):
            obstacle = next((p for p in reversed(path.parents) if not _is_passable(p)), None)
            if obstacle is not None:
                closed.setdefault(obstacle, []).append(path)
    return closed


def make_reachable(closed: dict[Path, list[Path]]) -> None:
    """Change the mounts of this process so that the paths from ``unreachable`` can be reached.

    Raises:
        OSError: the kernel refuses, most often for lack of CAP_SYS_ADMIN.
    """
    # First, because the kernel cannot bind folders that were opened in another mount namespace.
    unshare_mounts()
    with ExitStack() as stack:
        held: dict[Path, int] = {}
        for path in (path for paths in closed.values() for path in _outermost(paths)):
            held[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
            stack.callback(os.close, held[path])
        for obstacle in closed:
            mount("tmpfs", str(obstacle), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=1m")
        before = os.umask(0o066)
        try:
            for path, descriptor in held.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.is_dir() or os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112
                    path.mkdir(exist_ok=True)
                else:
                    path.touch()
                mount(f"/proc/self/fd/{descriptor}", str(path), "", MS_BIND | MS_REC)
        finally:
            os.umask(before)


def _outermost(paths: list[Path]) -> list[Path]:
    """Return ``paths`` without those that are inside another one."""
    return [path for path in paths if not any(other in path.parents for other in paths)]


def _is_passable(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=True)
