"""A reader of sensors that only keeps what they log, as a process of its own on one of the hosts.

    python -m benchmarks.relays.witness FOLDER '{"HOST:PORT": {STREAM: NUMBER, …}, …}'

It registers at each sensor, from which on the sensor's log keeps its batches, and acknowledges the
messages below these numbers, if there are any. ``FOLDER`` has the token and the certificates.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.errors import DisconnectedError

NAME = "witness"
_PATIENCE_S = 120.0


def _register(address: LogAddress, cursors: dict[str, int]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        with RemoteLog(address, NAME) as log:
            try:
                log.describe()
            except DisconnectedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
                continue
            if cursors:
                with suppress(DisconnectedError):  # it may end before its reply arrives
                    log.acknowledge(cursors)
            return


def _main() -> None:
    folder, wanted = Path(sys.argv[1]), json.loads(sys.argv[2])
    token = (folder / "token").read_text().strip()
    certificates = (folder / "ca.pem").read_bytes()
    for place, cursors in wanted.items():
        host, _, port = place.rpartition(":")
        _register(LogAddress(TcpAddress(host, int(port)), token, certificates), cursors)


if __name__ == "__main__":
    _main()
