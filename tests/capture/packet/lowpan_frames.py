"""IEEE 802.15.4 frames with IPv6 headers compressed by RFC 6282, in every stateless form."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_LINK_BYTES = {0: 0, 2: 2, 3: 8}
_CLASS_BYTES = (4, 3, 1, 0)
_ADDRESS_BYTES = (16, 8, 2, 0)
_GROUP_BYTES = (16, 6, 4, 1)
_PORT_BYTES = (4, 3, 3, 1)
UNSPECIFIED = 4


def mac_header(
    chance: random.Random, source: int, destination: int, *, is_one_pan: bool = True
) -> bytes:
    """Return a data frame's header; addresses are never broadcast."""
    has_both = bool(source and destination)
    control = 0x0001 | destination << 10 | source << 14 | (0x40 if is_one_pan and has_both else 0)
    header = control.to_bytes(2, "little") + chance.randbytes(1)
    if destination:
        header += b"\xcd\xab" + chance.randbytes(_LINK_BYTES[destination] - 1) + b"\x02"
    if source:
        header += b"" if control & 0x40 else b"\xce\xab"
        header += chance.randbytes(_LINK_BYTES[source] - 1) + b"\x04"
    return header


def compressed(
    chance: random.Random,
    forms: tuple[int, int, int, int],
    transport: bytes,
    *,
    is_group: bool = False,
    protocol: int | None = None,
    with_contexts: bool = False,
) -> bytes:
    """Return a compressed header of random values.

    ``forms`` are those of class, hop limit, source and destination. ``transport`` follows it: a
    compressed header unless ``protocol`` says what it is.
    """
    class_form, limit_form, source, destination = forms
    flags = 0x60 | class_form << 3 | (4 if protocol is None else 0) | limit_form
    modes = source << 4 | (8 if is_group else 0) | destination | (0x80 if with_contexts else 0)
    header = bytes([flags, modes]) + (b"\x00" if with_contexts else b"")
    header += chance.randbytes(_CLASS_BYTES[class_form])
    if protocol is not None:
        header += bytes([protocol])
    if limit_form == 0:
        header += bytes([chance.randrange(1, 255)])
    if source != UNSPECIFIED:
        header += chance.randbytes(_ADDRESS_BYTES[source])
    sizes = _GROUP_BYTES if is_group else _ADDRESS_BYTES
    return header + chance.randbytes(sizes[destination]) + transport


def udp(chance: random.Random, form: int, payload: bytes, *, has_checksum: bool = True) -> bytes:
    """Return a compressed UDP header and what follows it."""
    header = bytes([0xF0 | (0 if has_checksum else 4) | form])
    header += chance.randbytes(_PORT_BYTES[form] + (2 if has_checksum else 0))
    return header + payload


def all_forms(chance: random.Random) -> Iterator[bytes]:
    """Yield every combination of forms that needs neither a context nor a missing address."""
    addresses = (*range(4), UNSPECIFIED)
    groups = (False, True)
    combinations = product(range(4), range(4), addresses, range(4), groups, (2, 3), (2, 3))
    for number, combination in enumerate(combinations):
        class_form, limit_form, source, destination, is_group, *links = combination
        payload = chance.randbytes(number % 7)
        if number % 3 == 0:
            transport = udp(chance, number // 3 % 4, payload, has_checksum=number // 12 % 2 == 0)
            protocol = None
        else:
            # 59: nothing follows, 253: for experiments; 17 with a header that is not compressed.
            protocol = (17, 59, 253)[number // 3 % 3]
            header = b"\x11\x11\x22\x22" + (8 + len(payload)).to_bytes(2) + b"\0\0"
            transport = header + payload if protocol == 17 else payload
        yield mac_header(chance, *links, is_one_pan=number % 5 != 0) + compressed(
            chance,
            (class_form, limit_form, source, destination),
            transport,
            is_group=is_group,
            protocol=protocol,
            with_contexts=number % 11 == 0,
        )
