"""CAST(x AS type): another spelling of the functions that convert."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlSyntaxError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.gsql.scanner import token_position

if TYPE_CHECKING:
    from lark import Token

_FUNCTIONS = {
    **dict.fromkeys(("BOOL", "BOOLEAN"), "BOOL"),
    **dict.fromkeys(("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT"), "INT"),
    **dict.fromkeys(("UINT", "USHORT", "LLONG", "ULLONG"), "INT"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL"), "FLOAT"),
    **dict.fromkeys(("STRING", "TEXT", "VARCHAR", "CHAR"), "STRING"),
    **dict.fromkeys(("TIMESTAMP", "TIMEVAL"), "TIMESTAMP"),
    **dict.fromkeys(("IP", "IPV6", "INET"), "strtoip"),
}
"""The function that converts to a type, by the type's names in SQL and GSQL, in capitals."""

_WITH_LENGTH = frozenset({"VARCHAR", "CHAR"})


def cast_function(type_name: Token, *, has_length: bool) -> Token:
    """Return the name of the function that converts to a type, with the position of the type.

    Raises:
        GsqlSyntaxError: there is no such type, or it takes no length.
    """
    name = type_name.upper()
    function = _FUNCTIONS.get(name)
    if function is None:
        known = "INT, FLOAT, STRING, BOOL, TIMESTAMP and IP"
        remedy = suggestion(name, _FUNCTIONS, f"types to cast to are {known}")
        message = f"unknown type in CAST: {type_name}"
        raise GsqlSyntaxError(message, position=token_position(type_name), remedy=remedy)
    if has_length:
        # A length truncates the text in some systems and is an error in others.
        short = "substr(STRING(x), 1, n)" if name in _WITH_LENGTH else name
        message = f"{name} takes no length here"
        remedy = f"write {name} alone" if name not in _WITH_LENGTH else f"cut a text with {short}"
        raise GsqlSyntaxError(message, position=token_position(type_name), remedy=remedy)
    return type_name.update(value=function)
