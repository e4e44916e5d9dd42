"""DNS messages of a whole column: what ``dns.py`` reads from each payload, by numpy.

Nearly all messages on a network are whole, sent in a datagram, with names of ASCII. Their headers
and names are read for all rows at once; all other payloads are left to the reader of one payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.functions import dns
from gscope.queries.catalog.scalar.application import SEGMENT_BYTES
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

_LONGEST_NAME = 255
"""The most bytes of a name, its root label excepted, that dpkt reads."""

_IS_OPCODE = np.isin(np.arange(16), list(dns.OPCODES))
_DOT = ord(".")
_FIRST_BEYOND_ASCII = 0x80
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)


@dataclass(frozen=True, slots=True)
class ItemColumn:
    """An item of the messages in a column of payloads.

    Attributes:
        values: the item of each row; NULL for a NULL payload, for a damaged one, and in ``rest``.
        damaged: the number of rows whose message is cut off before the item.
        rest: for each row, whether the reader of one payload has to read it.
    """

    values: pa.Array
    damaged: int
    rest: Array


class DnsMessages:
    """The messages in a column of payloads.

    Args:
        payloads: the payloads, a column of type ``binary`` in one piece.
    """

    def __init__(self, payloads: pa.Array) -> None:
        valid = payloads.is_valid().to_numpy(zero_copy_only=False)
        _, offsets, content = payloads.buffers()
        ends = np.frombuffer(offsets, np.int32)[payloads.offset :][: len(payloads) + 1]
        self._bytes = np.frombuffer(content or b"", np.uint8)
        self._count = len(payloads)
        sizes = np.minimum(np.diff(ends), SEGMENT_BYTES)
        rows = np.flatnonzero(valid & (sizes >= dns.HEADER.size))
        begins, sizes = ends[rows].astype(np.int64), sizes[rows].astype(np.int64)
        # With its length before it, a message begins elsewhere.
        is_plain = self._words(begins) != sizes - dns.LENGTH_BYTES
        flags, questions = self._words(begins + 2), self._words(begins + 4)
        records = sum(self._words(begins + place) for place in (6, 8, 10))
        least = dns.HEADER.size + questions * dns.QUESTION_BYTES + records * dns.RECORD_BYTES
        is_plain &= _IS_OPCODE[(flags >> 11) & 0xF] & (least <= dns.LARGEST_MESSAGE)
        is_plain &= (questions > 0) | (records > 0) | (flags & dns.IS_RESPONSE > 0)
        self._is_label = np.zeros(len(self._bytes), np.bool_)
        name_ends = self._found_name_ends(begins, begins + sizes, is_plain & (questions > 0))
        is_plain &= (questions == 0) | (name_ends >= 0)
        self._rows = rows[is_plain]
        self._begins, self._limits = begins[is_plain], (begins + sizes)[is_plain]
        self._flags, self._questions = flags[is_plain], questions[is_plain]
        self._name_ends = name_ends[is_plain]
        rest = valid.copy()
        rest[self._rows] = False
        self._rest = rest

    def item(self, function: str) -> ItemColumn:
        """Return an item of each message; ``function`` is one of ``ITEMS``."""
        return ITEMS[function](self)

    def message_id(self) -> ItemColumn:
        """Return identifiers."""
        return self._integers(self._words(self._begins))

    def opcode(self) -> ItemColumn:
        """Return kinds of queries."""
        return self._integers((self._flags >> 11) & 0xF)

    def answers(self) -> ItemColumn:
        """Return numbers of answer records."""
        return self._integers(self._words(self._begins + 6))

    def rcode(self) -> ItemColumn:
        """Return response codes."""
        return self._integers(self._flags & dns.RESPONSE_CODE, self._is_response)

    def is_response(self) -> ItemColumn:
        """Return whether messages are responses."""
        return self._truths(self._is_response)

    def is_authoritative(self) -> ItemColumn:
        """Return whether servers answer for their own zones."""
        return self._truths(self._flags & dns.IS_AUTHORITATIVE > 0, self._is_response)

    def is_truncated(self) -> ItemColumn:
        """Return whether messages were too long."""
        return self._truths(self._flags & dns.IS_TRUNCATED > 0)

    def qtype(self) -> ItemColumn:
        """Return queried record types."""
        return self._behind_name(0)

    def qclass(self) -> ItemColumn:
        """Return queried classes."""
        return self._behind_name(2)

    def qname(self) -> ItemColumn:
        """Return queried names."""
        has_name = self._questions > 0
        # The root label ends a name.
        lengths = self._name_ends - 1 - (self._begins + dns.HEADER.size)
        is_read = has_name & (self._name_ends <= self._limits) & (lengths <= _LONGEST_NAME)
        begins = (self._begins + dns.HEADER.size + 1)[is_read]
        lengths = np.maximum(lengths[is_read] - 1, 0)
        ends = np.cumsum(lengths)
        places = np.repeat(begins - (ends - lengths), lengths) + np.arange(lengths.sum())
        read, is_label = self._bytes[places], self._is_label[places]
        # A name with other characters, or that ends with a dot of a label, is rare.
        is_odd = read >= _FIRST_BEYOND_ASCII
        is_odd[(ends - 1)[lengths > 0]] |= read[(ends - 1)[lengths > 0]] == _DOT
        odd = np.bincount(
            np.searchsorted(ends, np.flatnonzero(is_odd), "right"), minlength=len(ends)
        )
        names = _binary(np.where(is_label, _DOT, _LOWER[read]).astype(np.uint8), ends)
        names = pc.if_else(pa.array(lengths == 0), pa.scalar(dns.ROOT, pa.binary()), names)
        is_known = ~has_name
        is_known[is_read] = odd == 0
        rest = self._rest.copy()
        rest[self._rows[~is_known]] = True
        return ItemColumn(self._spread(names, self._rows[is_read]), 0, rest)

    @property
    def _is_response(self) -> Array:
        is_response: Array = self._flags & dns.IS_RESPONSE > 0
        return is_response

    def _behind_name(self, offset: int) -> ItemColumn:
        """Return the two bytes at ``offset`` after the names of first questions."""
        has_name = self._questions > 0
        places = self._name_ends + offset
        is_there = has_name & (places + 2 <= self._limits)
        values = np.zeros(len(places), np.int64)
        values[is_there] = self._words(places[is_there])
        found = self._integers(values, is_there)
        return ItemColumn(found.values, int((has_name & ~is_there).sum()), found.rest)

    def _integers(self, values: Array, is_valid: Array | None = None) -> ItemColumn:
        return self._column(values.astype(np.int64), is_valid)

    def _truths(self, values: Array, is_valid: Array | None = None) -> ItemColumn:
        return self._column(values, is_valid)

    def _column(self, values: Array, is_valid: Array | None) -> ItemColumn:
        spread, is_null = np.zeros(self._count, values.dtype), np.ones(self._count, np.bool_)
        spread[self._rows] = values
        is_null[self._rows] = False if is_valid is None else ~is_valid
        return ItemColumn(pa.array(spread, mask=is_null), 0, self._rest)

    def _spread(self, values: pa.Array, rows: Array) -> pa.Array:
        """Return ``values`` at the places ``rows`` of the column, NULL elsewhere."""
        places, is_null = np.zeros(self._count, np.int64), np.ones(self._count, np.bool_)
        places[rows], is_null[rows] = np.arange(len(rows)), False
        return values.take(pa.array(places, mask=is_null))

    def _words(self, places: Array) -> Array:
        """Return the integers of two bytes at ``places``."""
        high, low = (self._bytes[each].astype(np.int64) for each in (places, places + 1))
        words: Array = (high << 8) | low
        return words

    def _found_name_ends(self, begins: Array, limits: Array, has_name: Array) -> Array:
        """Return where names behind headers end, as of ``dns.py``; -1 if they are invalid.

        Marks the lengths of their labels.
        """
        found = np.full(len(begins), -1, np.int64)
        rows = np.flatnonzero(has_name)
        places, limits = begins[rows] + dns.HEADER.size, limits[rows]
        while len(rows):
            is_cut = places >= limits
            found[rows[is_cut]] = limits[is_cut] + 1
            rows, places, limits = (each[~is_cut] for each in (rows, places, limits))
            self._is_label[places] = True
            lengths = self._bytes[places]
            is_end = lengths == 0
            found[rows[is_end]] = places[is_end] + 1
            goes_on = ~is_end & (lengths <= dns.LONGEST_LABEL)
            places = (places + 1 + lengths)[goes_on]
            rows, limits = rows[goes_on], limits[goes_on]
        return found


ITEMS: dict[str, Callable[[DnsMessages], ItemColumn]] = {
    "dns_id": DnsMessages.message_id,
    "dns_opcode": DnsMessages.opcode,
    "dns_qname": DnsMessages.qname,
    "dns_qtype": DnsMessages.qtype,
    "dns_qclass": DnsMessages.qclass,
    "dns_rcode": DnsMessages.rcode,
    "dns_answers": DnsMessages.answers,
    "dns_is_response": DnsMessages.is_response,
    "dns_authoritative": DnsMessages.is_authoritative,
    "dns_truncated": DnsMessages.is_truncated,
}
"""The functions whose items are read for a whole column, by their catalog names."""


def _binary(content: Array, ends: Array) -> pa.Array:
    """Return texts that follow each other in ``content``, each up to one of ``ends``."""
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
