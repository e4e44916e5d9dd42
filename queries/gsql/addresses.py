"""Addresses that a query text has without quotes."""

from __future__ import annotations

import re
from ipaddress import ip_interface

_MAC = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}")


def is_address(text: str) -> bool:
    """Return whether ``text`` is an IP address, a network or a link-layer address."""
    if _MAC.fullmatch(text):
        return True
    try:
        ip_interface(text)
    except ValueError:
        return False
    return True
