"""Suggest the name that was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


DID_YOU_MEAN = "did you mean "
"""The first words of a remedy that names something close; any other remedy is a guess."""


def other_case(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from ``name`` in case only.

    None if several do, or none.
    """
    found = {candidate for candidate in known if candidate.lower() == name.lower()}
    return found.pop() if len(found) == 1 else None


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name most like ``name``; None if none is.

    Args:
        name: what the user wrote.
        known: the names that would have been accepted.
        cutoff: how alike they must be, from 0 to 1, as ``difflib`` measures it.
    """
    close = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str, *, is_quoted: bool = False) -> str:
    """Return ``did you mean <closest>?``, or ``otherwise`` if no known name is like ``name``."""
    close = closest(name, known)
    if close is None:
        return otherwise
    return f"{DID_YOU_MEAN}{repr(close) if is_quoted else close}?"


def did_you_mean(name: str, known: Iterable[str], kind: str = "") -> str:
    """Return a remedy: the closest known names, else all of them if there are few, else "".

    Args:
        name: what the user wrote, compared regardless of case.
        known: the names that would have been accepted.
        kind: how a list of all of them begins, such as ``available types``; "" for no list.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if close:
        return f"{DID_YOU_MEAN}{' or '.join(by_lower[c] for c in close)}?"
    if kind and 0 < len(by_lower) <= 20:
        return f"{kind}: {', '.join(sorted(by_lower.values()))}"
    return ""
