"""The digest of an LFTA: equal exactly where the rows mean the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gscope.capture.log.description import (
    PROTOCOL,
    SENSOR,
    LogDescription,
    describe_log,
    describe_program,
    ensure_same_lftas,
)
from gscope.errors import StreamError
from gscope.queries.catalog.user_functions.files import UserFile
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.lfta_digest import lfta_digest, lfta_meaning

if TYPE_CHECKING:
    from gscope.queries.plan.program import Lfta, Program

FLOWS = (
    "SELECT tb, srcIP, count(*), sum(len) FROM IP WHERE protocol = 6 GROUP BY time/60 AS tb, srcIP"
)


def program(text: str, *interfaces: str, **parameters: str) -> Program:
    context = CompileContext(interfaces=interfaces or ("eth0",), parameters=parameters)
    return compile_queries([QueryText(text, "flows")], context).program


def lfta(text: str, *interfaces: str, **parameters: str) -> Lfta:
    (found,) = program(text, *interfaces, **parameters).lftas
    return found


def test_layout_names_of_interfaces_and_parts_above_the_lfta_do_not_count() -> None:
    same = [
        lfta(FLOWS),
        lfta(FLOWS.replace("FROM", "\n  FROM -- the packets\n")),
        lfta(FLOWS, "eth1", "eth2"),
        lfta(FLOWS + " HAVING count(*) > 5"),
    ]
    assert len({lfta_digest(each) for each in same}) == 1
    assert len({lfta_meaning(each) for each in same}) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 6", "= 17"),
        ("/60", "/61"),
        ("srcIP", "destIP"),
        ("sum(len)", "max(len)"),
        (" WHERE protocol = 6", ""),
        ("FROM IP", "FROM IPV4"),
        ("count(*)", "count(*), min(len)"),
    ],
)
def test_what_decides_the_rows_counts(old: str, new: str) -> None:
    assert lfta_digest(lfta(FLOWS)) != lfta_digest(lfta(FLOWS.replace(old, new)))


def test_parameters_count_by_their_values() -> None:
    text = "PARAM { port INT; } SELECT time FROM TCP WHERE destPort = $port"
    assert lfta_digest(lfta(text, port="53")) == lfta_digest(lfta(text.lower(), port="0x35"))
    assert lfta_digest(lfta(text, port="53")) != lfta_digest(lfta(text, port="54"))


def test_user_code_counts() -> None:
    file = UserFile("f.py", "x = 1")
    digests = {lfta_digest(lfta(FLOWS), each) for each in ((), (file,), (replace(file, text=""),))}
    assert len(digests) == 3
    assert lfta_digest(lfta(FLOWS), [file]) == lfta_digest(
        lfta(FLOWS), [replace(file, path="/elsewhere/f.py")]
    )


def described(text: str) -> LogDescription:
    return describe_log(SENSOR, "0" * 32, describe_program(program(text)), ())


def test_a_description_survives_its_json() -> None:
    description = described(FLOWS)
    assert LogDescription.from_json(json.dumps(description.to_plain()).encode()) == description


def test_logs_of_the_same_queries_are_accepted() -> None:
    ensure_same_lftas(program(FLOWS, "x", "y"), described(FLOWS), "sensor1:9470")


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            FLOWS.replace("= 6", "= 17"),
            r"sensor1:9470 runs another flows: there 'packets .*= 17\)', here 'packets .*= 6\)'; "
            "start both with the same queries",
        ),
        (FLOWS.replace(", srcIP", ""), "there 'epoch tb', here 'key srcIP'"),
        ("DEFINE { query_name 'b'; } " + FLOWS, "does not run flows; available: 'b'"),
    ],
)
def test_logs_of_other_queries_are_refused_with_the_first_difference(
    theirs: str, message: str
) -> None:
    with pytest.raises(StreamError, match=message):
        ensure_same_lftas(program(FLOWS), described(theirs), "sensor1:9470")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "expected a JSON object"),
        (b"[]", "expected a JSON object"),
        (b"[" * 100_000, "expected a JSON object"),
        (b'{"protocol": 99, "gscope": "9.9"}', "unsupported protocol 99 of gscope '9.9'"),
        (b'{"protocol": %d}' % PROTOCOL, "missing field"),
        (
            b'{"protocol": %d, "gscope": "1", "role": "sensor", "log": "x", "lftas": [7]}'
            % PROTOCOL,
            "invalid field 'lftas'",
        ),
    ],
)
def test_wrong_descriptions_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        LogDescription.from_json(text)
