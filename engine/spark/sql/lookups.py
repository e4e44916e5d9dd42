"""Lookups as Arrow functions, which carry their tables to the tasks.

Each step begins with the tables that its rows see: a file that has changed is read, and its
functions are registered again. Spark resolves the functions of a plan when it plans it, so no task
sees two versions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.lookups.files import LookupFile
from gscope.engine.lookups.services_file import service_keys
from gscope.engine.lookups.table import address_keys
from gscope.engine.lookups.vendors_file import mac_keys
from gscope.engine.spark.sql.arrow_function import spark_function
from gscope.engine.spark.sql.expressions import udf_name
from gscope.errors import EngineError
from gscope.queries.catalog.scalar.lookups import LOOKUP_OF, LOOKUPS
from gscope.queries.expressions.expressions import Call, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from gscope.engine.lookups.table import LookupTable
    from gscope.queries.plan.program import Program

_log = logging.getLogger(__name__)

_KEYS: dict[str, Callable[..., Any]] = {
    "asn": address_keys,
    "country": address_keys,
    "network": address_keys,
    "service": service_keys,
    "vendor": mac_keys,
}


class Lookups:
    """The files in which the functions of a program look values up.

    Raises:
        EngineError: a file cannot be read when the job starts.
    """

    def __init__(self, session: SparkSession, program: Program) -> None:
        self._session = session
        self._files = [LookupFile(name, path) for name, path in program.lookups]
        for file in self._files:
            self._register(file, file.read())

    def refresh(self) -> None:
        """Read files again that have changed; an invalid file leaves its table as it was."""
        for file in self._files:
            try:
                table = file.read_change()
            except EngineError as error:
                _log.warning("lookup %s unchanged: %s", file.name, error)
                continue
            if table is not None:
                self._register(file, table)
                _log.info("lookup %s read again from %s", file.name, file.path)

    def _register(self, file: LookupFile, table: LookupTable) -> None:
        for function in (each for each, name in LOOKUP_OF.items() if name == file.name):
            entry = LOOKUPS[function]
            kinds = [parameter.type for parameter in entry.parameters]
            assert entry.result is not None
            call = Call(function, tuple(Literal(None, k) for k in kinds if k), entry.result, True)
            made = spark_function(arrow_function(function, table), entry.result)
            # Spark warns of a name that is registered twice.
            self._session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {udf_name(call)}")
            self._session.udf.register(udf_name(call), made)


def arrow_function(function: str, table: LookupTable) -> Callable[..., pa.Array]:
    """Return a lookup of whole columns; NULL gives NULL."""
    keys = _KEYS[function]

    def look_up(*columns: pa.Array) -> pa.Array:
        found = table.find(keys(*columns))
        for column in columns:
            if column.null_count:
                found = pc.if_else(column.is_valid(), found, pa.scalar(None, found.type))
        return found

    return look_up
