"""The broker for tests that is part of the Kafka client, librdkafka: it stores what it accepts.

The Python client does not offer its controls, so they are called in the library that it has loaded.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import confluent_kafka

_TOPIC = "rows"
_BROKER = 1
_PRODUCER = 0


def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka*.so*")
    library = ctypes.CDLL(str(path))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("conf_new", pointer, []),
        ("conf_set", ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
        ("new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        ("destroy", None, [pointer]),
        ("mock_cluster_new", pointer, [pointer, ctypes.c_int]),
        ("mock_cluster_destroy", None, [pointer]),
        ("mock_cluster_bootstraps", text, [pointer]),
        ("mock_topic_create", ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int]),
        ("mock_broker_set_down", ctypes.c_int, [pointer, ctypes.c_int32]),
        ("mock_broker_set_up", ctypes.c_int, [pointer, ctypes.c_int32]),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class MockCluster:
    """One broker with a topic of one partition, so that its messages have an order.

    Attributes:
        address: the address of the broker.
        url: the topic as a destination.
    """

    def __init__(self) -> None:
        self._library = _library()
        reason = ctypes.create_string_buffer(256)
        properties = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(properties, b"log_level", b"0", reason, len(reason))
        self._client = self._library.rd_kafka_new(_PRODUCER, properties, reason, len(reason))
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, 1)
        self._library.rd_kafka_mock_topic_create(self._cluster, _TOPIC.encode(), 1, 1)
        found: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.address = found.decode()
        self.url = f"kafka://{self.address}/{_TOPIC}"

    def kill(self) -> None:
        """Close the broker's port and its connections; what it has stored stays."""
        assert self._library.rd_kafka_mock_broker_set_down(self._cluster, _BROKER) == 0

    def start(self) -> None:
        """Open the port again."""
        assert self._library.rd_kafka_mock_broker_set_up(self._cluster, _BROKER) == 0

    def messages(self, count: int) -> list[confluent_kafka.Message]:
        """Return all messages, once there are ``count``."""
        properties = {"bootstrap.servers": self.address, "group.id": "test", "log_level": 0}
        consumer = confluent_kafka.Consumer({**properties, "enable.partition.eof": True})
        consumer.assign([confluent_kafka.TopicPartition(_TOPIC, 0, 0)])
        found: list[confluent_kafka.Message] = []
        while True:
            message = consumer.poll(10)
            assert message is not None, f"{len(found)} messages"
            if (error := message.error()) is None:
                found.append(message)
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF and len(found) >= count:
                break
        consumer.close()
        return found

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)
