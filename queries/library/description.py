"""What a library query says of itself, in the comment at its top.

    -- The hosts that send most, by minute
    -- The twenty that send most bytes, the greatest first.
    --
    -- group: talkers
    -- columns:
    --   srcIP    the sender
    --   bytes    bytes sent, headers included
    -- example: gscope replay trace.pcap -q top_talkers

The first line is the summary; ``assumes:`` is optional. A line that continues an entry is indented
deeper than the entry.
"""

from __future__ import annotations

import re

from gscope.records import dataclass

GROUPS = {
    "talkers": "Who talks with whom",
    "services": "Services and protocols",
    "names": "Names: DNS, TLS, HTTP",
    "load": "Load and packet sizes",
    "performance": "Performance and errors",
    "security": "Security",
    "layers": "Links, VLANs, tunnels, ICMP",
    "samples": "Samples: few rows that stand for all",
    "published": "Published: as printed in the papers",
}
"""The heading of each group, in the order in which groups are listed."""

_ENTRY = re.compile(r"(group|columns|assumes|example):(.*)")
_COLUMN = re.compile(r"  (\w+|\*)  +(\S.*)")


@dataclass(frozen=True, slots=True)
class Description:
    """What the comment at the top of a query says.

    Attributes:
        summary: one line, without a full stop.
        remarks: the lines below it, joined; "" if there are none.
        group: a key of ``GROUPS``.
        columns: the meaning of each column, in the order of the comment, with its unit.
        assumes: what the query requires of its input or its settings; "" if nothing.
        example: a command that answers the query.
    """

    summary: str
    remarks: str
    group: str
    columns: dict[str, str]
    assumes: str
    example: str


def describe(text: str) -> Description:
    """Return what the comment at the top of the query ``text`` says."""
    prose: list[str] = []
    entries: dict[str, list[str]] = {}
    entry = prose
    for line in _leading_comment(text):
        start = _ENTRY.fullmatch(line)
        if start is not None:
            entry = entries.setdefault(start[1], [])
            entry.append(start[2])
        else:
            entry.append(line)
    summary, *remarks = prose or [""]
    return Description(
        summary,
        _joined(remarks),
        _joined(entries.get("group", [])),
        _columns(entries.get("columns", [])),
        _joined(entries.get("assumes", [])),
        _joined(entries.get("example", [])),
    )


def _leading_comment(text: str) -> list[str]:
    """Return the comment lines at the beginning of a query text, without their dashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" ").rstrip())
    return lines


def _columns(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        column = _COLUMN.fullmatch(line)
        if column is not None:
            found[column[1]] = column[2]
        elif found and line.strip():
            found[next(reversed(found))] += f" {line.strip()}"
    return found


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
