"""The cause of a failure of Java, in one line, from its output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_THROWN = re.compile(
    r"(?:^|[\s:])((?:[A-Za-z_$][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable)\b.*)"
)
_FRAME = re.compile(r"\s*(?:at \S+\(|\.\.\. \d+ more)")
_ASIDE = re.compile(
    r"\s*(?:WARNING:|NOTE:|Picked up |Using Spark's default log4j|Setting default log level)"
)
_HEADING = re.compile(r"Error occurred during initialization of \S+|Error: .* has occurred.*")


def cause_in(lines: Sequence[str]) -> str:
    """Return the first line of the first exception in ``lines``, else their first informative line.

    The frames of an exception follow it, and a later exception is often a consequence.

    Args:
        lines: the output of a Java that has ended.
    """
    for line in lines:
        if (found := _THROWN.search(line)) and not _FRAME.match(line):
            return found.group(1).strip()
    informative = [
        line.strip()
        for line in lines
        if any(map(str.isalnum, line)) and not (_FRAME.match(line) or _ASIDE.match(line))
    ]
    if not informative:
        return "no output"
    if _HEADING.fullmatch(informative[0]) and len(informative) > 1:
        return f"{informative[0]}: {informative[1]}"
    return informative[0]
