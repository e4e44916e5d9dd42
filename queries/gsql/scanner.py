"""Text of a query → tokens, with keywords where the grammar allows them and names elsewhere.

Few words are reserved. Any other keyword is a name wherever the rules allow a name and not the
keyword, so that fields can be called ``window``, ``protocol`` or ``left``.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

from lark import Token

from gscope.errors import GsqlSyntaxError, Position
from gscope.queries.gsql.addresses import is_address
from gscope.queries.gsql.constants_list import find_list
from gscope.queries.gsql.intervals import read_interval_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

MAX_TEXT = 8_000_000
"""The most characters of one text: lists of 100,000 addresses fit."""

MAX_TOKENS = 150_000
"""The most words and symbols of one text, which parse in a few seconds.

A long list of constants counts as one.
"""

MAX_DEPTH = 150
"""The deepest nesting of brackets, operators and subqueries: a visitor's stack holds it."""

RESERVED = frozenset(
    [
        "SELECT",
        "MERGE",
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "SUPERGROUP",
        "AS",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "BETWEEN",
        "LIKE",
        "DIV",
        "DISTINCT",
        "JOIN",
        "BY",
    ]
)
"""Words that are never names, except behind a dot."""

QUOTED_LITERALS = frozenset({"HEX", "IP_VAL", "IPV6_VAL", "TIMEVAL", "INTERVAL"})
"""Words that turn the text in quotes behind them into a literal."""

_BLANK = re.compile(r"(?:\s+|--[^\r\n]*|//[^\r\n]*)+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DOTTED_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")
_ADDRESS = re.compile(
    # an IPv4 address or a link-layer or IPv6 address, with the length of a network; not a time
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
    r"|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}"
    r"|(?=[0-9a-fA-F:]*::|(?:[0-9a-fA-F]+:){7})[0-9a-fA-F:]+(?:\.[0-9]+){0,3})"
    r"(?:/[0-9]{1,3})?(?![\w.:])"
)
_BEFORE_INPUT = frozenset(
    {
        *("FROM", "JOIN", "COMMA", "INNER_JOIN", "OUTER_JOIN", "FULL_OUTER_JOIN"),
        *("LEFT_OUTER_JOIN", "RIGHT_OUTER_JOIN", "WATCHLIST_JOIN"),
    }
)
_BEFORE_NO_ADDRESS = frozenset({"DOT", "RPAR", "RSQB"})
_HYPHENATED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+")
_DIGIT_FIRST = re.compile(r"[0-9]\w*(?:-\w+)*(?=\.[A-Za-z_]\w*(?![\w.]))", re.ASCII)
"""The name of an interface that starts with a digit, in front of a protocol."""

_SOURCE = re.compile(r"[^\s,()\[\];]*")
_DOUBLE_QUOTED = re.compile(r'"([^"\n]*)"')
_NUMBER_TAIL = re.compile(r"[\w.]*")
_FOLLOWED_BY = {
    "FILTER": re.compile(r"\("),
    "WITHIN": re.compile(r"GROUP\b", re.IGNORECASE),
    "SAMPLE": re.compile(r"BY\b", re.IGNORECASE),
}
"""Words that are keywords only in front of others; elsewhere they can name a column."""

_SAMPLED = re.compile(r"SAMPLED\b", re.IGNORECASE)

_SQL_LITERALS = {"TIMESTAMP": "TIMEVAL", "DATE": "TIMEVAL"}
"""Words of SQL in front of a text, and those of GSQL."""

_BARE_INTERVAL = re.compile(r"([0-9.]{1,40})\s+([A-Za-z]+)")
_UNIT = re.compile(r"\s*([A-Za-z]+)")

_SUPERAGGREGATE = re.compile(r"\$(?=\s*\()")
_DIGITS = tuple("0123456789")
"""The digits of numbers: ``str.isdigit`` accepts ``²`` and ``٣`` as well."""
_MARKED = {"$": "PARAMETER", "#": "DEFINITION", "@": "PROPERTY"}

_SPELLINGS = {"!=": "<>", "==": "=", "&&": "AND"}
"""Operators of other languages, and those of GSQL."""

_WRONG_SYMBOLS = {
    "=<": "write <=",
    "=>": "write >=",
    '"': "write text in single quotes: 'text'; names need no quotes",
    "`": "names need no quotes; write text in single quotes: 'text'",
    "\u2018": "write a plain quote: '",
    "\u2019": "write a plain quote: '",
    "\u201c": "write a plain quote: '",
    "\u201d": "write a plain quote: '",
    "\u2013": "write a plain minus: -",
    "\u2212": "write a plain minus: -",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2260": "write <>",
}


class Scanner:
    """The tokens of one text.

    A token's value is its meaning: the word as written, the decoded text between quotes, the name
    behind ``$``. Its start and end are offsets in the text; line and column count from 1, lines as
    `str.splitlines` counts them.

    Args:
        text: the whole text.
        source: its name in messages.
        terminals: the terminal of each spelling, for every keyword (in capitals) and symbol of the
            grammar.
    """

    def __init__(self, text: str, source: str, terminals: Mapping[str, str]) -> None:
        self._text = text
        self._source = source
        self._terminals = terminals
        symbols = [spelling for spelling in terminals if not _WORD.match(spelling)] + [
            *_SPELLINGS,
            *_WRONG_SYMBOLS,
        ]
        self._symbol = re.compile(
            "|".join(re.escape(s) for s in sorted(symbols, key=len, reverse=True))
        )
        self._line_starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
        self._line = 1
        self._depth = 0

    def tokens(self, allowed: Callable[[], Container[str]]) -> Iterator[Token]:
        """Yield all tokens in order, without the end mark.

        Args:
            allowed: returns the terminals that the grammar allows next; called before each word,
                after all tokens before it.

        Raises:
            GsqlSyntaxError: a character, number, quote or comment is invalid, or brackets nest too
                deep.
        """
        at = self._past_blanks(1 if self._text.startswith("\ufeff") else 0)
        before = ""
        count = 0
        while at < len(self._text):
            token = self._token(at, before, allowed)
            count += 1
            if count > MAX_TOKENS:
                message = f"more than {MAX_TOKENS} words and symbols in one text"
                raise self._error(message, at, 1, "split it into several files")
            yield token
            before = token.type
            at = self._past_blanks(_end(token))

    def _past_blanks(self, at: int) -> int:
        while True:
            blank = _BLANK.match(self._text, at)
            if blank:
                at = blank.end()
            if not self._text.startswith("/*", at):
                return at
            end = self._text.find("*/", at + 2)
            if end < 0:
                message = "this comment is not closed"
                raise self._error(message, at, 2, "end it with */")
            at = end + 2

    def _token(self, at: int, before: str, allowed: Callable[[], Container[str]]) -> Token:
        text = self._text
        address = _ADDRESS.match(text, at) if before not in _BEFORE_NO_ADDRESS else None
        if address and is_address(address[0]) and not (text[at] == ":" and before == "NAME"):
            return self._make("STRING", address[0], at, address.end())
        if before in _BEFORE_INPUT and (input_name := self._input_name(at, allowed())):
            return input_name
        word = _WORD.match(text, at)
        if word:
            return self._word(word[0], at, before, allowed())
        character = text[at]
        if character == "'":
            value, end = self._quoted(at)
            return self._make("STRING", value, at, end)
        if character == "(" and before == "IN":
            end = find_list(text, at)
            if end:
                return self._make("CONSTANTS", text[at:end], at, end)
        if character == '"' and before == "AS":
            name = _DOUBLE_QUOTED.match(text, at)
            if name and _WORD.fullmatch(name[1]):
                return self._make("NAME", name[1], at, name.end())
        if character in _DIGITS:
            return self._number(at, before)
        if (
            character == "."
            and text[at + 1 : at + 2] in _DIGITS
            and before not in {"NAME", "RSQB", "STRING"}
        ):
            return self._number(at, before)
        if character in _MARKED:
            return self._marked(at)
        return self._symbol_token(at)

    def _input_name(self, at: int, allowed: Container[str]) -> Token | None:
        """Return the name of an input, or of its interface, that is not a name elsewhere.

        ``-`` and a digit in front are unambiguous here: an input begins no expression.
        """
        if "LSQB" not in allowed or "NAME" not in allowed:
            return None
        name = _HYPHENATED.match(self._text, at) or _DIGIT_FIRST.match(self._text, at)
        if name:
            return self._make("NAME", name[0], at, name.end())
        quoted = _DOUBLE_QUOTED.match(self._text, at)
        return self._make("STRING", quoted[1], at, quoted.end()) if quoted else None

    def _word(self, word: str, at: int, before: str, allowed: Container[str]) -> Token:
        end = at + len(word)
        keyword = word.upper()
        if before == "DOT":
            return self._make("NAME", word, at, end)
        if keyword in _SQL_LITERALS and self._text.startswith("'", self._past_blanks(end)):
            keyword = _SQL_LITERALS[keyword]
        if keyword in QUOTED_LITERALS and keyword in allowed:
            blank = _BLANK.match(self._text, end)
            quote = blank.end() if blank else end
            if self._text.startswith("'", quote):
                value, end = self._quoted(quote)
                if keyword == "INTERVAL":
                    value, end = self._with_unit(value, end)
                return self._make(keyword, value, at, end)
            bare = _BARE_INTERVAL.match(self._text, quote) if keyword == "INTERVAL" else None
            if bare and read_interval_ns(bare[0]) is not None:
                return self._make(keyword, bare[0], at, bare.end())
        if keyword == "NOT" and "NOT_SAMPLED" in allowed:
            # Two words and one token: behind an expression NOT also begins NOT IN.
            sampled = _SAMPLED.match(self._text, self._past_blanks(end))
            if sampled:
                return self._make("NOT_SAMPLED", "NOT SAMPLED", at, sampled.end())
        mark = _SUPERAGGREGATE.match(self._text, end)
        if mark:
            return self._make("SUPERAGGREGATE", word, at, end + 1)
        terminal = self._terminals.get(keyword)
        following = _FOLLOWED_BY.get(keyword)
        if following and not following.match(self._text, self._past_blanks(end)):
            terminal = None
        if terminal is not None and (keyword in RESERVED or terminal in allowed):
            return self._make(terminal, word, at, end)
        return self._make("NAME", word, at, end)

    def _quoted(self, at: int) -> tuple[str, int]:
        """Return the text in the quotes that open at ``at``, and where they end.

        A doubled quote stands for one.
        """
        pieces = []
        start = at + 1
        while True:
            quote = self._text.find("'", start)
            if quote < 0:
                line_end = (
                    self._line_starts[self._line_of(at)]
                    if self._line_of(at) < len(self._line_starts)
                    else at + 1
                )
                remedy = "end the text with '; a quote inside it is doubled: ''"
                message = "this quote is not closed"
                raise self._error(message, at, max(1, line_end - at), remedy)
            pieces.append(self._text[start:quote])
            if not self._text.startswith("''", quote):
                return "'".join(pieces), quote + 1
            start = quote + 2

    def _with_unit(self, value: str, end: int) -> tuple[str, int]:
        """Return the length of ``INTERVAL '5' MINUTE`` and its end."""
        unit = _UNIT.match(self._text, end)
        if unit and read_interval_ns(value) is None:
            together = f"{value} {unit[1]}"
            if read_interval_ns(together) is not None:
                return together, unit.end()
        return value, end

    def _number(self, at: int, before: str) -> Token:
        number = _NUMBER.match(self._text, at)
        assert number is not None  # the caller has seen a digit
        digits, end = number[0], number.end()
        dotted = _DOTTED_NUMBER.match(self._text, at)
        if before == "DOT":
            message = "a name cannot start with a digit"
            remedy = f"put such a name in quotes: {self._quoted_source(at)}"
            raise self._error(message, at, len(digits), remedy)
        if dotted:
            remedy = (
                f"an address is written IP_VAL'{dotted[0]}'" if dotted[0].count(".") == 3 else ""
            )
            if before in _BEFORE_INPUT:
                remedy = f"put such a name in quotes: {self._quoted_source(at)}"
            message = "invalid number"
            raise self._error(message, at, len(dotted[0]), remedy)
        following = self._text[end : end + 1]
        if following and (following.isalnum() or following in "_."):
            tail = _NUMBER_TAIL.match(self._text, end)
            length = len(digits) + (len(tail[0]) if tail else 0)
            message = "invalid number"
            remedy = "a name starts with a letter or _"
            written = self._text[at : at + length]
            if read_interval_ns(written) is not None:
                remedy = (
                    f"put a length of time in quotes: '{written}' in a window, "
                    f"INTERVAL '{written}' elsewhere"
                )
            raise self._error(message, at, length, remedy)
        is_integer = digits.isdigit() or digits[:2] in {"0x", "0X"}
        return self._make("INTEGER" if is_integer else "FLOAT", digits, at, end)

    def _quoted_source(self, at: int) -> str:
        """Return the input around ``at`` with its interface in quotes."""
        begin = at
        while begin > 0 and _SOURCE.match(self._text, begin - 1).end() >= at:  # type: ignore[union-attr]
            begin -= 1
        source = _SOURCE.match(self._text, begin)
        assert source is not None
        interface, _, name = source[0].rpartition(".")
        if not _WORD.fullmatch(name):
            return "'eth0.100'.TCP"
        return f"'{interface}'.{name}"

    def _marked(self, at: int) -> Token:
        mark = self._text[at]
        name = _WORD.match(self._text, at + 1)
        if not name:
            message = f"a name must follow {mark}"
            remedy = "a comment begins with -- or //" if mark == "#" else ""
            raise self._error(message, at, 1, remedy)
        closed = mark == "#" and self._text.startswith("#", name.end())
        return self._make(_MARKED[mark], name[0], at, name.end() + closed)

    def _symbol_token(self, at: int) -> Token:
        match = self._symbol.match(self._text, at)
        if match and match[0] == '"':
            raise self._double_quoted(at)
        if not match or match[0] in _WRONG_SYMBOLS:
            wrong = match[0] if match else self._text[at]
            shown = wrong if wrong.isprintable() else repr(wrong)
            message = f"unexpected {shown}"
            raise self._error(message, at, len(wrong), _WRONG_SYMBOLS.get(wrong, ""))
        symbol = match[0]
        self._depth += (symbol in "([{") - (symbol in ")]}")
        if self._depth > MAX_DEPTH:
            message = f"brackets are nested more than {MAX_DEPTH} deep"
            raise self._error(
                message,
                at,
                1,
                "split the query into several",
            )
        spelling = _SPELLINGS.get(symbol, symbol)
        return self._make(self._terminals[spelling], spelling, at, match.end())

    def _double_quoted(self, at: int) -> GsqlSyntaxError:
        """Return the error for a text in double quotes."""
        quoted = _DOUBLE_QUOTED.match(self._text, at)
        if not quoted:
            return self._error('unexpected "', at, 1, _WRONG_SYMBOLS['"'])
        shown = quoted[1].replace("'", "''")
        remedy = f"write '{shown}'; text is in single quotes, and names need none"
        return self._error(f"unexpected {quoted[0]}", at, len(quoted[0]), remedy)

    def _make(self, terminal: str, value: str, at: int, end: int) -> Token:
        line = self._line_of(at)
        return Token(terminal, value, at, line, at - self._line_starts[line - 1] + 1, end_pos=end)

    def _line_of(self, at: int) -> int:
        """Return the line of an offset; offsets never decrease from call to call."""
        while self._line < len(self._line_starts) - 1 and self._line_starts[self._line] <= at:
            self._line += 1
        return self._line

    def _error(self, message: str, at: int, length: int, remedy: str = "") -> GsqlSyntaxError:
        line = self._line_of(at)
        position = Position(line, at - self._line_starts[line - 1] + 1, length)
        return GsqlSyntaxError(
            message, text=self._text, position=position, remedy=remedy, source=self._source
        )


def token_position(token: Token) -> Position:
    """Return the place of a token of `Scanner`, with its written length."""
    return Position(
        token.line or 1, token.column or 1, max(1, _end(token) - (token.start_pos or 0))
    )


def span(start: Position, last: Token) -> Position:
    """Return the place from a position to the end of a token on the same line.

    If the token is on another line, it is the position itself.
    """
    end = token_position(last)
    if end.line != start.line:
        return start
    return Position(start.line, start.column, end.column + end.length - start.column)


def _end(token: Token) -> int:
    return token.end_pos or 0
