"""Functions of other dialects of SQL, and what GSQL has in their place."""

from __future__ import annotations

from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression

FOREIGN_FUNCTIONS = {
    **dict.fromkeys(("ifnull", "nvl", "isnull"), "coalesce(vlan, 0)"),
    **dict.fromkeys(("if", "iif"), "if_else(SYN = 1, 1, 0)"),
    **dict.fromkeys(("len", "strlen", "char_length", "octet_length"), "length(TCP_data)"),
    "decode": "CASE destPort WHEN 80 THEN 'http' ELSE 'other' END",
    **dict.fromkeys(("any", "some"), "destPort IN (80, 443)"),
    **dict.fromkeys(
        ("datediff", "date_diff", "timestampdiff", "age"),
        "timestamp - TIMEVAL'2023-11-14 22:00:00'",
    ),
    "left": "str_truncate(TCP_data, 4)",
    "right": "str_suffix(TCP_data, 4)",
    "concat_ws": "srcIP || ':' || srcPort",
    **dict.fromkeys(("position", "strpos", "instr", "locate"), "str_find(TCP_data, 'x')"),
    **dict.fromkeys(("starts_with", "startswith"), "str_match_start[TCP_data, 'GET']"),
    **dict.fromkeys(("contains", "strstr"), "str_exists_substr[TCP_data, 'GET']"),
    **dict.fromkeys(
        ("regexp_like", "regexp_matches", "regexp_contains", "rlike"),
        "str_regex_match[TCP_data, 'pattern']",
    ),
    **dict.fromkeys(("regexp_extract", "regexp_substr"), "str_extract_regex(TCP_data, 'pattern')"),
    **dict.fromkeys(("ucase", "toupper"), "upper(TCP_data)"),
    **dict.fromkeys(("lcase", "tolower"), "lower(TCP_data)"),
    "hex": "to_hex(TCP_data)",
    **dict.fromkeys(("to_char", "strftime", "date_format"), "STRING(timestamp)"),
    **dict.fromkeys(("trunc", "truncate"), "INT(len / 2.0)"),
    "power": "pow(len, 2.0)",
    "ln": "log(len)",
    "unix_timestamp": "time",
    **dict.fromkeys(("now", "current_timestamp"), "timestamp"),
    **dict.fromkeys(("from_unixtime", "from_epoch", "epoch_to_timestamp"), "to_timestamp(time)"),
    **dict.fromkeys(("tumble", "date_bin", "time_slice"), "time_bucket('10 sec')"),
    **dict.fromkeys(("extract", "date_part", "datepart"), "time / 3600 % 24"),
    **dict.fromkeys(("dayofweek", "weekday", "dow"), "(time / 86400 + 4) % 7"),
    **dict.fromkeys(("date", "to_date"), "day(time)"),
    **dict.fromkeys(("inet_aton", "ip_to_int"), "INT(srcIP)"),
    **dict.fromkeys(("inet_ntoa", "host"), "STRING(srcIP)"),
}
"""The name in lower case, and an expression over packets of TCP that shows what to write."""

FOREIGN_AGGREGATES = {
    **dict.fromkeys(
        (
            *("percentile", "percentile_cont", "percentile_disc", "approx_percentile"),
            *("quantile_cont", "quantile_disc", "approx_quantile", "p50", "p90", "p95", "p99"),
        ),
        "quantile(len, 0.95)",
    ),
    **dict.fromkeys(
        (
            *("string_agg", "group_concat", "listagg", "array_agg", "list", "collect_list"),
            *("collect_set", "histogram"),
        ),
        "approx_top_k(destPort, 10)",
    ),
    **dict.fromkeys(("sumif", "sum_if"), "sum(len) FILTER (WHERE SYN = 1)"),
    **dict.fromkeys(("stdev", "stddev_samp"), "stddev(len)"),
    **dict.fromkeys(("variance", "var_samp"), "var(len)"),
    **dict.fromkeys(("every", "bool_all"), "bool_and(SYN = 1)"),
    **dict.fromkeys(("any_value", "arbitrary"), "min(srcIP)"),
    "first_value": "first(len)",
    "last_value": "last(len)",
    **dict.fromkeys(("mean", "average"), "avg(len)"),
    **dict.fromkeys(("countif", "count_if"), "count(*) FILTER (WHERE SYN = 1)"),
    **dict.fromkeys(("approx_distinct", "uniq"), "approx_count_distinct(srcIP)"),
    **dict.fromkeys(("approx_most_frequent", "mode", "topk"), "approx_top_k(srcIP, 3)"),
}
"""The same for aggregates."""


_WAYS = {
    **dict.fromkeys(
        ("rank", "dense_rank", "row_number", "ntile"),
        "write ORDER BY sum(len) DESC LIMIT 10 behind GROUP BY for the first groups of each epoch",
    ),
    **dict.fromkeys(
        ("lag", "lead"),
        "join the result of the query with itself: FROM q AS now JOIN q AS before "
        "ON now.tb = before.tb + 1",
    ),
    **dict.fromkeys(("cube", "rollup"), "write a query for each grouping"),
    **dict.fromkeys(
        ("window", "hop", "sliding", "time_window"),
        "write the window after the input: FROM TCP [RANGE '1 min' SLIDE '10 sec']",
    ),
    "session": "to end a group after a pause write GROUP BY time/30 AS tb, srcIP "
    "CLOSING_WHEN count(*) = 0",
    "on": "in place of DISTINCT ON write first(len) and GROUP BY srcIP",
    "top": "write ORDER BY … DESC LIMIT 10 at the end",
}
"""The same for names that no expression replaces."""


def instead_of(node: nodes.FunctionCall) -> str:
    """Return the remedy for a call of a function that another dialect has; "" for any other."""
    name = node.name
    way = _WAYS.get(name.lower())
    if way:
        return way
    exact = _as_quantile(node)
    if exact:
        return f"write {exact}"
    shown = FOREIGN_FUNCTIONS.get(name.lower()) or FOREIGN_AGGREGATES.get(name.lower())
    return f"write for example {shown}" if shown else ""


def _as_quantile(node: nodes.FunctionCall) -> str:
    """Return ``percentile(x, 95)`` as a quantile, "" for any other call."""
    if not node.name.lower().startswith("percentile") or len(node.args) != 2:
        return ""
    value, part = node.args
    if not isinstance(part, nodes.LiteralSyntax):
        return ""
    if part.kind not in {nodes.LiteralKind.INTEGER, nodes.LiteralKind.FLOAT}:
        return ""
    fraction = float(part.value or 0)
    fraction = fraction / 100 if fraction > 1 else fraction
    return f"quantile({print_expression(value)}, {fraction:.12g})"
