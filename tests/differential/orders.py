"""Random ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from zlib import crc32

from tests.differential.syntax import Group, Join, Query, Select, Term

LIMITED = 0.3
"""How often a query that can have one has an ORDER BY or a LIMIT."""


def in_order(query: Query) -> Query:
    """``query``, some times with ORDER BY and LIMIT.

    Those are of its text, so that others stay the same. Only where the whole order of its rows
    follows from what is known of its columns.
    """
    random = Random(crc32(query.body.encode()))
    if not isinstance(query, Select | Group) or random.random() >= LIMITED:
        return query
    are_known = all(field.unit_ns for field in query.fields if field.is_ordered)
    is_plain = isinstance(query, Group) or not (query.is_distinct or isinstance(query.source, Join))
    names = [f.name for f in query.fields if not f.is_ordered and not f.unit_ns]
    if not are_known or not is_plain or not names:
        return query
    chosen = random.sample(names, random.randint(1, min(2, len(names))))
    terms = tuple(Term(n, random.random() < 0.5, random.random() < 0.3) for n in chosen)
    return replace(query, order=terms, limit=random.choice((None, 1, 2, 3, 10, 50)))
