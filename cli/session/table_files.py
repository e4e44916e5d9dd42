"""The files of watchlists and lookups: whether they can be read, and by the user of the job."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.queries.plan.logical import Watchlist
    from gscope.queries.plan.program import Program


def closed_folders(program: Program, user: str | None) -> list[Path]:
    """Return the folders of watchlists and lookups that the user of the job cannot reach.

    Raises:
        UsageError: that user may not read one of these files.
    """
    from gscope.capture.process.confinement.identity import chosen_identity
    from gscope.capture.process.confinement.prepare import can_reach, may

    identity = chosen_identity(user)
    if identity is None:
        return []
    kinds = {Path(each.path).absolute(): "watchlist" for each in _watchlists(program)}
    kinds |= {Path(path): f"lookup {name}" for name, path in program.lookups}
    for path, kind in kinds.items():
        if not may(path, identity, stat.S_IROTH):
            message = (
                f"the user {identity.name}, which evaluates queries, cannot read the {kind} "
                f"{path}; run `chmod o+r` on it, or name another user with --user"
            )
            raise UsageError(message)
    return list(dict.fromkeys(p.parent for p in kinds if not can_reach(p, identity)))


def ensure_tables(program: Program) -> None:
    """Refuse watchlists and lookups that cannot be read; the job would retry them again and again.

    Raises:
        EngineError: a file is missing or invalid.
    """
    if watchlists := _watchlists(program):
        from gscope.engine.storage.watchlists import read_watchlist

        for watchlist in watchlists:
            read_watchlist(watchlist)
    for name, path in program.lookups:
        from gscope.engine.lookups.files import read_lookup

        read_lookup(name, path)


def _watchlists(program: Program) -> tuple[Watchlist, ...]:
    from gscope.queries.plan.program import WatchlistJoinNode

    nodes = (node for node in program.nodes if isinstance(node, WatchlistJoinNode))
    return tuple(dict.fromkeys(node.watchlist for node in nodes))
