"""Finding the name that was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


DID_YOU_MEAN = "did you mean "
"""A remedy that names something close begins so; any other is a guess."""


def other_case(name: str, known: Iterable[str]) -> str | None:
    """The one known name that differs from ``name`` in case only, None if there is none or more."""
    found = {candidate for candidate in known if candidate.lower() == name.lower()}
    return found.pop() if len(found) == 1 else None


def did_you_mean(name: str, known: Iterable[str], kind: str = "") -> str:
    """A remedy: the closest known names, else all of them if they are few, else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if close:
        return f"{DID_YOU_MEAN}{' or '.join(by_lower[c] for c in close)}?"
    if kind and 0 < len(by_lower) <= 20:
        return f"{kind}: {', '.join(sorted(by_lower.values()))}"
    return ""
