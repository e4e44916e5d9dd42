"""Functions that look values up in local files, by address or by port.

This module holds only their types and facts. The HFTA job reads the files (``engine/lookups/``) and
evaluates the functions on whole columns; an LFTA ships the arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import Value

_COST = 50


def _refuse(name: str) -> Callable[..., Value]:
    def evaluate(*_: Value) -> Value:
        message = f"{name} is computed by the HFTA job alone, on whole columns"
        raise EngineError(message)

    return evaluate


def _entry(name: str, result: GsqlType, *parameters: GsqlType) -> FunctionEntry:
    return FunctionEntry(
        name,
        tuple(map(Parameter, parameters)),
        result,
        _refuse(name),
        makes_null=always,
        cost=_COST,
        is_lfta_safe=False,
        is_high_only=True,
    )


_FUNCTIONS = (
    _entry("asn", GsqlType.INT, GsqlType.IP),
    _entry("country", GsqlType.STRING, GsqlType.IP),
    _entry("network", GsqlType.STRING, GsqlType.IP),
    _entry("vendor", GsqlType.STRING, GsqlType.MAC),
    _entry("service", GsqlType.STRING, GsqlType.INT, GsqlType.INT),
)
LOOKUPS = {entry.name: entry for entry in _FUNCTIONS}

LOOKUP_OF = {
    "asn": "asn",
    "country": "country",
    "network": "networks",
    "service": "services",
    "vendor": "vendors",
}
"""The name of the lookup in which each function searches, as settings give it."""
