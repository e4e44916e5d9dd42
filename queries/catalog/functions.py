"""Every scalar function and operator by its canonical name.

An entry's ``evaluate`` is the meaning that LFTA kernels, the interpreter and Spark must all give.
"""

from __future__ import annotations

from gscope.queries.catalog.scalar.addresses import ADDRESSES
from gscope.queries.catalog.scalar.application import APPLICATION
from gscope.queries.catalog.scalar.community import COMMUNITY
from gscope.queries.catalog.scalar.conversions import CONVERSIONS
from gscope.queries.catalog.scalar.entry import FunctionEntry
from gscope.queries.catalog.scalar.estimates import ESTIMATES
from gscope.queries.catalog.scalar.floats import FLOATS
from gscope.queries.catalog.scalar.hashes import HASHES
from gscope.queries.catalog.scalar.integers import INTEGERS
from gscope.queries.catalog.scalar.logic import LOGIC
from gscope.queries.catalog.scalar.lookups import LOOKUPS
from gscope.queries.catalog.scalar.orders import ORDERS
from gscope.queries.catalog.scalar.strings import STRINGS
from gscope.queries.catalog.scalar.tables import TABLES
from gscope.queries.catalog.scalar.times import TIMES

__all__ = ["FUNCTIONS", "OF_VALUES", "FunctionEntry"]

FUNCTIONS: dict[str, FunctionEntry] = {
    **INTEGERS,
    **FLOATS,
    **LOGIC,
    **TABLES,
    **ORDERS,
    **CONVERSIONS,
    **ESTIMATES,
    **ADDRESSES,
    **TIMES,
    **STRINGS,
    **HASHES,
    **COMMUNITY,
    **APPLICATION,
    **LOOKUPS,
}

OF_VALUES = frozenset(
    entry.name
    for entry in FUNCTIONS.values()
    if entry.is_foldable and entry.name not in {**TABLES, **ORDERS, **LOOKUPS}
)
"""Functions of nothing but the values of their arguments, users' functions excepted."""
