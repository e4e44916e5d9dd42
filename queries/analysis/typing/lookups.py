"""Which lookups have a file: without one, a query cannot call their functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.catalog.scalar.lookups import LOOKUP_OF
from gscope.queries.lookup_files import LOOKUP_NAMES, usual_places

if TYPE_CHECKING:
    from collections.abc import Collection

    from gscope.errors import Position

_OFFERED: set[str] = set()


def offer(names: Collection[str]) -> None:
    """Let the queries of this process use these lookups, and no others."""
    _OFFERED.clear()
    _OFFERED.update(names)


def offer_all() -> None:
    """Let queries use all lookups: another process has the files, and evaluates the functions."""
    offer(LOOKUP_NAMES)


def ensure_file(function: str, position: Position) -> None:
    """Refuse a function whose lookup has no file.

    Raises:
        ResolveError: it has none; the remedy names the setting.
    """
    name = LOOKUP_OF[function]
    if name in _OFFERED:
        return
    message = f"{function} needs the file of the lookup {name}"
    if places := usual_places(name):
        message += f", and there is no {' or '.join(places)}"
    remedy = (
        f"name the file with --lookup {name}=FILE, or in gscope.yaml as lookups: {{{name}: FILE}}"
    )
    raise ResolveError(message, position=position, remedy=remedy)
