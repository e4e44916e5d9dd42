"""Rows as messages of a Kafka topic.

The producer is idempotent: while the process lives, whatever it repeats after a failure of a broker
or of the network is in the topic once. A batch whose acknowledgements have not come stays with the
producer, which goes on with it. Only what a resumed run sends again is there twice.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.cli.outlets.outlet import OutletError, RowsRefused
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from gscope.cli.config.destinations import Destination
    from gscope.cli.outlets.outlet import Batch

TIMEOUT_S = 10.0
"""How long acknowledgements may take before the topic is reported as failing, in seconds."""

_FIXED = {
    "enable.idempotence": True,
    "message.timeout.ms": 0,
    "linger.ms": 5,
    "log.connection.close": False,
}


class KafkaTopic:
    """Sends each row as a message; see ``Outlet``.

    Args:
        destination: the brokers, the topic, the column that is the key of messages, and the file
            with further properties of the client.
        timeout_s: see ``TIMEOUT_S``.

    Raises:
        UsageError: the client is not installed, or does not take the properties.
    """

    MOST_ROWS = 1000
    MOST_BYTES = 1 << 20

    def __init__(self, destination: Destination, timeout_s: float = TIMEOUT_S) -> None:
        self._topic = destination.path
        self._key_column = destination.options.get("key")
        self._timeout_s = timeout_s
        self._properties = {
            **_properties(destination.options.get("config")),
            **_FIXED,
            "bootstrap.servers": destination.host,
            "error_cb": self._on_error,
            "logger": _silent(),
        }
        self._is_closed = False
        self._reason = ""
        self._batch = ""
        self._pending: set[int] = set()
        self._failed: set[int] = set()
        self._refused: dict[int, str] = {}
        self._producer: Producer | None = self._opened()

    def send(self, batch: Batch) -> None:
        """Send a batch, or wait for the rest of it; see ``Outlet.send``."""
        producer = self._producer = self._producer or self._opened()
        if self._batch != batch.key:
            self._batch, self._pending, self._refused = batch.key, set(), {}
            self._failed = set(range(len(batch.block.lines)))
        self._produce(producer, batch)
        until = time.monotonic() + self._timeout_s
        while self._pending and time.monotonic() < until and not self._is_closed:
            producer.poll(0.05)
        if self._pending or self._failed:
            reason = self._reason or f"no acknowledgement within {self._timeout_s:.0f} s"
            raise OutletError(reason)
        self._reason = ""
        if self._refused:
            raise RowsRefused(next(iter(self._refused.values())), len(self._refused))

    def close(self) -> None:
        """End a ``send`` in another thread, and discard what it has not sent."""
        self._is_closed = True

    def _opened(self) -> Producer:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as error:
            message = "kafka:// needs the package confluent-kafka: pip install 'gscope[kafka]'"
            raise UsageError(message) from error
        try:
            return Producer(self._properties)
        except KafkaException as error:
            message = f"the Kafka client does not take its configuration: {error.args[0].str()}"
            raise UsageError(message) from error

    def _produce(self, producer: Producer, batch: Batch) -> None:
        """Hand rows to the producer that it does not have."""
        from confluent_kafka import KafkaException

        block = batch.block
        for index in sorted(self._failed):
            line = block.lines[index]
            headers: dict[str, str | bytes | None] = {
                "run": batch.run,
                "token": batch.token,
                "query": block.query,
                "number": str(block.number + index),
            }
            self._pending.add(index)
            self._failed.discard(index)

            def on_delivery(error: KafkaError | None, _: Message, index: int = index) -> None:
                self._pending.discard(index)
                if error is not None:
                    self._on_undelivered(index, error)

            try:
                producer.produce(
                    self._topic, line, self._key(line), on_delivery=on_delivery, headers=headers
                )
            except (KafkaException, BufferError) as error:
                self._pending.discard(index)
                found = error.args[0] if isinstance(error, KafkaException) else None
                if found is None:
                    self._failed.add(index)
                    self._reason = "the queue of the Kafka client is full"
                    return
                self._on_undelivered(index, found)

    def _on_undelivered(self, index: int, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._refused[index] = "larger than the topic accepts"
            return
        self._failed.add(index)
        self._reason = _lowered(error.str())
        if error.fatal():
            # Its messages are lost to it, too: they have been reported as failed.
            self._producer = None

    def _on_error(self, error: KafkaError) -> None:
        self._reason = _lowered(error.str())

    def _key(self, line: bytes) -> str | None:
        """Return the key of a row's message; None for none, and where it is NULL."""
        if self._key_column is None:
            return None
        value = json.loads(line).get(self._key_column)
        return value if value is None or isinstance(value, str) else json.dumps(value)


def _properties(path: str | None) -> dict[str, Any]:
    """Return the properties in a file of lines ``NAME=VALUE``; ``#`` begins a comment.

    Raises:
        UsageError: the file cannot be read, or a line is something else.
    """
    if path is None:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"cannot read {path}: {reason}"
        raise UsageError(message) from error
    found: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, is_given, value = line.partition("=")
        if not is_given or not name.strip():
            message = f"{path}:{number}: expected NAME=VALUE"
            raise UsageError(message)
        found[name.strip()] = value.strip()
    return found


def _silent() -> logging.Logger:
    """Return a logger without an output: outages are reported as those of other destinations."""
    logger = logging.Logger("gscope.kafka")
    logger.addHandler(logging.NullHandler())
    return logger


def _lowered(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
