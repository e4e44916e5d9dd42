"""Masters by name, and whether they can be reached."""

from __future__ import annotations

import socket
import time

import pytest

from gscope.engine.spark.cluster.master import (
    CONNECT_S,
    Master,
    MasterKind,
    ensure_reachable,
    own_address,
)
from gscope.errors import EngineError, UsageError


@pytest.mark.parametrize(
    ("text", "kind", "addresses"),
    [
        ("local", MasterKind.LOCAL, ()),
        ("local[*]", MasterKind.LOCAL, ()),
        ("local[3]", MasterKind.LOCAL, ()),
        ("local-cluster[2,1,1024]", MasterKind.LOCAL_CLUSTER, ()),
        ("spark://a:7077", MasterKind.STANDALONE, (("a", 7077),)),
        ("spark://a:7077,b:7078", MasterKind.STANDALONE, (("a", 7077), ("b", 7078))),
        ("yarn", MasterKind.YARN, ()),
        ("k8s://https://api.example:6443", MasterKind.KUBERNETES, (("api.example", 6443),)),
        ("k8s://api.example", MasterKind.KUBERNETES, (("api.example", 443),)),
    ],
)
def test_masters_are_read(
    text: str, kind: MasterKind, addresses: tuple[tuple[str, int], ...]
) -> None:
    master = Master.parse(text)
    assert (master.kind, master.text, master.addresses) == (kind, text, addresses)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "local[0]",
        "spark://",
        "spark://a",
        "spark://a:0",
        "spark://a:70000",
        "spark://a:7077,",
        "mesos://a:5050",
        "k8s://ftp://a:1",
        "yarn-cluster",
        "spark://a b:1",
    ],
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected local, spark://HOST:PORT, yarn or k8s://"):
        Master.parse(text)


def test_a_master_that_does_not_listen_is_reported_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(EngineError, match=f"cannot reach .*127.0.0.1:{port}: connection refused"):
        ensure_reachable(Master.parse(f"spark://127.0.0.1:{port}"))
    assert time.monotonic() - began < CONNECT_S


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ports = free.getsockname()[1], server.getsockname()[1]
        ensure_reachable(Master.parse("spark://" + ",".join(f"127.0.0.1:{p}" for p in ports)))


def test_the_address_of_this_host_is_that_of_the_route_to_the_master() -> None:
    assert own_address(Master.parse("spark://127.0.0.1:7077")) == "127.0.0.1"
    assert own_address(Master.parse("yarn")) is None
