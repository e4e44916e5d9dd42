"""What the parts are called that the split makes of one query: ``q.joined``, ``q.1``.

Subqueries are called by their place as well (``q.alias``), so no alias may be one of these words.
"""

from __future__ import annotations

GROUPS = "groups"
JOINED = "joined"
MERGED = "merged"

RESERVED = frozenset({GROUPS, JOINED, MERGED})
"""The words; numbers are no aliases."""
