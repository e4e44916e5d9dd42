"""Makes folders reachable for a user who cannot get there, in this process and those that it starts alone.

Root may have installed Python below /root, or keep its work dir there; another user cannot pass such a folder, though
what is in it may be open to all. Here the process gets mounts of its own: in place of the closed folder an empty one
that can be passed, with nothing in it but what is needed, at the same paths.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.confinement.identity import acting_as
from gscope.capture.confinement.kernel_calls import (
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    mount,
    unshare_mounts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.confinement.identity import Identity


def unreachable(paths: Iterable[Path], identity: Identity) -> dict[Path, list[Path]]:
    """Return those of ``paths`` that exist and that ``identity`` cannot reach, by the topmost folder in the way.

    Links are followed: what is needed is where they end as well as the links themselves.
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
    """Change what this process sees so that what ``unreachable`` returned can be reached.

    Raises:
        OSError: the kernel refuses, most often for want of CAP_SYS_ADMIN.
    """
    # First: the kernel binds nothing that was opened in other mounts.
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
    """Leave out what is in another of ``paths``."""
    return [path for path in paths if not any(other in path.parents for other in paths)]


def _is_passable(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=True)
