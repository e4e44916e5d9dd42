"""The files in which functions look values up: their names, and where systems have them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_GEOIP = ("/var/lib/GeoIP", "/usr/share/GeoIP")
"""Where geoipupdate and packages of distributions put databases."""

_OF_SYSTEMS: dict[str, tuple[str, ...]] = {
    "asn": tuple(f"{folder}/GeoLite2-ASN.mmdb" for folder in _GEOIP),
    "country": tuple(
        f"{folder}/GeoLite2-{kind}.mmdb" for kind in ("Country", "City") for folder in _GEOIP
    ),
    "networks": (),
    "services": ("/etc/services",),
    "vendors": (
        "/usr/share/wireshark/manuf",
        "/usr/share/nmap/nmap-mac-prefixes",
        "/usr/share/ieee-data/oui.csv",
    ),
}
LOOKUP_NAMES = tuple(_OF_SYSTEMS)
"""The lookups, as settings name them."""


def files_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the absolute path of each lookup's file: the given one, else that of the system.

    Lookups without a file are left out. A given file need not exist.
    """
    found: dict[str, str] = {}
    for name in LOOKUP_NAMES:
        places = (given[name],) if name in given else _existing(_OF_SYSTEMS[name])
        if places:
            found[name] = str(Path(places[0]).absolute())
    return found


def usual_places(name: str) -> tuple[str, ...]:
    """Return where the file of a lookup is looked for if none is given."""
    return _OF_SYSTEMS[name]


def _existing(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if Path(path).is_file())
