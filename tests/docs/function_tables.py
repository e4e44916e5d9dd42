"""The tables of functions and aggregates in the reference, made from the catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gscope.cli.render.function_list import described_functions

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECTION = re.compile(r"(<!-- ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """A page with its sections ``<!-- name --> … <!-- end -->`` replaced."""
    return _SECTION.sub(lambda section: section[1] + _section(section[2]) + section[4], text)


def _section(name: str) -> str:
    described = described_functions()[name]
    if name != "functions":
        return _table(name.removesuffix("s"), described)
    families = dict.fromkeys(one["family"] for one in described)
    return "\n".join(
        f"### {family.capitalize()}\n\n"
        + _table("function", [one for one in described if one["family"] == family])
        for family in families
    )


def _table(heading: str, described: Iterable[dict[str, Any]]) -> str:
    lines = [f"| {heading} | gives | level | meaning |", "|---|---|---|---|"]
    for one in described:
        cells = (f"`{one['name']}({one['takes']})`", one["returns"], one["levels"], one["is"])
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"
