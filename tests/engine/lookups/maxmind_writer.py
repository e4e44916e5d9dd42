"""Writes MaxMind DB files, from the description of the format: a plain trie, and its records."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Node = list[Any]

ALIASES = ("::ffff:0:0/96", "2002::/16", "2001::/32")
"""The networks of IPv6 that have the addresses of IPv4 in files of MaxMind."""


class Short(int):
    """A number of 16 bits; metadata has numbers of stated sizes."""


class Long(int):
    """A number of 64 bits."""


def database(
    networks: Mapping[Network, Mapping[str, Any]],
    *,
    width: int = 28,
    family: int = 6,
    aliases: Sequence[str] = (),
    kind: str = "Test",
    has_pointers: bool = True,
) -> bytes:
    """A file in which the longest prefix counts; ``width`` bits a record."""
    root: Node = [None, None]
    for network in sorted(networks, key=lambda each: each.prefixlen):
        bits = _bits(network, family)
        _put(root, bits, networks[network])
    if aliases:
        four: Node = root
        for _ in range(96):
            four = four[0]
        for text in aliases:
            _put(root, _bits(ipaddress.ip_network(text), 6), four)
    nodes: list[Node] = []
    numbers: dict[int, int] = {}
    queue = [root]
    while queue:
        node = queue.pop()
        if id(node) not in numbers:
            numbers[id(node)] = len(nodes)
            nodes.append(node)
            queue += [child for child in node if isinstance(child, list)]
    data = bytearray()
    known: dict[bytes, int] = {}
    offsets: dict[bytes, int] = {}

    def record(child: Any) -> int:
        if child is None:
            return len(nodes)
        if isinstance(child, list):
            return numbers[id(child)]
        text = encoded(child)
        if text not in offsets:
            packed = encoded(child, known if has_pointers else None, data)
            offsets[text] = len(data)
            data.extend(packed)
        return len(nodes) + 16 + offsets[text]

    tree = b"".join(_pair(record(left), record(right), width) for left, right in nodes)
    metadata = {
        "binary_format_major_version": Short(2),
        "binary_format_minor_version": Short(0),
        "build_epoch": Long(1 << 31),
        "database_type": kind,
        "description": {"en": "a test"},
        "ip_version": Short(family),
        "languages": ["en"],
        "node_count": len(nodes),
        "record_size": Short(width),
    }
    return tree + bytes(16) + bytes(data) + b"\xab\xcd\xefMaxMind.com" + encoded(metadata)


def encoded(
    value: Any, known: dict[bytes, int] | None = None, data: bytearray | None = None
) -> bytes:
    """A value; texts and maps inside it that were written before become pointers to them."""
    if isinstance(value, bool):
        return _control(14, int(value))
    if isinstance(value, int):
        content = value.to_bytes((value.bit_length() + 7) // 8, "big")
        kind = 5 if isinstance(value, Short) else 6
        is_long = isinstance(value, Long) or value >= 1 << 32
        return _control(9 if is_long else kind, len(content)) + content
    if isinstance(value, float):
        return _control(3, 8) + bytes(8)
    if isinstance(value, str):
        return _control(2, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _control(11, len(value)) + b"".join(encoded(each, known, data) for each in value)
    parts = [
        _shared(part, known, data) if known is not None and data is not None else encoded(part)
        for pair in value.items()
        for part in pair
    ]
    return _control(7, len(value)) + b"".join(parts)


def _shared(value: Any, known: dict[bytes, int], data: bytearray) -> bytes:
    if not isinstance(value, str | dict):
        return encoded(value)
    text = encoded(value)
    if text not in known:
        packed = encoded(value, known, data)
        known[text] = len(data)
        data.extend(packed)
    return _pointer(known[text])


def _pointer(target: int) -> bytes:
    for width, (least, most) in enumerate(((0, 2048), (2048, 526336), (526336, 134744064))):
        if target < most:
            rest = (target - least).to_bytes(width + 2, "big")
            return bytes([0x20 | width << 3 | rest[0]]) + rest[1:]
    return b"\x38" + target.to_bytes(4, "big")


def _control(kind: int, size: int) -> bytes:
    low, more = size, b""
    for mark, least, width in ((31, 65821, 3), (30, 285, 2), (29, 29, 1)):
        if size >= least:
            low, more = mark, (size - least).to_bytes(width, "big")
            break
    head = bytes([kind << 5 | low]) if kind < 8 else bytes([low, kind - 7])
    return head + more


def _pair(left: int, right: int, width: int) -> bytes:
    if width == 28:
        middle = bytes([left >> 24 << 4 | right >> 24])
        return (left & 0xFFFFFF).to_bytes(3) + middle + (right & 0xFFFFFF).to_bytes(3)
    return left.to_bytes(width // 8) + right.to_bytes(width // 8)


def _bits(network: Network, family: int) -> str:
    width = network.max_prefixlen
    bits = f"{int(network.network_address):0{width}b}"[: network.prefixlen]
    return "0" * 96 + bits if network.version == 4 and family == 6 else bits


def _put(node: Node, bits: str, value: Any) -> None:
    for bit in bits[:-1]:
        child = node[int(bit)]
        if not isinstance(child, list):
            child = node[int(bit)] = [child, child]
        node = child
    node[int(bits[-1])] = value
