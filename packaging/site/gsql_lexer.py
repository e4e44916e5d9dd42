"""GSQL for Pygments: keywords are those of the grammar.

Few words of GSQL are reserved. The others are shown as keywords where they are written in capitals
and as names elsewhere, since a field may be called ``window`` or ``left``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pygments import lexers
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from gscope.queries.gsql.scanner import QUOTED_LITERALS, RESERVED
from gscope.queries.gsql.tables import user_tables

__all__ = ["GsqlLexer"]

KEYWORDS = frozenset(word for word in user_tables().terminals if word.isidentifier())
"""All words of the grammar, in capitals."""


class GsqlLexer(RegexLexer):
    """Tokens of a GSQL text; never an error token for a text that gscope accepts."""

    name = "Gigascope GSQL"
    aliases: ClassVar = ["gsql"]
    filenames: ClassVar = ["*.gsql"]
    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"(?:--|//)[^\r\n]*", Comment.Single),
            (r"'(?:[^']|'')*'", String.Single),
            (words(sorted(QUOTED_LITERALS), suffix=r"(?=\s*')"), Keyword.Type),
            (r"[$#@]\w+#?|\$(?=\s*\()", Name.Variable),
            (r"\w+\$(?=\s*\()", Name.Function),
            (r"(?i:0x[0-9a-f]+)", Number.Hex),
            (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]+)?", Number),
            (
                r"(?=[0-9a-fA-F:]*::|(?:[0-9a-fA-F]+:){5})[0-9a-fA-F:]{2,}[0-9.]*(?:/[0-9]+)?",
                Number,
            ),
            (r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", Number),
            (words(sorted(KEYWORDS), prefix=r"\b", suffix=r"\b"), Keyword),
            (rf"(?i:\b(?:{'|'.join(sorted(RESERVED))})\b)", Keyword),
            (r"[A-Za-z_]\w*(?=\s*[(\[])", Name.Function),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/%<>=!|&^~:.]+", Operator),
            (r"[()\[\]{},;]", Punctuation),
        ]
    }
    flags = re.MULTILINE


def register() -> None:
    """Let Pygments find the lexer as ``gsql``, in place of its own for a language of that name."""
    lexers.LEXERS["GSQLLexer"] = (__name__, GsqlLexer.name, ("gsql",), ("*.gsql",), ())
