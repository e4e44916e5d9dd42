"""Tests leave their process in the network namespace that they found, and no threads in another."""

from __future__ import annotations

import threading

import pytest
from tests.capture.sources.af_packet.network import own_network
from tests.support.home_network import HomeNetwork, leave_home, network_of, threads_here

from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog

pytestmark = pytest.mark.live


def test_a_thread_that_a_test_leaves_in_another_network_is_moved_back_and_reported() -> None:
    found: list[bool] = []

    def follow() -> None:
        before = network_of("thread-self")
        home = HomeNetwork()
        home.ensure_here()
        found.append(leave_home() == 0 and network_of("thread-self") != before)
        with pytest.raises(AssertionError, match="another network namespace"):
            home.ensure_here()
        home.ensure_here()
        found.append(network_of("thread-self") == before)
        home.close()

    with own_network():
        pass  # skips where that is not allowed
    # In a thread of its own: the one of the tests stays where it is.
    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    assert found == [True, True]


@pytest.mark.parametrize("error", [None, ValueError])
def test_the_end_of_a_network_is_the_end_of_its_threads(error: type[Exception] | None) -> None:
    """An error in it goes on unchanged."""
    home, release = network_of("thread-self"), threading.Event()
    before = threading.Thread(target=release.wait, name="started before")
    within = threading.Thread(target=release.wait, name="started within")
    before.start()

    def live() -> None:
        with own_network():
            assert network_of("thread-self") != home
            within.start()
            assert threads_here() == ["started within"]
            if error is not None:
                raise error

    try:
        with pytest.raises(error or AssertionError, match=None if error else "'started within'"):
            live()
        assert network_of("thread-self") == home
    finally:
        release.set()
        before.join()
        within.join()


def test_flight_is_not_used_in_a_network_of_a_test() -> None:
    address = LogAddress(TcpAddress("127.0.0.1", 9))
    with own_network(), pytest.raises(AssertionError, match="in another network"):
        RemoteLog(address, "relay")
