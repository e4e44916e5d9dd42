"""Sends flows into a network device at a steady rate: the load of the live benchmarks.

    python -m benchmarks.live_sender DEVICE RATE SECONDS [--flows 16384] [--bytes 96]

Frames are built in advance and handed to the kernel in bursts (sendmmsg) that bypass the device's
queue. Between bursts the sender sleeps, so that it takes no more of the machine than sending does.
With RATE 0 it sends as fast as it can. It reports what was sent as one JSON object on standard
output.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import socket
import struct
import time

SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20
BURSTS_PER_SECOND = 2000
LEAST_BURST, MOST_BURST = 8, 512

_ETHERNET = b"\x02\0\0\0\0\1" + b"\x02\0\0\0\0\2" + b"\x08\x00"
_IPV4 = struct.Struct(">2B3H2BH4s4s")
_UDP = struct.Struct(">4H")


class _Vector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint32),
    )


class Load:
    """Build frames of many flows, alternately TCP and UDP.

    Args:
        flows: number of flows, each of one frame that is sent repeatedly.
        size: size of a frame in bytes.
    """

    def __init__(self, flows: int, size: int) -> None:
        chance = random.Random(1)
        # The first burst is repeated at the end, so that a burst may begin anywhere.
        numbers = [*range(flows), *(n % flows for n in range(MOST_BURST))]
        made = [_frame(chance, number, size) for number in range(flows)]
        self._bytes = ctypes.create_string_buffer(b"".join(made[n] for n in numbers))
        begin = ctypes.addressof(self._bytes)
        self._vectors = (_Vector * len(numbers))(
            *(_Vector(begin + at * size, size) for at in range(len(numbers)))
        )
        self._messages = (_Message * len(numbers))()
        for message, vector in zip(self._messages, self._vectors, strict=True):
            message.vectors = ctypes.pointer(vector)
            message.vector_count = 1
        self._flows = flows
        self._at = 0
        self._libc = ctypes.CDLL(None, use_errno=True)

    def send(self, descriptor: int, count: int) -> int:
        """Send the next ``count`` frames; return how many the device accepted.

        Raises:
            OSError: the device has disappeared or is down.
        """
        first = ctypes.byref(self._messages, self._at * ctypes.sizeof(_Message))
        taken = int(self._libc.sendmmsg(descriptor, first, count, 0))
        if taken < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._at = (self._at + taken) % self._flows
        return taken


def _frame(chance: random.Random, number: int, size: int) -> bytes:
    protocol = 17 if number & 1 else 6
    source, target = (bytes([10, *chance.randbytes(3)]) for _ in range(2))
    head = _IPV4.pack(0x45, 0, size - 14, number & 0xFFFF, 0, 64, protocol, 0, source, target)
    ports = chance.randrange(1024, 65536), (53, 80, 443, 8080)[number % 4]
    if protocol == 17:
        transport = _UDP.pack(*ports, size - 34, 0)
    else:
        transport = struct.pack(">2H2I4H", *ports, number, 0, 0x5010, 1024, 0, 0)
    return (_ETHERNET + head + transport).ljust(size, b"\0")


def send(device: str, rate: int, seconds: float, flows: int, size: int) -> dict[str, float]:
    """Send for some seconds; return packets sent, duration, and CPU time of this process."""
    load = Load(flows, size)
    burst = MOST_BURST
    if rate:
        burst = min(MOST_BURST, max(LEAST_BURST, rate // BURSTS_PER_SECOND))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        sender.bind((device, 0))
        descriptor = sender.fileno()
        began = time.monotonic()
        sent = 0
        while (elapsed := time.monotonic() - began) < seconds:
            ahead = sent / rate - elapsed if rate else 0.0
            if ahead > 0:
                time.sleep(ahead)
                continue
            sent += load.send(descriptor, burst)
        took = time.monotonic() - began
    return {"sent": sent, "seconds": took, "cpu_s": time.process_time()}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("device")
    parser.add_argument("rate", type=int, help="packets a second; 0 for as fast as possible")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--flows", type=int, default=1 << 14)
    parser.add_argument("--bytes", type=int, default=96, help="size of a frame")
    given = parser.parse_args()
    print(json.dumps(send(given.device, given.rate, given.seconds, given.flows, given.bytes)))


if __name__ == "__main__":
    _main()
