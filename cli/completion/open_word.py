"""The word at the cursor: what it stands for, and whether a quote is open in it."""

from __future__ import annotations

from gscope.records import dataclass

_QUOTES = "'\""


@dataclass(frozen=True, slots=True)
class OpenWord:
    """The last word of a command line that ends at the cursor.

    Attributes:
        raw: as typed.
        text: without quotes and escapes.
        quote: the place in ``text`` at which the open quote began; None if no quote is.
    """

    raw: str
    text: str
    quote: int | None = None

    def kept(self, breaks: str) -> int:
        """Return the length of the part of ``text`` that bash keeps when it completes the word.

        Args:
            breaks: the characters at which bash breaks words, ``COMP_WORDBREAKS``.
        """
        if self.quote is not None:
            return self.quote
        # Quotes and escapes before the last break are rare enough to be left out.
        return max((self.text.rfind(each) + 1 for each in breaks if each not in _QUOTES), default=0)


def last_word(line: str) -> OpenWord:
    """Return the word that ``line``, a command line in the syntax of POSIX shells, ends in."""
    start, text = 0, ""
    open_quote = ""
    quote: int | None = None
    place = 0
    while place < len(line):
        character = line[place]
        if open_quote:
            if character == open_quote:
                open_quote, quote = "", None
            elif character == "\\" and open_quote == '"' and line[place + 1 : place + 2] in '"\\$`':
                place += 1
                text += line[place : place + 1]
            else:
                text += character
        elif character in _QUOTES:
            open_quote, quote = character, len(text)
        elif character == "\\":
            place += 1
            text += line[place : place + 1]
        elif character.isspace():
            start, text = place + 1, ""
        else:
            text += character
        place += 1
    return OpenWord(line[start:], text, quote)
