"""Arguments that stand in the wrong place.

That is a query or a packet filter where a file or name belongs.
"""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.library.files import library_files

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUERY = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|merge|with|define|param)(?![\w.=-])", re.I)

_PROTOCOLS = frozenset(
    (
        *("arp", "ether", "icmp", "icmp6", "igmp", "ip", "ip6", "mpls", "pppoed", "pppoes"),
        *("rarp", "sctp", "tcp", "udp", "vlan", "wlan"),
    )
)
"""Words that are a whole filter by themselves."""

_FIRST_WORDS = _PROTOCOLS | frozenset(
    (
        *("broadcast", "dst", "gateway", "geneve", "greater", "host", "inbound", "len", "less"),
        *("multicast", "net", "not", "outbound", "port", "portrange", "proto", "src"),
    )
)
"""Words that a filter of several words begins with, in pcap-filter(7)."""

_WORD = re.compile(r"[\s(!]*([a-z0-9]+)", re.I)
_LONGEST_SHOWN = 60


def refuse_misplaced(
    arguments: Sequence[str],
    expected: str,
    *,
    filter_option: str | None,
    takes_names: bool,
    has_texts: bool = False,
) -> None:
    """Refuse arguments that are a query or a packet filter; a file of that name has precedence.

    Args:
        arguments: what was given where files, or names of queries, belong.
        expected: what the command expects there, with its article.
        filter_option: the option that takes a packet filter; None if the command has none.
        takes_names: whether the name of a query is valid there.
        has_texts: whether there are other texts, whose queries can be named.

    Raises:
        UsageError: an argument is a query or a filter; the message gives the option to use.
    """
    for position, argument in enumerate(arguments):
        if _exists(argument):
            continue
        # The shell splits a text without quotes.
        text = " ".join(takewhile(lambda each: not _exists(each), arguments[position:]))
        if argument in library_files():
            if takes_names:
                continue
            raise UsageError(_remedy(argument, "a library query", expected, "-q"))
        if _QUERY.match(argument):
            raise UsageError(_remedy(text, "a query", expected, "-e"))
        # With another text, a single word may be the name of one of its queries.
        is_name = takes_names and has_texts and len(text.split()) == 1
        if filter_option is not None and not is_name and is_filter(text):
            raise UsageError(_remedy(text, "a packet filter", expected, filter_option))


def is_filter(text: str) -> bool:
    """Return whether ``text`` begins as filters of pcap-filter(7) do and file names do not."""
    word = _WORD.match(text)
    if word is None:
        return False
    first, rest = word[1].lower(), text[word.end() :].strip(" )")
    if not rest:
        return first in _PROTOCOLS
    return first in _FIRST_WORDS and (text[word.end()] in " \t\n[<>=!&|)")


def _remedy(text: str, kind: str, expected: str, option: str) -> str:
    """Return the sentence for ``text``, cut where it is long."""
    cut = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
    return f"{cut!r} is {kind}, not {expected}; use {option} {shlex.quote(cut)}"


def _exists(argument: str) -> bool:
    """Return whether an argument is a file, or ``NAME=FILE`` with one."""
    try:
        return Path(argument).exists() or Path(argument.partition("=")[2] or argument).exists()
    except (OSError, ValueError):
        return False
