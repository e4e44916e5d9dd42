"""The names of the parts that the split makes of one query: ``q.joined``, ``q.1``.

Subqueries have names of the same form (``q.alias``), so no alias may be one of these words.
"""

from __future__ import annotations

GROUPS = "groups"
JOINED = "joined"
MERGED = "merged"
ROWS = "rows"

RESERVED = frozenset({GROUPS, JOINED, MERGED, ROWS})
"""The words; an alias is never a number."""
