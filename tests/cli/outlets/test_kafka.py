"""Rows in a Kafka topic whose broker is killed and back, at the test broker of the client."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.outlets.kafka_cluster import MockCluster
from tests.cli.outlets.test_outlets import Run, account, counted
from tests.support.gscope_command import wait_for

from gscope.cli.config.destinations import parse_destination
from gscope.cli.outlets.kafka import KafkaTopic
from gscope.cli.outlets.outlet import Batch, OutletError, RowsRefused
from gscope.cli.outlets.spool import Block
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    yield made
    made.close()


def rows(cluster: MockCluster, count: int) -> list[int]:
    """Return the rows of all messages, in order."""
    return [json.loads(message.value() or b"")["n"] for message in cluster.messages(count)]


def batch(*lines: bytes) -> Batch:
    return Batch("web", "t0", Block("q", 0, 5, lines))


def test_a_message_has_a_key_and_the_number_of_its_row(cluster: MockCluster) -> None:
    outlet = KafkaTopic(parse_destination(f"{cluster.url}?key=host"))
    outlet.send(batch(b'{"host": "a", "n": 1}', b'{"host": null, "n": 2}', b'{"host": 7, "n": 3}'))
    found = cluster.messages(3)
    assert [message.key() for message in found] == [b"a", None, b"7"]
    assert [dict(message.headers() or ()) for message in found] == [
        {"run": b"web", "token": b"t0", "query": b"q", "number": b"%d" % number}
        for number in (5, 6, 7)
    ]


def test_a_broker_that_is_killed_and_back_has_every_row_once(
    tmp_path: Path, cluster: MockCluster
) -> None:
    run = Run(tmp_path, cluster.url)
    run.write(1500)
    run.await_record(1500)
    cluster.kill()
    outlet: Any = run.sink._senders[0].outlet
    usual_s, outlet._timeout_s = outlet._timeout_s, 0.2
    for _ in range(3):
        run.write(500)
    wait_for(lambda: run.sink.accounts()[0]["failure"], "the failure")
    assert run.sink.accounts()[0]["waiting_rows"] == 1500
    # A busy machine may take longer for an acknowledgement, which would be an outage of its own.
    outlet._timeout_s = usual_s
    cluster.start()
    assert counted(run.close()) == account(3000, outages=1)
    assert rows(cluster, 3000) == list(range(3000))


def test_a_batch_without_acknowledgement_is_not_produced_again(cluster: MockCluster) -> None:
    outlet = KafkaTopic(parse_destination(cluster.url), timeout_s=0.1)
    cluster.kill()
    sent = batch(*(b'{"n": %d}' % number for number in range(50)))
    for _ in range(3):
        with pytest.raises(OutletError):
            outlet.send(sent)
    cluster.start()
    wait_for(lambda: _is_sent(outlet, sent), "the acknowledgements")
    assert rows(cluster, 50) == list(range(50))


def _is_sent(outlet: KafkaTopic, sent: Batch) -> bool:
    try:
        outlet.send(sent)
    except OutletError:
        return False
    return True


def test_a_row_that_the_client_finds_too_large_is_refused(cluster: MockCluster) -> None:
    outlet = KafkaTopic(parse_destination(cluster.url))
    large = b'{"n": 1, "text": "' + b"x" * 1_100_000 + b'"}'
    with pytest.raises(RowsRefused) as refused:
        outlet.send(batch(b'{"n": 0}', large, b'{"n": 2}'))
    assert refused.value.rows == 1
    assert rows(cluster, 2) == [0, 2]


def test_a_killed_run_may_repeat_one_batch_with_its_numbers(
    tmp_path: Path, cluster: MockCluster
) -> None:
    """The broker has the batch, but the run was killed before it had recorded that."""
    run = Run(tmp_path, cluster.url)
    run.write(10)
    run.await_record(10)
    (record,) = (tmp_path / "outlets").glob("[0-9a-f]*.json")
    known = record.read_bytes()
    run.write(5)
    run.await_record(15)
    run.kill()
    record.write_bytes(known)
    run.resume()
    assert counted(run.close()) == account(15)
    found = cluster.messages(20)
    numbers = [int(dict(message.headers() or ())["number"] or b"0") for message in found]
    assert numbers == [*range(1, 16), *range(11, 16)]
    tokens = {dict(message.headers() or ())["token"] for message in found}
    assert len(tokens) == 1


def test_a_file_has_further_properties(tmp_path: Path, cluster: MockCluster) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("# how it is compressed\ncompression.type = lz4\n\n")
    KafkaTopic(parse_destination(f"{cluster.url}?config={path}")).send(batch(b'{"n": 0}'))
    assert rows(cluster, 1) == [0]
    path.write_text("compression.tipe=lz4\n")
    with pytest.raises(UsageError, match="does not take its configuration: No such conf"):
        KafkaTopic(parse_destination(f"{cluster.url}?config={path}"))
    path.write_text("\nlz4\n")
    with pytest.raises(UsageError, match=r"kafka\.properties:2: expected NAME=VALUE"):
        KafkaTopic(parse_destination(f"{cluster.url}?config={path}"))
    with pytest.raises(UsageError, match=r"cannot read .*: no such file or directory"):
        KafkaTopic(parse_destination(f"{cluster.url}?config={path}x"))


def test_without_the_client_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match=r"pip install 'gscope\[kafka\]'"):
        KafkaTopic(parse_destination("kafka://broker/rows"))
