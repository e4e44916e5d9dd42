"""The page ``/metrics`` of a run, which its supervisor serves to Prometheus."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from gscope.cli.rundir.records import RunRecord

LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """The address and port where metrics are served."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Return the address in ``9095``, ``0.0.0.0:9095`` or ``[::1]:9095``; loopback by default.

    Raises:
        ValueError: the address is invalid; the message shows what is expected.
    """
    host, _, port = text.strip().rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= _MAX_PORT:
        message = f"invalid address {text!r}: expected a value such as 9095 or 0.0.0.0:9095"
        raise ValueError(message)
    return Address(host.strip("[]") or LOOPBACK, int(port))


class Metrics:
    """The served metrics: the status of the run at each request.

    Attributes:
        record: the record of the run; None before it exists.
        url: the URL of the page.
        rows: returns the metrics of rows; None if there are none.
    """

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self.url = ""
        self.rows: Callable[[], Iterable[Metric]] | None = None

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of rows; see ``prometheus_client.registry.Collector``."""
        return self.rows() if self.rows is not None else ()

    def show_rows(self, rows: Callable[[], Iterable[Metric]]) -> None:
        """Serve metrics of rows as well."""
        self.rows = rows

    def on_change(self, _before: RunRecord, after: RunRecord) -> None:
        """Replace the run's record."""
        self.record = after


@contextmanager
def served(address: Address) -> Iterator[Metrics]:
    """Serve metrics within the context; the caller passes changes of the run's record to them.

    Raises:
        UsageError: the address cannot be listened on.
    """
    from prometheus_client import start_http_server

    from gscope.cli.status.prometheus import run_registry

    metrics = Metrics()
    registry = run_registry(lambda: metrics.record)
    registry.register(metrics)
    try:
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        reason = os_reason(error)
        message = f"cannot serve metrics on {address.host}:{address.port}: {reason}"
        raise UsageError(message) from error
    host = f"[{address.host}]" if ":" in address.host else address.host
    metrics.url = f"http://{host}:{server.server_port}/metrics"
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
