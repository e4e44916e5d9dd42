"""Names of runs: chosen by the user, or derived from the request."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.session.request import QueryRequest

MAX_LENGTH = 64
_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_LENGTH - 1}}}")
_DECLARED = re.compile(r"\bquery_name\s+'?([A-Za-z_]\w*)", re.IGNORECASE)
_FALLBACK = "query"


def ensure_name(text: str) -> str:
    """Return ``text`` if it is a valid name of a run, and so of a folder.

    Raises:
        UsageError: it is invalid.
    """
    if _NAME.fullmatch(text) is None:
        message = (
            f"invalid run name {text!r}: expected up to {MAX_LENGTH} letters, digits, '_', '-' "
            "and '.', beginning with a letter, a digit or '_'"
        )
        raise UsageError(message)
    return text


def default_name(request: QueryRequest) -> str:
    """Return the name of the first query; for a file, which is not read, its base name."""
    if request.queries:
        name = Path(request.queries[0]).name.removesuffix(".gsql")
    else:
        declared = _DECLARED.search(request.expressions[0]) if request.expressions else None
        name = declared[1] if declared is not None else _FALLBACK
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".-")[: MAX_LENGTH - 4]
    return name or _FALLBACK
