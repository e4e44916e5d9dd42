"""Words of SQL that GSQL does not have, and what it has in their place."""

from __future__ import annotations

FOREIGN_WORDS = {
    "OFFSET": "LIMIT keeps the first rows; leave rows out where the answer is read",
    "FETCH": "write LIMIT 10",
    "TOP": "write ORDER BY … DESC LIMIT 10 at the end",
    "OVER": "write running_sum(len) or moving_avg(len, 5) "
    "with GROUP BY time/60 AS tb, srcIP CLOSING_WHEN count(*) = 0, "
    "or a window after the input: FROM TCP [RANGE '1 min' SLIDE '10 sec']",
    "USING": "write the condition: ON a.time = b.time AND a.srcIP = b.srcIP",
    "CROSS": "a join needs related times: FROM a JOIN b ON a.time = b.time",
    "NATURAL": "write the condition: FROM a JOIN b ON a.time = b.time AND a.srcIP = b.srcIP",
    "INSERT": "a query is SELECT, MERGE or WATCHLIST",
    "CREATE": "name a query with DEFINE { query_name 'x'; }",
    **dict.fromkeys(("SIMILAR", "REGEXP", "RLIKE"), "write str_regex_match[x, 'pattern']"),
    "GLOB": "write x LIKE 'GET%'",
    "QUALIFY": "write HAVING for groups; ORDER BY … DESC LIMIT 10 for the first of each epoch",
    "INTERSECT": "write FILTER_JOIN(time, 5) FROM a, b WHERE a.srcIP = b.srcIP",
    "ISNULL": "write IS NULL",
    "NOTNULL": "write IS NOT NULL",
    "EXPLAIN": "run gscope explain -e 'SELECT …'",
    "SHOW": "gscope schema lists the protocols, gscope library the queries that come with it",
    "DESCRIBE": "gscope schema TCP lists the fields of TCP",
    "VALUES": "keep a table in a CSV file and read it by a WATCHLIST",
    **dict.fromkeys(
        ("UPDATE", "DELETE", "DROP", "ALTER", "SET", "USE"), "a query is SELECT, MERGE or WATCHLIST"
    ),
    "RECURSIVE": "a query cannot read itself; CLOSING_WHEN keeps groups across epochs",
    "TABLESAMPLE": "run the query with --sample-rate 10%",
    "LATERAL": "join a subquery by its time: FROM a JOIN (SELECT …) AS b ON a.time = b.time",
    "SETS": "write a query for each grouping",
    "SYMMETRIC": "write BETWEEN least(a, b) AND greatest(a, b)",
    "MOD": "write % or mod(a, b)",
    "XOR": "write <> between two conditions",
    "UNKNOWN": "write IS NULL",
}
"""Words of SQL that GSQL does not have, in capitals, and what to write instead."""

JOIN_WORDS = frozenset({"CROSS", "NATURAL"})
"""Those that the parser would take for the alias of an input, because a join may follow one."""

TIME_PARTS = {
    "epoch": "time",
    "second": "time % 60",
    "minute": "time / 60 % 60",
    "hour": "time / 3600 % 24",
    "dow": "(time / 86400 + 4) % 7",
    "day": "day(time)",
}
"""What EXTRACT takes of a time, and how GSQL writes it."""
