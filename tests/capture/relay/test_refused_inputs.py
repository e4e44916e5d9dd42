"""Inputs that refuse a relay, or are refused, at first contact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.relay.lftas import aggregation
from tests.capture.relay.test_relay_loop import PICK, PROGRAM, Relay, Sensor, eventually, paths

from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.relay.input_reader import MOST_LETTERS
from gscope.errors import RefusedInputError, StreamError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def sensors(tmp_path: Path) -> Iterator[dict[str, Sensor]]:
    made = {}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made[name] = Sensor(tmp_path / name)
    yield made
    for sensor in made.values():
        sensor.stop()


def test_an_input_with_other_queries_is_refused_at_first_contact(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    other = aggregation([GsqlType.STRING], [(PartialOp.SUM, GsqlType.INT)])
    sensors["b"].stop()
    (tmp_path / "c").mkdir()
    sensors["b"] = Sensor(tmp_path / "c", replace(PROGRAM, lftas=(other, PICK)))
    relay = Relay(tmp_path / "relay", paths(sensors))
    with pytest.raises(RefusedInputError, match=r"runs another flow: there 'partial p0 := sum"):
        relay.join()


@pytest.mark.parametrize("name", ["", "root"])
def test_inputs_forget_a_relay_that_one_of_them_has_refused_before_anything_came(
    tmp_path: Path, sensors: dict[str, Sensor], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    describe = RemoteLog.describe
    relays: list[Relay] = []

    def refused_by_b(log: RemoteLog) -> Any:
        if log.address.place == sensors["b"].folder / "sock":
            eventually(lambda: sensors["a"].log.acknowledged)
            message = "refused the token"
            raise StreamError(message)
        described = describe(log)
        # Its reply comes when the relay ends already.
        eventually(lambda: relays and relays[0].loop._is_over)
        return described

    monkeypatch.setattr(RemoteLog, "describe", refused_by_b)
    relays.append(Relay(tmp_path / "relay", paths(sensors), consumer=name))
    with pytest.raises(RefusedInputError, match="refused the token"):
        relays[0].join()
    assert set(sensors["a"].log.acknowledged) == ({"root"} if name else set())


def test_what_an_input_says_is_reported_in_a_reasonable_length(
    tmp_path: Path, sensors: dict[str, Sensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(log: RemoteLog) -> None:
        raise StreamError("x" * 10**6)

    monkeypatch.setattr(RemoteLog, "describe", refused)
    relay = Relay(tmp_path / "relay", paths(sensors))
    with pytest.raises(RefusedInputError) as raised:
        relay.join()
    assert len(str(raised.value)) == MOST_LETTERS
