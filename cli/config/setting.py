"""One setting of ``gscope.yaml``, the environment and flags, and the kinds of values it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

AUTOMATIC = "auto"


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting takes.

    Attributes:
        metavar: what help shows for a value, such as DURATION; "" for a switch.
        parse: turns text into a value; raises ValueError with a sentence.
        show: turns a value into text that ``parse`` reads.
        is_repeated: whether the flag may be given several times, for a line of the text each.
        is_list: whether ``gscope.yaml`` has a list of such lines, not entries ``name: value``.
    """

    metavar: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    is_repeated: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that can be set.

    Attributes:
        key: the key in ``gscope.yaml``: ``section.name`` or ``name``.
        attribute: the attribute of ``Config``.
        kind: the values that it takes.
        default: the value if it is not set; None if gscope chooses one.
        meaning: a phrase for help, without capital and full stop.
        short: a one-letter flag; "" for none.
        flag: the long flag; "" for the key with dashes.
    """

    key: str
    attribute: str
    kind: Kind
    default: Any
    meaning: str
    short: str = ""
    flag: str = ""

    @property
    def long(self) -> str:
        """Return the long flag: ``--heartbeat-interval``."""
        return self.flag or "--" + self.key.replace(".", "-").replace("_", "-")

    @property
    def variable(self) -> str:
        """Return the environment variable of the flag: ``GSCOPE_HEARTBEAT_INTERVAL``."""
        return "GSCOPE_" + self.long[2:].replace("-", "_").upper()

    @property
    def default_text(self) -> str:
        """Return the default as a user would write it."""
        return AUTOMATIC if self.default is None else self.kind.show(self.default)

    def parse(self, text: str) -> Any:
        """Return the value of ``text``; ``auto`` stands for a default that gscope chooses.

        Raises:
            ValueError: the text is invalid; the message says what is expected.
        """
        if self.default is None and text.strip() == AUTOMATIC:
            return None
        return self.kind.parse(text)


def _parse_file(text: str) -> Path:
    if not text or "\0" in text:
        message = f"invalid file {text!r}: expected a path"
        raise ValueError(message)
    return Path(text)


FILE = Kind("FILE", _parse_file, str)
