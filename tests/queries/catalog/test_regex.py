r"""Regular expressions.

Python's on what both have, refused where RE2 has them not, and quick whatever the text is.
"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gscope.queries.catalog.scalar.regex import (
    RegexError,
    check_regex,
    find,
    find_all,
    is_usual,
    match_all,
    matches,
)

_ATOMS = st.sampled_from(
    [
        *(b"a", b"b", b".", b"[ab]", b"[^a]", b"[]a]", b"[(]", b"\\(", b"\\d", b"\\w", b"\\xff"),
        *(b"(a)", b"(?:ab)", b"(a|b)", b"(?P<x>ab)", b"((a)b)", b"^", b"\\b", b"\\Aa"),
    ]
)
_PIECES = st.builds(
    bytes.__add__, _ATOMS, st.sampled_from([b"", b"", b"*", b"+", b"?", b"{1,2}", b"*?"])
)
_PATTERNS = st.lists(_PIECES, min_size=1, max_size=4).map(b"".join)
_TEXTS = st.lists(st.sampled_from([b"a", b"b", b"(", b"1", b"\n", b"\xff", b"]"]), max_size=8)


@given(_PATTERNS, _TEXTS.map(b"".join))
def test_what_python_finds_is_found(pattern: bytes, text: bytes) -> None:
    try:
        expected = re.compile(pattern, re.DOTALL).search(text)
        check_regex(pattern)
    except (re.error, RegexError):
        return  # `^*`, or a name that comes twice
    assert matches(text, pattern) == (expected is not None)
    assert find(text, pattern) == (expected.group() if expected else None)


_MARKS = st.sampled_from([bytes([byte]) for byte in b"ab09-.*+?()[]^$|\\\\{},:dPQEx\n\xff"])


@given(st.one_of(_PATTERNS, st.lists(_MARKS, max_size=8).map(b"".join)))
@example(b"[Hh][Oo][Ss][Tt]:[0-9A-Z\\.\\: ]*")
@example(b"^[^\\n]*HTTP/1.*")
@example(b"(GET|POST)+? /[a-z]*$")
@settings(max_examples=1000)
def test_re2_accepts_what_is_accepted_without_asking_it(pattern: bytes) -> None:
    if is_usual(pattern):
        find_all([b""], pattern)
        assert match_all([b""], pattern) is not None


def test_re2_is_not_asked_about_usual_expressions() -> None:
    """The queries of the library, and what people write, compile without loading Arrow."""
    for pattern in (b"[Hh][Oo][Ss][Tt]:[0-9A-Z\\.\\: ]*", b"^[^\\n]*HTTP/1.*", b"(GET|POST) /"):
        assert is_usual(pattern)
    for pattern in (b"a**", b"(", b"[z-a]", b"[]", b"a{2}", b"(?i)a", b"^*", b"\xff", b"a" * 257):
        assert not is_usual(pattern)


def test_a_column_has_nothing_where_there_is_no_text() -> None:
    found = find_all([b"xab", None, b"", b"b"], b"(a)b|")
    assert found.to_pylist() == [b"", None, b"", b""]
    assert find_all([b"xab", None, b""], b"(a)b").to_pylist() == [b"ab", None, None]


@pytest.mark.parametrize(
    "pattern", [b"(?=a)", b"(?<!a)b", rb"(a)\1", b"a{5000}", b"(", b"[", b"a\\"]
)
def test_what_re2_has_not_is_refused(pattern: bytes) -> None:
    with pytest.raises(RegexError):
        check_regex(pattern)


@pytest.mark.parametrize(
    "pattern", [b"^(a+)+$x", b"(a|aa)+b", b".*a.*b.*c.*d.*e", b"(.*)*x", b"(a?){500}b"]
)
def test_no_payload_takes_long(pattern: bytes) -> None:
    started = time.process_time()
    assert not matches(b"a" * 65_536, pattern)
    assert find(b"a" * 65_536, pattern) is None
    assert time.process_time() - started < 10


def test_a_text_in_quotes_is_left_alone() -> None:
    assert find(b"x(a)", rb"\Q(a)\E") == b"(a)"
