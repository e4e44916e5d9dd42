"""The protocol tables.

Inheritance, spellings, and agreement with what the capture side computes.
"""

from __future__ import annotations

import pytest

from gscope.capture.packet.fields import FIELDS
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.protocols import FIELD_ALIASES, PROTOCOLS
from gscope.queries.catalog.safety import is_lfta_output, is_lfta_safe
from gscope.queries.expressions.expressions import Literal, PacketField, walk
from gscope.queries.expressions.types import CONSTANT, INCREASING, GsqlType


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_field_is_known_to_the_capture_side(protocol: str) -> None:
    entry = PROTOCOLS[protocol]
    leaves = {
        part.name
        for field in (*entry.fields, *entry.inner)
        for part in walk(field.expression)
        if isinstance(part, PacketField)
    }
    assert leaves - {"interface"} <= FIELDS.keys()


# The membership of Snort tests the flags, so they are there.
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS.keys() - {"Snort"}))
def test_what_can_be_missing_on_the_capture_side_is_nullable(protocol: str) -> None:
    for field in PROTOCOLS[protocol].fields:
        leaf = field.expression
        code = FIELDS.get(leaf.name) if isinstance(leaf, PacketField) else None
        if code is None or field.expression.is_nullable:
            continue
        versions = {"IPV4": (code.v4,), "IPV6": (code.v6,)}.get(protocol, (code.v4, code.v6))
        assert all(c is not None and c.null is None for c in versions), field.name


def test_fields_are_inherited() -> None:
    tcp = PROTOCOLS["TCP"]
    for name in ("len", "srcIP", "sequence_number", "inner.srcIP"):
        assert tcp.field(name) is not None
    assert PROTOCOLS["ARP"].field("srcIP") is None


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("dstIP", "destIP"),
        ("seq_nbr", "sequence_number"),
        ("FYN", "FIN"),
        ("inner.dstIP", "inner.destIP"),
    ],
)
def test_other_spellings_of_fields_are_read(spelling: str, canonical: str) -> None:
    field = PROTOCOLS["TCP"].field(spelling)
    assert field is not None
    assert field.name == canonical


def test_other_spellings_lead_somewhere() -> None:
    known = {f.name for p in PROTOCOLS.values() for f in p.fields}
    assert set(FIELD_ALIASES.values()) <= known


def test_times_increase_and_the_interface_stays() -> None:
    schema = PROTOCOLS["PKT"].schema
    assert [c.name for c in schema.temporal] == ["time", "timestamp", "time_ns"]
    assert schema["time"].ordering == INCREASING
    assert schema["interface"].ordering == CONSTANT


def test_versions_make_fields_certain() -> None:
    assert PROTOCOLS["IP"].schema["id"].is_nullable
    assert not PROTOCOLS["IPV4"].schema["id"].is_nullable


def test_strings_are_tested_low_and_made_high() -> None:
    data = PacketField("TCP_data", GsqlType.STRING, True)
    get = Literal(b"GET", GsqlType.STRING)
    ten = Literal(10, GsqlType.INT)
    assert is_lfta_safe(call("str_match_start", data, get))
    assert is_lfta_safe(call("eq", data, get))
    assert not is_lfta_safe(call("eq", data, data))
    assert not is_lfta_safe(call("str_regex_match", data, get))
    assert not is_lfta_safe(data)
    assert is_lfta_output(data)
    assert is_lfta_output(call("str_truncate", data, ten))
    assert not is_lfta_output(call("str_truncate", call("lower", data), ten))
    assert not is_lfta_safe(call("length", call("str_truncate", data, ten)))
    assert not is_lfta_safe(call("coalesce", data, get))
