"""Names of networks from a CSV or YAML file that the user wrote.

A line of CSV is ``network,name``; a first line with these words is a heading, empty lines and lines
that begin with ``#`` are skipped. YAML maps each name to a network or to a list of networks. An
address stands for the network that holds it alone.
"""

from __future__ import annotations

import csv
import io
import ipaddress
from typing import TYPE_CHECKING

from gscope.engine.lookups.table import NO_VALUE, address_table
from gscope.errors import EngineError
from gscope.queries.catalog.scalar.addresses import ipv6_value, parse_ip

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

    from gscope.engine.lookups.table import LookupTable, Range

YAML_ENDINGS = (".yaml", ".yml")
_HEADING = ["network", "name"]
_V4_FIRST = 0xFFFF << 32
_ALL_V4: Range = (_V4_FIRST, _V4_FIRST | 0xFFFFFFFF, NO_VALUE)
"""IPv4 addresses, which are in no IPv6 network, however wide it is."""


def read_networks(text: str, path: str) -> LookupTable:
    """Return the table of a file with the contents ``text``.

    Raises:
        EngineError: a line is invalid, or gives a network a second name; the message names it.
    """
    entries = _yaml_entries if path.lower().endswith(YAML_ENDINGS) else _csv_entries
    places: dict[bytes, int] = {}
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for line, network, name in entries(text, path):
        where = f"{path}:{line}"
        if not name:
            message = f"{where}: the network {network[:60]!r} has no name"
            raise EngineError(message)
        key = _range(network, where)
        place = places.setdefault(name.encode(), len(places))
        other, before = ranges.setdefault(key, (place, line))
        if other != place:
            message = f"{where}: the network {network} has another name in line {before}"
            raise EngineError(message)
    found = ((first, last, place) for (first, last), (place, _) in ranges.items())
    return address_table((_ALL_V4, *found), list(places))


def _csv_entries(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the network and the name of each entry."""
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    is_first = True
    try:
        for fields in reader:
            texts = [field.strip() for field in fields]
            if not any(texts) or texts[0].startswith("#"):
                continue
            if not (is_first and [each.lower() for each in texts] == _HEADING):
                if len(texts) != len(_HEADING):
                    message = (
                        f"{path}:{reader.line_num}: expected network,name, got {len(texts)} "
                        f"{'field' if len(texts) == 1 else 'fields'}"
                    )
                    raise EngineError(message)
                yield reader.line_num, texts[0], texts[1]
            is_first = False
    except csv.Error as error:
        message = f"{path}:{reader.line_num}: {error}"
        raise EngineError(message) from None


def _yaml_entries(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    import yaml

    try:
        root = yaml.compose(
            text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        )
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        message = f"{path}:{line}: invalid YAML: {error.problem}"
        raise EngineError(message) from None
    except (yaml.YAMLError, RecursionError) as error:
        message = f"{path}: invalid YAML: {str(error).splitlines()[0]}"
        raise EngineError(message) from None
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        message = f"{path}:{_line(root)}: expected names of networks, each with its networks"
        raise EngineError(message)
    for key, value in root.value:
        networks = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for node in (key, *networks):
            if not isinstance(node, yaml.ScalarNode):
                message = f"{path}:{_line(node)}: expected a name, and a network or a list of them"
                raise EngineError(message)
        yield from ((_line(node), node.value.strip(), key.value.strip()) for node in networks)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _range(text: str, where: str) -> tuple[int, int]:
    """Return the first and the last address of a network, as IP values."""
    address, slash, length = text.partition("/")
    value = parse_ip(address)
    if value is None:
        message = f"{where}: invalid network {text[:60]!r}: expected one such as 10.0.0.0/8"
        raise EngineError(message)
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        width = 32 if ":" not in address else 128
        is_length = slash and length.isdecimal() and int(length) <= width
        reason = (
            "it has bits behind its prefix"
            if is_length
            else f"expected a prefix length of at most {width}"
        )
        message = f"{where}: invalid network {text[:60]!r}: {reason}"
        raise EngineError(message) from None
    first = int(network.network_address)
    first = _V4_FIRST | first if network.version == 4 else ipv6_value(first)
    return first, first + network.num_addresses - 1
