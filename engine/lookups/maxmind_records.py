"""Records of a MaxMind DB file: its metadata, and single fields of its data section.

The format: https://maxmind.github.io/MaxMind-DB/. A value has a control byte with type and size; a
map is pairs of key and value; a pointer stands for a value elsewhere in the section.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from gscope.records import dataclass

_POINTER, _TEXT, _MAP, _ARRAY = 1, 2, 7, 11
_CONTAINER, _END = 12, 13
_BOOL = 14
_UNSIGNED = (5, 6, 9, 10)
_DEEPEST = 32
"""Values that contain more levels are damaged: those of MaxMind have five."""


class DamagedError(Exception):
    """The bytes are not those of a MaxMind DB."""


@dataclass(frozen=True, slots=True)
class Records:
    """The values of a section.

    Attributes:
        data: the bytes of the section, to which offsets and pointers are relative.
    """

    data: bytes
    _known: dict[tuple[int, tuple[str, ...]], Any] = field(default_factory=dict)

    def at(self, offset: int, path: tuple[str, ...] = ()) -> Any:
        """Return the text or number at ``path`` in the value at ``offset``; None if it has none.

        Raises:
            DamagedError: the bytes are invalid.
        """
        try:
            return self._at(offset, path, _DEEPEST)
        except (IndexError, UnicodeDecodeError):
            raise DamagedError from None

    def _at(self, offset: int, path: tuple[str, ...], depth: int) -> Any:
        kind, size, start = self._control(offset)
        if not depth:
            raise DamagedError
        if kind == _POINTER:
            # Many records have the same country: its map is read once.
            key = size, path
            if key not in self._known:
                self._known[key] = self._at(size, path, depth - 1)
            return self._known[key]
        if not path:
            return self._scalar(kind, size, start)
        if kind != _MAP:
            return None
        place = start
        for _ in range(size):
            name = self._at(place, (), depth - 1)
            place = self._behind(place, depth - 1)
            if name == path[0]:
                return self._at(place, path[1:], depth - 1)
            place = self._behind(place, depth - 1)
        return None

    def _scalar(self, kind: int, size: int, start: int) -> Any:
        if kind == _BOOL:
            return bool(size)
        content = self.data[start : start + size]
        if len(content) != size:
            raise DamagedError
        if kind == _TEXT:
            return content.decode()
        return int.from_bytes(content, "big") if kind in _UNSIGNED else None

    def _behind(self, offset: int, depth: int) -> int:
        """Return the offset behind the value at ``offset``."""
        kind, size, start = self._control(offset)
        if not depth:
            raise DamagedError
        if kind in (_POINTER, _BOOL, _CONTAINER, _END):
            return start
        if kind not in (_MAP, _ARRAY):
            return start + size
        for _ in range(size * 2 if kind == _MAP else size):
            start = self._behind(start, depth - 1)
        return start

    def _control(self, offset: int) -> tuple[int, int, int]:
        """Return type, size and start of the content; of a pointer, its target and what follows."""
        control = self.data[offset]
        kind, size, start = control >> 5, control & 31, offset + 1
        if kind == _POINTER:
            width = (size >> 3) + 1
            low = int.from_bytes(self.data[start : start + width], "big")
            high = (size & 7) << 8 * width if width < 4 else 0
            return kind, high + low + (0, 0, 2048, 526336, 0)[width], start + width
        if not kind:
            kind = 7 + self.data[start]
            start += 1
        if size > 28:
            width = size - 28
            more = int.from_bytes(self.data[start : start + width], "big")
            size, start = more + (29, 285, 65821)[width - 1], start + width
        return kind, size, start
