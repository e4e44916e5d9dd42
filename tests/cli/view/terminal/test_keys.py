"""Keys from the bytes that terminals send."""

from __future__ import annotations

import pytest

from gscope.cli.view.terminal.keys import Click, Event, Key, KeyReader

SEQUENCES: list[tuple[bytes, list[Event]]] = [
    (b"a", [Key("a", is_character=True)]),
    ("ü€😀".encode(), [Key(c, is_character=True) for c in "ü€😀"]),
    (b"\x1b[A\x1bOB\x1b[5~\x1b[6~", [Key(n) for n in ("up", "down", "page-up", "page-down")]),
    (b"\x1b[H\x1b[4~\x1b[Z\x1bOP", [Key(n) for n in ("home", "end", "back-tab", "help")]),
    (b"\r\t\x7f\x03", [Key(n) for n in ("enter", "tab", "backspace", "interrupt")]),
    (b"\x1b[<0;12;5M", [Click("left", 11, 4)]),
    (b"\x1b[<0;12;5m", []),
    (b"\x1b[<64;1;1M\x1b[<65;1;1M", [Click("wheel-up", 0, 0), Click("wheel-down", 0, 0)]),
    (b"\x1b[1;5C", [Key("right")]),
    (b"\x1b[99~x", [Key("x", is_character=True)]),
]


@pytest.mark.parametrize(("data", "expected"), SEQUENCES)
def test_sequences_whole_and_byte_by_byte(data: bytes, expected: list[Event]) -> None:
    assert KeyReader().read(data) == expected
    reader, found = KeyReader(), []
    for byte in data:
        found += reader.read(bytes([byte]))
    assert found == expected
    assert not reader.waits


def test_escape_is_a_key_when_nothing_follows() -> None:
    reader = KeyReader()
    assert reader.read(b"\x1b") == []
    assert reader.waits
    assert reader.read(b"") == [Key("escape")]
    assert reader.read(b"\x1bq") == [Key("escape"), Key("q", is_character=True)]


def test_bytes_that_are_no_text_do_no_harm() -> None:
    reader = KeyReader()
    reader.read(b"\xff\xfe")
    assert Key("q", is_character=True) in reader.read(b"\xffq") + reader.read(b"")
