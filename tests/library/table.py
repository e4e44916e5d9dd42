"""The table of oracles in ``docs/library.md``; ``python -m tests.library.table`` rewrites it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.library.comparison import LIBRARY, compare
from tests.library.oracles import FIELDS, PUBLISHED, PUBLISHED_OTHERWISE
from tests.support.shared_spark import SharedSpark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.library.comparison import Comparison

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
_SECTION = re.compile(r"(<!-- (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def with_tables(page: str, found: Sequence[Comparison]) -> str:
    """Return the page with its sections ``<!-- name --> … <!-- end -->`` replaced."""
    tables = {"users": _users(found), "published": _published()}
    return _SECTION.sub(lambda section: section[1] + tables[section[2]] + section[4], page)


def _users(found: Sequence[Comparison]) -> str:
    lines = [
        "| query | its oracle reads | captures | generated traces | rows | agreement |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        if one.query in FIELDS:
            continue
        reasons = [
            f"{one.differing[part]} in {part}: {one.oracle.differs[part]}"
            for part in sorted(one.differing)
        ]
        rows = one.agreeing + len(one.missing) + len(one.extra)
        agreement = f"all but {'; '.join(reasons)}" if reasons else "all"
        cells = (one.oracle.reads, one.captures, one.made, rows, agreement)
        link = f"[{one.query}](../queries/library/{one.query}.gsql)"
        lines.append(f"| {link} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _published() -> str:
    lines = ["| query | golden case | in another spelling |", "|---|---|---|"]
    for query, case in PUBLISHED.items():
        link = f"[{query}](../queries/library/published/{query}.gsql)"
        golden = f"[{case}](../tests/golden/{case})"
        lines.append(f"| {link} | {golden} | {PUBLISHED_OTHERWISE.get(query, '')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the page."""
    with tempfile.TemporaryDirectory(prefix="gscope-library-") as folder:
        shared = SharedSpark(Path(folder))
        try:
            found = compare(Path(folder), shared.session())
        finally:
            shared.release()
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), found), "utf-8")


def names(folder: Path = LIBRARY) -> list[str]:
    """Return the names of the queries in a folder of the library."""
    return sorted(path.stem for path in folder.glob("*.gsql"))


if __name__ == "__main__":
    main()
