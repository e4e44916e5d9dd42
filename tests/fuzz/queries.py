"""Mutated GSQL texts: an answer or a GsqlError, never anything else.

What parses prints as itself.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from tests.support.deadline import DeadlineError, deadline

from gscope.capture.lfta.codegen.generate import generate
from gscope.errors import GsqlError, UnsupportedError, UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.printer import print_file

ROOT = Path(__file__).parents[2]
LIMIT_S = 20
"""A text that takes longer hangs."""

_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][\w.]*|\d+(?:\.\d+)?|\s+|<>|<=|>=|!=|.", re.DOTALL)
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "AS", "AND", "OR", "NOT", "IN", "BETWEEN"),
    *(
        "LIKE",
        "IS NULL",
        "CASE WHEN",
        "THEN",
        "ELSE",
        "END",
        "JOIN",
        "LEFT JOIN",
        "FULL JOIN",
        "ON",
    ),
    *("MERGE", "SLACK 3", "DISTINCT", "CLOSING_WHEN", "OUTER_JOIN", "WITH", "DEFINE", "PARAM"),
    *("SAMPLE BY srcIP", "SAMPLE BY", "NOT SAMPLED", "sampling 'tuples';", "min_rate 0.1;"),
    *("TCP", "UDP", "IP", "PKT", "ARP", "ICMP", "IPV6", "time", "timestamp", "time_ns", "len"),
    *("srcIP", "destIP", "srcPort", "destPort", "data", "vlan", "flags", "srcMAC", "inner.srcIP"),
    *("count(*)", "sum(len)", "avg(len)", "min(time)", "max(srcIP)", "count_distinct(srcIP)"),
    *("quantile(len, 0.5)", "first(len)", "stddev(len)", "running_sum(len)", "moving_sum(len, 3)"),
    *("abs(", "coalesce(", "prefix(srcIP, 24)", "in_net[srcIP, '10.0.0.0/8']", "if_else("),
    *("str_regex_match[data, '[a-z]+']", "http_host(data)", "to_hex(data)", "INT(", "STRING("),
    *(
        "+",
        "-",
        "*",
        "/",
        "%",
        "DIV",
        "&",
        "|",
        "<<",
        ">>",
        "~",
        "!",
        "=",
        "<>",
        "<",
        ">=",
        "(",
        ")",
    ),
    *("[", "]", ",", ";", ":", ".", "$x", "#X#", "@p", "NULL", "TRUE", "FALSE", "time/60 as tb"),
    *("0", "1", "60", "-1", "9223372036854775808", "18446744073709551615", "1.5", "1e308", "0xFF"),
    *("''", "'x'", "'10.0.0.1'", "'::1'", "'2020-01-01'", "INTERVAL '5 sec'", "TIMEVAL'1.5'"),
    *("IP_VAL'1.2.3.4'", "HEX'ff'", "--", "/*", "*/", "//", "'", '"', "\x00", "²", "\u2028", "é"),
)


@cache
def seeds() -> tuple[str, ...]:
    """Queries of the library, of the tests and of the documentation."""
    files = [*ROOT.glob("queries/library/**/*.gsql"), *ROOT.glob("tests/**/*.gsql")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(files)]
    for page in sorted(ROOT.glob("docs/**/*.md")):
        texts += re.findall(r"```gsql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return tuple(text for text in texts if len(text) < 4000)


def mutated(chance: random.Random) -> str:
    """A text of the pool, changed in a few places."""
    tokens = _TOKEN.findall(chance.choice(seeds()))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 6))):
        at = chance.randint(0, len(tokens))
        match chance.randrange(9):
            case 0:
                del tokens[at : at + chance.randint(1, 3)]
            case 1 | 2:
                tokens[at : at + 1] = [f" {chance.choice(_WORDS)} "]
            case 3:
                tokens.insert(at, f" {chance.choice(_WORDS)} ")
            case 4:
                other = _TOKEN.findall(chance.choice(seeds()))
                begin = chance.randint(0, len(other))
                tokens[at:at] = other[begin : begin + chance.randint(1, 12)]
            case 5:
                end = min(len(tokens), at + chance.randint(1, 6))
                tokens[at:end] = ["(", *tokens[at:end], ")"]
            case 6:
                end = min(len(tokens), at + chance.randint(1, 8))
                tokens[at:at] = tokens[at:end] * chance.choice((1, 1, 2, 40))
            case 7:
                other_at = chance.randint(0, len(tokens))
                piece = tokens[at : at + 2]
                del tokens[at : at + 2]
                tokens[other_at:other_at] = piece
            case _:
                text = "".join(tokens)
                place = chance.randint(0, len(text))
                cut = text[:place] + text[place + chance.randint(0, 3) :]
                tokens = _TOKEN.findall(cut)
    return "".join(tokens)


def check_query(seed: int) -> str:
    """Put a mutated text through the compiler; a sentence on what went wrong, "" if nothing did."""
    text = mutated(random.Random(seed))
    try:
        with deadline(LIMIT_S):
            wrong = _check(text)
    except DeadlineError:
        wrong = f"took more than {LIMIT_S} s"
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    return f"{wrong}\n{text!r}" if wrong else ""


def _check(text: str) -> str:
    try:
        file = parse(text, "fuzz")
    except GsqlError:
        return ""
    printed = print_file(file)
    again = parse(printed, "fuzz")
    if again.items != file.items:
        return f"is another query when printed: {printed!r}"
    if print_file(again) != printed:
        return f"is printed in another way the second time: {printed!r}"
    try:
        compiled = compile_queries([QueryText(text, "fuzz")], CompileContext(("main", "other")))
    except (GsqlError, UsageError):
        return ""
    try:
        kernel = generate(compiled.program.lftas)
    except UnsupportedError:
        return ""
    compile(kernel.source, "kernel", "exec")
    return ""
