"""How joins are written: head, columns, both inputs, conditions and the kind, by number."""

from __future__ import annotations

SQL_STYLES = range(100, 120)
"""Styles of outer joins in SQL's spelling."""

SQL_JOIN_STYLES = (
    "{0} {1}\n  FROM {2} {5} JOIN {3}\n  ON {4}",
    "{0} {1}\n  FROM {2} {5} OUTER JOIN {3}\n  ON {4}",
)
_PLAIN_JOIN = "{0} {1}\n  FROM {2} KIND {3}\n  ON {4}"
_OLD_JOIN = "{0} {1} KIND FROM {2}, {3}\n  WHERE {4}"
_MIXED_JOIN = "{0} {1}\n  FROM {2} KIND {3}\n  WHERE {4}"
JOIN_STYLES: dict[str, tuple[str, ...]] = {
    "inner": (
        "{0} {1}\n  FROM {2}, {3}\n  WHERE {4}",
        _PLAIN_JOIN.replace("KIND", "JOIN"),
        _OLD_JOIN.replace("KIND", "INNER_JOIN"),
        _MIXED_JOIN.replace("KIND", "JOIN"),
    ),
    **{
        kind: (
            _PLAIN_JOIN.replace("KIND", old),
            _OLD_JOIN.replace("KIND", old),
            _MIXED_JOIN.replace("KIND", old),
        )
        for kind, old in (
            ("left", "LEFT_OUTER_JOIN"),
            ("right", "RIGHT_OUTER_JOIN"),
            ("full", "OUTER_JOIN"),
        )
    },
}
