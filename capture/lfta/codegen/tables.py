"""Membership in tables of constants as code: a call with the table's address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.scope import Lowered, Scope
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Call

_SEARCHES = {GsqlType.FLOAT: "is_in_floats", GsqlType.IP: "is_in_addresses"}


def lower_in_table(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    """Return the code of a membership test."""
    value, table = arguments
    parts = [f"1 if {value.code} else 0"] if value.type is GsqlType.BOOL else list(value.parts)
    search = _SEARCHES.get(value.type, "is_in_words")
    found = scope.value(f"{search}({', '.join([table.parts[0], *parts])})")
    return Lowered(call.type, (found,), value.null)
