"""Names of services from a file in the format of ``/etc/services``.

A line is ``name port/protocol aliases``; ``#`` begins a comment. The first name of a port counts,
as for the C library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from gscope.engine.lookups.table import number_table
from gscope.errors import EngineError
from gscope.queries.catalog.ip_protocols import PROTOCOL_NUMBERS

if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.engine.lookups.table import LookupTable

_PORT = re.compile(r"(\d{1,5})/(\S+)")
_MAX_PORT = 65535
_MAX_PROTOCOL = 255


def read_services(text: str, path: str) -> LookupTable:
    """Return the table of a file with the contents ``text``.

    Raises:
        EngineError: a line is invalid; the message names it.
    """
    names: dict[int, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        found = _PORT.fullmatch(words[1]) if len(words) > 1 else None
        if found is None or int(found[1]) > _MAX_PORT:
            message = f"{path}:{number}: expected a line such as https 443/tcp, got {line[:60]!r}"
            raise EngineError(message)
        protocol = PROTOCOL_NUMBERS.get(found[2].lower())
        if protocol is None:
            message = f"{path}:{number}: unknown protocol {found[2][:20]!r}: expected tcp or udp"
            raise EngineError(message)
        names.setdefault(_key(int(found[1]), protocol), words[0].encode())
    values = list(dict.fromkeys(names.values()))
    places = {name: place for place, name in enumerate(values)}
    return number_table(((key, key, places[name]) for key, name in names.items()), values)


def service_keys(ports: pa.Array, protocols: pa.Array) -> NDArray[Any]:
    """Return columns of ports and IP protocols as keys; NULL becomes any key."""
    port, protocol = (
        column.fill_null(0).to_numpy(zero_copy_only=False) for column in (ports, protocols)
    )
    is_known = (port >= 0) & (port <= _MAX_PORT) & (protocol >= 0) & (protocol <= _MAX_PROTOCOL)
    return np.where(is_known, _key(port, protocol), -1)


def _key(port: Any, protocol: Any) -> Any:
    return (protocol << 16) | port
