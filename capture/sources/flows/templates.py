"""Templates of NetFlow v9 and IPFIX, as short programs for the decoding of records."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import be16
from gscope.capture.sources.flows.elements import ACTIONS, ELEMENTS, SKIP
from gscope.capture.sources.flows.state import (
    FIELDS,
    FIRST_FIELD,
    IS_OPTIONS,
    LEAST_LENGTH,
    LENGTH,
    MAX_FIELDS,
    ExportState,
    find_template,
)

VARIABLE = 0xFFFF
"""The length of an element whose length is in the record (RFC 7011 §7)."""
ENTERPRISE = 0x8000
"""The bit of an element whose number is followed by that of an enterprise."""
LEAST_DATA_SET = 256
"""Numbers of templates and of sets of records begin here."""

ACTION_SHIFT = 32
"""A field's word: bytes before it in a record, from bit 16 on its length, then its action."""


@kernel_part
def read_templates(
    state: ExportState, stream: int, at: int, end: int, is_ipfix: bool, is_options: bool
) -> tuple[bool, int]:
    """Store the templates of a set; return whether it is whole, and how many there are."""
    count = 0
    while at + 4 <= end:
        number, fields = be16(at), be16(at + 2)
        if number < LEAST_DATA_SET:
            # Padding, or a withdrawal of all templates, which no exporter over UDP sends.
            return number == 0 or is_ipfix, count
        scopes = 0
        at += 4
        if is_options and (is_ipfix and fields == 0):
            fields = 0
        elif is_options:
            if at + 2 > end:
                return False, count
            if is_ipfix:
                scopes = be16(at)
            else:
                # Bytes of scopes and of options; the numbers of scopes are not those of elements.
                scopes = fields // 4
                fields = scopes + be16(at) // 4
            at += 2
        at = _read_template(
            state, stream, number, fields, -1 if is_ipfix else scopes, at, end, is_options
        )
        if at < 0:
            return False, count
        count += 1
    return True, count


@kernel_part
def _read_template(
    state: ExportState,
    stream: int,
    number: int,
    fields: int,
    scopes: int,
    at: int,
    end: int,
    is_options: bool,
) -> int:
    """Store one template; return the address behind it, -1 if it is damaged.

    ``scopes`` is the number of fields that are skipped, -1 for templates of IPFIX.
    """
    slot = find_template(state, stream, number, True)
    offset = 0
    least = 0
    kept = 0
    is_variable = False
    if slot >= 0:
        state.templates[slot, LENGTH] = 0
    # Whether lengths vary decides which fields are kept, so that they are looked at twice.
    begin = at
    for _ in range(fields):
        if at + 4 > end:
            return -1
        length = be16(at + 2)
        is_variable |= length == VARIABLE
        at += 8 if scopes < 0 and be16(at) & ENTERPRISE else 4
    if at > end:
        return -1
    stop = at
    at = begin
    for index in range(fields):
        element, length = be16(at), be16(at + 2)
        action = SKIP
        if scopes < 0 and element & ENTERPRISE:
            at += 8
        else:
            at += 4
            if index >= scopes and element < ELEMENTS:
                action = ACTIONS[element]
        if slot >= 0 and (is_variable or action != SKIP):
            if kept < MAX_FIELDS:
                state.templates[slot, FIRST_FIELD + kept] = (
                    action << ACTION_SHIFT | length << 16 | offset & 0xFFFF
                )
            kept += 1
        if length == VARIABLE and is_variable:
            least += 1
        else:
            offset += length
            least += length
    if slot >= 0:
        state.templates[slot, IS_OPTIONS] = is_options
        state.templates[slot, FIELDS] = min(kept, MAX_FIELDS)
        state.templates[slot, LEAST_LENGTH] = least
        is_usable = 0 < least <= 0xFFFF and (kept <= MAX_FIELDS or not is_variable)
        if is_usable:
            state.templates[slot, LENGTH] = -1 if is_variable else least
    return stop
