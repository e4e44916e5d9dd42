"""What processes that are killed capture: a device of their own, and a sender of packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.network import own_network, run_ip
from tests.faults.faulty_run import Sender

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")  # Spark talks to its Java on it
        yield


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender()
    yield made
    made.stop()
