"""Remedies for unexpected tokens, one function for each frequent mistake.

Each returns what to write instead, or "" if the mistake is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.gsql.foreign_words import TIME_PARTS
from gscope.queries.gsql.sample_errors import sample_remedy
from gscope.queries.gsql.scanner import RESERVED
from gscope.queries.gsql.unexpected_token import CLAUSES, COMPARISONS, END
from gscope.queries.gsql.window_errors import window_remedy

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.gsql.unexpected_token import UnexpectedToken


def _runaway_text(unexpected: UnexpectedToken) -> str:
    for token in (unexpected.token, *unexpected.before[-1:]):
        if token.type == "STRING" and "\n" in token:
            return (
                f"the text in quotes that starts in line {token.line} spans several lines: is its "
                "end quote missing?"
            )
    return ""


def _missing_from(unexpected: UnexpectedToken) -> str:
    if "FROM" in unexpected.expected and unexpected.token.type in {
        *CLAUSES,
        END,
        "SEMICOLON",
        "RPAR",
    }:
        return "say where the tuples come from, for example FROM TCP"
    return ""


def _missing_as(unexpected: UnexpectedToken) -> str:
    if unexpected.token.type == "NAME" and "AS" in unexpected.expected:
        return (
            f"to name a column write AS {unexpected.token}"
            if len(unexpected.token) <= 40
            else "to name a column write AS"
        )
    return ""


def _chained_comparison(unexpected: UnexpectedToken) -> str:
    if unexpected.token.type in COMPARISONS and "AND" in unexpected.expected:
        if any(token.type == "CONCATENATE" for token in unexpected.before[-4:]):
            return "|| joins texts; between conditions write OR"
        return "comparisons do not chain: write a < b AND b < c"
    return ""


def _brackets(unexpected: UnexpectedToken) -> str:
    if (
        unexpected.token.type in {"RPAR", "RSQB", "RBRACE"}
        and unexpected.token.type not in unexpected.expected
    ):
        opened = sum(
            (t.type in {"LPAR", "LSQB", "LBRACE"}) - (t.type in {"RPAR", "RSQB", "RBRACE"})
            for t in unexpected.before
        )
        return "" if opened > 0 else f"{unexpected.token} closes a bracket that is not open"
    if unexpected.token.type == END and "RPAR" in unexpected.expected:
        return "a ( is not closed"
    return ""


def _missing_semicolon(unexpected: UnexpectedToken) -> str:
    if unexpected.token.type in {"SELECT", "MERGE"} and "SEMICOLON" in unexpected.expected:
        return "queries are separated by ;"
    if unexpected.token.type == "NAME" and unexpected.token.upper() in {
        "DEFINE",
        "PROTOCOL",
        "PARAM",
        "QUERY",
    }:
        return "queries are separated by ;"
    return ""


def _reserved(unexpected: UnexpectedToken) -> str:
    if (
        unexpected.token.upper() in RESERVED
        and unexpected.expected & {"NAME", "AS"}
        and unexpected.before
    ):
        after = unexpected.before[-1].type
        if after in {"AS", "DOT"} or unexpected.expected == {"NAME"}:
            word = unexpected.token
            return (
                f"{word.upper()} is a reserved word of GSQL and cannot be a name; "
                f"write for example {word}_"
            )
    return ""


def _nothing_selected(unexpected: UnexpectedToken) -> str:
    if unexpected.token.type == "FROM" and "DISTINCT" in unexpected.expected:
        return "say what to select before FROM, for example count(*)"
    return ""


def _dotted_name(unexpected: UnexpectedToken) -> str:
    after_name = unexpected.before and unexpected.before[-1].type in {"NAME", "STRING"}
    is_input = "JOIN" in unexpected.expected and "FROM" not in unexpected.expected
    if unexpected.token.type == "COLON" and after_name and is_input:
        return f"put an interface with : in quotes: '{unexpected.before[-1]}:1'.TCP"
    if unexpected.token.type == "DOT" and after_name and "JOIN" in unexpected.expected:
        return (
            "an input has at most host, interface and name; put one with dots or spaces in quotes:"
            " 'a.example.org'.eth0.TCP, 'my capture'.TCP"
        )
    return ""


def _define_equals(unexpected: UnexpectedToken) -> str:
    if unexpected.token.type == "EQUAL" and "INTEGER" in unexpected.expected and unexpected.before:
        return f"write the value directly after the name: {unexpected.before[-1]} 'value';"
    return ""


def _trailing_comma(unexpected: UnexpectedToken) -> str:
    if unexpected.before and unexpected.before[-1].type == "COMMA":
        return "is there an extra comma?"
    return ""


def _match_by_tilde(unexpected: UnexpectedToken) -> str:
    is_operator = unexpected.token.type == "TILDE" and "AND" in unexpected.expected
    return "write str_regex_match[x, 'pattern']" if is_operator else ""


def _interval_without_quotes(unexpected: UnexpectedToken) -> str:
    is_interval = unexpected.before and unexpected.before[-1].upper() == "INTERVAL"
    if is_interval and unexpected.token.type in {"INTEGER", "FLOAT"}:
        return f"write a unit behind the number: INTERVAL '{unexpected.token} sec'"
    return ""


def _from_first(unexpected: UnexpectedToken) -> str:
    is_first = not unexpected.before or unexpected.before[-1].type in {"SEMICOLON", "LPAR"}
    is_from = unexpected.token.type == "FROM" and "SELECT" in unexpected.expected
    return "write SELECT * FROM TCP: SELECT comes first" if is_first and is_from else ""


def _star_without(unexpected: UnexpectedToken) -> str:
    if unexpected.token.upper() not in {"EXCEPT", "EXCLUDE", "MINUS"}:
        return ""
    if unexpected.before and unexpected.before[-1].type == "STAR":
        return "name the columns in place of *"
    return _WITHOUT_MATCH


def _rows_without(unexpected: UnexpectedToken) -> str:
    is_set = unexpected.before and unexpected.before[-1].upper() in {"EXCEPT", "MINUS"}
    return _WITHOUT_MATCH if is_set and unexpected.token.type in {"SELECT", "LPAR"} else ""


_WITHOUT_MATCH = (
    "to keep the rows without a match write "
    "FROM a LEFT JOIN b ON a.time = b.time AND a.srcIP = b.srcIP WHERE b.srcIP IS NULL"
)


def _name_in_brackets(unexpected: UnexpectedToken) -> str:
    is_bracket = unexpected.token.type == "LSQB" and "NAME" in unexpected.expected
    return "names need no brackets" if is_bracket else ""


def _filter_without_where(unexpected: UnexpectedToken) -> str:
    words = [token.upper() for token in unexpected.before[-2:]]
    is_where = unexpected.token.type == "WHERE" and words[-1:] == ["FILTER"]
    is_condition = words == ["FILTER", "("]
    return "write sum(len) FILTER (WHERE SYN = 1)" if is_where or is_condition else ""


def _words_in_call(unexpected: UnexpectedToken) -> str:
    """Return the remedy for a call of SQL with words in place of commas, such as EXTRACT."""
    names = [token.lower() for token in unexpected.before[-6:] if token.type == "NAME"]
    if unexpected.token.type != "FROM" or "RPAR" not in unexpected.expected:
        return ""
    if "extract" in names:
        part = next(
            (TIME_PARTS[name] for name in reversed(names) if name in TIME_PARTS), "time / 60 % 60"
        )
        return f"write {part}; date_trunc('minute', timestamp) rounds a time down"
    return "separate arguments by commas: substr(x, 1, 4)"


def _union(unexpected: UnexpectedToken) -> str:
    if not unexpected.before or unexpected.before[-1].type != "UNION":
        return ""
    return (
        "write UNION ALL, which keeps equal rows; "
        "SELECT DISTINCT * FROM (SELECT … UNION ALL SELECT …) AS u drops them"
    )


def _subquery(unexpected: UnexpectedToken) -> str:
    words = [token.upper() for token in unexpected.before[-2:]]
    if unexpected.token.type != "SELECT" or words[-1:] != ["("]:
        return ""
    if words[0] in {"IN", "EXISTS"}:
        return (
            "a subquery belongs in FROM; to keep the rows that have a match write "
            "FILTER_JOIN(time, 5) FROM a, b WHERE a.srcIP = b.srcIP"
        )
    return (
        "a subquery belongs in FROM; to compare with its value join it by the time: "
        "FROM a JOIN (SELECT time/60 AS tb, avg(len) AS mean FROM TCP GROUP BY tb) AS b "
        "ON a.time/60 = b.tb"
    )


def _clause_of_merge(unexpected: UnexpectedToken) -> str:
    """Return the remedy for a clause of SELECT behind a MERGE, which has none."""
    word = unexpected.token.upper()
    bodies = [token.type for token in unexpected.before if token.type in {"SELECT", "MERGE"}]
    if word not in {"WHERE", "GROUP", "ORDER", "LIMIT"} or bodies[-1:] != ["MERGE"]:
        return ""
    return f"MERGE has no {word}: write SELECT * FROM (MERGE …) AS m {word} …"


def _window(unexpected: UnexpectedToken) -> str:
    return window_remedy(unexpected.token, unexpected.expected, unexpected.before, unexpected.text)


def _sample(unexpected: UnexpectedToken) -> str:
    return sample_remedy(unexpected.token, unexpected.expected, unexpected.before, unexpected.text)


REMEDIES: tuple[Callable[[UnexpectedToken], str], ...] = (
    _runaway_text,
    _sample,
    _window,
    _clause_of_merge,
    _union,
    _filter_without_where,
    _from_first,
    _star_without,
    _rows_without,
    _reserved,
    _missing_from,
    _missing_as,
    _chained_comparison,
    _missing_semicolon,
    _trailing_comma,
    _nothing_selected,
    _dotted_name,
    _define_equals,
    _interval_without_quotes,
    _subquery,
    _words_in_call,
    _name_in_brackets,
    _match_by_tilde,
    _brackets,
)
