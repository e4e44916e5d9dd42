"""Compressed captures: gzip, zstd and lz4, recognised by content, decompressed on reading."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Protocol

import lz4.frame
import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.sources.files.stored import ByteStream

MAGIC_BYTES = 4
"""Number of bytes that ``is_compressed`` needs."""

_PIECE_BYTES = 4096
"""Input of one call of a decompressor. zstd does not limit the output of a call (at worst 128 KiB
for 4 bytes), and a call that fails loses its output; so pieces are small."""

_CHUNK_BYTES = 256 * 1024
"""Bytes of one read."""


class MemberDecoder(Protocol):
    """The decoder of a gzip member or a zstd or lz4 frame, like ``bz2.BZ2Decompressor``."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""

    @property
    def unused_data(self) -> bytes | None:
        """Input beyond the end of the member; lz4 returns None for nothing."""

    @property
    def needs_input(self) -> bool:
        """Whether there is no more output without input."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the output for ``data``, at most about ``max_length`` bytes."""


class DecompressedBytes:
    """The decompressed bytes of a compressed input; see ``ByteStream``.

    Members of different kinds may follow each other. A truncated or damaged member ends the stream:
    the output before it is used, and ``damage`` describes the rest.

    Args:
        stored: the compressed bytes after ``head``.
        head: the first bytes, for which ``is_compressed`` returns True.
    """

    def __init__(self, stored: ByteStream, head: bytes) -> None:
        self._stored = stored
        self._buffer = memoryview(bytearray(_CHUNK_BYTES))
        # The bytes of the last read, and how many of them were used.
        self._input = head
        self._used = 0
        self._output = memoryview(b"")
        self._kind = ""
        self._member: MemberDecoder | None = None
        self._at_end = False

    @property
    def position(self) -> int:
        """Compressed bytes consumed so far."""
        return self._stored.position - len(self._input) + self._used

    @property
    def damage(self) -> list[str]:
        """See ``ByteStream``."""
        return self._stored.damage

    def readinto(self, buffer: memoryview) -> int:
        """See ``ByteStream``. Waits for input only if it has nothing to return."""
        filled = 0
        while filled < len(buffer):
            if not self._output and not self._unpack(len(buffer) - filled, may_read=not filled):
                break
            size = min(len(self._output), len(buffer) - filled)
            buffer[filled : filled + size] = self._output[:size]
            self._output = self._output[size:]
            filled += size
        return filled

    def interrupt(self) -> None:
        """See ``ByteStream``."""
        self._stored.interrupt()

    def close(self) -> None:
        """See ``ByteStream``."""
        self._stored.close()

    def _unpack(self, max_length: int, *, may_read: bool) -> bool:
        """Fill ``_output``; return False at the end, or if input must be read but may not."""
        while not self._output and not self._at_end:
            starved = self._member is None or self._member.needs_input
            if starved and self._used == len(self._input):
                if not may_read:
                    return False
                if not self._read():
                    self._end_of_input()
                    break
            if self._member is None and not self._begin_member():
                continue
            self._feed(max_length)
        return bool(self._output)

    def _read(self) -> bool:
        """Replace ``_input`` by the next bytes of the input; return False at its end."""
        got = self._stored.readinto(self._buffer)
        self._input = bytes(self._buffer[:got])
        self._used = 0
        return got > 0

    def _begin_member(self) -> bool:
        """Choose the decoder of the member that begins here.

        Return False if there is none (yet).
        """
        while len(self._input) - self._used < MAGIC_BYTES:
            head = self._input[self._used :]
            more = self._read()
            self._input = head + self._input
            if not more:
                break
        kind = _kind_of(self._input[self._used : self._used + MAGIC_BYTES])
        if kind is not None:
            self._kind, self._member = kind, _MEMBERS[kind]()
            return True
        if self._input[self._used :].strip(b"\0"):
            self.damage.append(
                f"the bytes after the {self._kind} data at byte {self.position} are not "
                "compressed; ignored"
            )
            self._at_end = True
        # Zeros are padding, as gzip itself reads it.
        self._used = len(self._input)
        return False

    def _feed(self, max_length: int) -> None:
        member = self._member
        assert member is not None
        piece = b""
        if member.needs_input:
            piece = self._input[self._used : self._used + _PIECE_BYTES]
            self._used += len(piece)
        try:
            self._output = memoryview(member.decompress(piece, max_length))
        except (zlib.error, zstandard.ZstdError, RuntimeError, EOFError, MemoryError) as error:
            self.damage.append(
                f"the {self._kind} data is damaged near byte {self.position} ({error}); the rest "
                "is ignored"
            )
            self._at_end = True
            return
        if member.eof:
            # These are the end of the last piece. Stepping back copies nothing, for any number of
            # members.
            self._used -= len(member.unused_data or b"")
            self._member = None

    def _end_of_input(self) -> None:
        self._at_end = True
        # A read error has been reported already.
        if self._member is not None and not self.damage:
            self.damage.append(f"the {self._kind} data is truncated at byte {self.position}")


def is_compressed(head: bytes) -> bool:
    """Return whether an input that begins with ``head`` (``MAGIC_BYTES`` bytes) is compressed."""
    return _kind_of(head) is not None


class _GzipMember:
    """See ``MemberDecoder``.

    After an error the member is decoded again byte by byte, so that no output before it is lost.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self._failure: zlib.error | None = None
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._failure is not None:
            raise self._failure
        before = self._inflate.copy()
        data = self._inflate.unconsumed_tail + data
        try:
            made = self._inflate.decompress(data, max_length)
        except zlib.error as error:
            self._failure = error
            self.needs_input = False
            return _inflate_bytewise(before, data)
        self.needs_input = not self._inflate.unconsumed_tail and len(made) < max_length
        return made


def _inflate_bytewise(inflate: Any, data: bytes) -> bytes:
    made = b""
    try:
        for value in data:
            made += inflate.decompress(bytes((value,)))
    except zlib.error:
        pass
    return made


class _ZstdMember:
    """See ``MemberDecoder``."""

    needs_input = True

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:  # noqa: ARG002 - zstd knows no limit
        return self._frame.decompress(data)


class _Lz4Member:
    """See ``MemberDecoder``.

    A call that fails loses its output, so each produces little, whatever ``max_length`` is.
    """

    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameDecompressor()

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes | None:
        unused: bytes | None = self._frame.unused_data
        return unused

    @property
    def needs_input(self) -> bool:
        return bool(self._frame.needs_input)

    def decompress(self, data: bytes, max_length: int) -> bytes:  # noqa: ARG002 - see above
        made: bytes = self._frame.decompress(data, _PIECE_BYTES)
        return made


_MEMBERS: dict[str, Callable[[], MemberDecoder]] = {
    "gzip": _GzipMember,
    "zstd": _ZstdMember,
    "lz4": _Lz4Member,
}
_MAGICS = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
# zstd and lz4 share their skippable frames (RFC 8878, section 3.1.2); pzstd begins its files with
# one.
_MAGICS |= {bytes((low,)) + b"\x2a\x4d\x18": "zstd" for low in range(0x50, 0x60)}


def _kind_of(head: bytes) -> str | None:
    return next((kind for magic, kind in _MAGICS.items() if head.startswith(magic)), None)
