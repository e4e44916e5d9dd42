"""LZO1X: the kernel against streams of random instructions, whose output is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gscope.capture.sources.nfcapd.lzo import unpack_lzo

END = bytes((17, 0, 0))


def unpacked(data: bytes, room: int = 1 << 20) -> bytes | None:
    out = np.full(room + 64, 0xEE, np.uint8)
    size = unpack_lzo(np.frombuffer(data, np.uint8).copy(), out[:room])
    assert (out[room:] == 0xEE).all()
    return None if size < 0 else out[:size].tobytes()


def length_bytes(extra: int) -> bytes:
    """What of a length does not fit into an instruction: 255 for each zero, and the rest."""
    zeros, rest = divmod(extra - 1, 255)
    return bytes(zeros) + bytes((rest + 1,))


class Writer:
    """Writes random instructions, and keeps what they must produce.

    An instruction is bytes up to the one that holds the number of literals behind it.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.made = bytearray()
        self.data = bytearray()
        self.state = 0

    def run(self, length: int) -> None:
        """A run of literals, after a match without literals."""
        head = bytes((length - 3,)) if length <= 18 else b"\0" + length_bytes(length - 18)
        self.literals(head, length, 4)

    def literals(self, head: bytes, length: int, state: int) -> None:
        text = self.chance.randbytes(length)
        self.data += head + text
        self.made += text
        self.state = state

    def match(self, before: bytes, low: int, after: bytes, distance: int, length: int) -> None:
        """A match; ``low`` is the byte that takes the number of literals in its two low bits."""
        literals = self.chance.randrange(4)
        for _ in range(length):
            self.made.append(self.made[-distance])
        self.literals(before + bytes((low | literals,)) + after, literals, literals)

    def step(self) -> None:
        room, pick = len(self.made), self.chance.randrange(6)
        if pick == 0 and self.state == 0:
            self.run(self.chance.choice((4, 5, 18, 19, 100, 273, 274, 600)))
        elif pick == 1 and self.state in (1, 2, 3) and room:
            self.near(1, 0, min(1024, room), 2)
        elif pick == 2 and self.state == 4 and room > 2049:
            self.near(2049, 0, min(3072, room), 3)
        elif pick == 3 and room:
            length = self.chance.randrange(3, 9)
            distance = self.chance.randrange(1, min(2048, room) + 1)
            high, low = divmod(distance - 1, 8)
            code = (length - 1) << 5 if length > 4 else 64 | (length - 3) << 5
            self.match(b"", code | low << 2, bytes((high,)), distance, length)
        elif pick == 4 and room:
            distance = self.chance.randrange(1, min(16384, room) + 1)
            self.far(32, 31, distance - 1, distance)
        elif pick == 5 and room > 16384:
            distance = self.chance.randrange(16385, min(49151, room) + 1)
            extra = distance - 16384
            self.far(16 | (extra >> 14 << 3), 7, extra & 0x3FFF, distance)

    def near(self, least: int, code: int, most: int, length: int) -> None:
        distance = self.chance.randrange(least, most + 1)
        high, low = divmod(distance - least, 4)
        self.match(b"", code | low << 2, bytes((high,)), distance, length)

    def far(self, code: int, mask: int, value: int, distance: int) -> None:
        length = self.chance.choice(
            (3, 4, mask + 1, mask + 2, mask + 3, mask + 300, 2 * mask + 520)
        )
        extra = length - 2
        head = (
            bytes((code | extra,)) if extra <= mask else bytes((code,)) + length_bytes(extra - mask)
        )
        self.match(head, (value & 63) << 2, bytes((value >> 6,)), distance, length)


@pytest.mark.parametrize("seed", range(20))
def test_random_instructions_produce_their_output(seed: int) -> None:
    chance = random.Random(seed)
    writer = Writer(chance)
    # The first byte may be a run, which is short or long.
    first = chance.choice((1, 2, 3, 4, 50, 238))
    writer.literals(bytes((17 + first,)), first, min(first, 4))
    for _ in range(1500):
        writer.step()
    made = bytes(writer.made)
    assert len(made) > 50_000
    assert unpacked(bytes(writer.data) + END) == made
    # One byte of room less, and it is refused.
    assert unpacked(bytes(writer.data) + END, len(made)) == made
    assert unpacked(bytes(writer.data) + END, len(made) - 1) is None


def test_data_that_end_anywhere_else_are_damaged() -> None:
    writer = Writer(random.Random(1))
    writer.literals(bytes((17 + 50,)), 50, 4)
    for _ in range(40):
        writer.step()
    data = bytes(writer.data) + END
    assert unpacked(data) == bytes(writer.made)
    assert [unpacked(data[:size]) for size in range(len(data))] == [None] * len(data)
    assert unpacked(data + b"\0") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x11",
        END[:2],
        # Matches before the beginning.
        bytes((18, 65, 64, 1)) + END,
        bytes((18, 65, 32 | 1, 4, 0)) + END,
        bytes((21, *b"abcd", 0, 0)) + END,
        # Literals and lengths beyond the end.
        bytes((255, 65, 66)),
        bytes((0, 0, 0, 0, 0)),
        bytes((18, 65, 32, 0, 0, 0, 0, 0)),
    ],
)
def test_hostile_data_are_refused(data: bytes) -> None:
    assert unpacked(data) is None


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_stay_within_the_room(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2000):
        made = unpacked(chance.randbytes(chance.randrange(60)) + END, 100)
        assert made is None or len(made) <= 100
