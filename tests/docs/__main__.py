"""``python -m tests.docs [PAGE…]`` rewrites answers, messages and reference tables.

Review the diff.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.examples import PAGES, examples, value_tables
from tests.docs.function_tables import with_tables
from tests.docs.outcomes import answers, refusal
from tests.support.shared_spark import SharedSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite(page: Path, folder: Path, spark: SparkSession) -> None:
    """Put what really comes of the examples of ``page`` into it."""
    asked = [example for example in examples(page) if example.outcome == "csv"]
    tables = value_tables(page)
    found = answers(asked, tables, folder, spark)
    edits = [(example.span, found[example.place]) for example in asked]
    edits += [(e.span, refusal(e)) for e in examples(page) if e.outcome == "error"]
    for table in tables:
        for span, value in zip(table.spans, found[table.place].splitlines(), strict=True):
            edits.append((span, f"`{value}`"))
    text = page.read_text(encoding="utf-8")
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    page.write_text(with_tables(text), encoding="utf-8")


def main() -> None:
    """Rewrite the pages named, or all."""
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with tempfile.TemporaryDirectory(prefix="gscope-docs-") as folder:
        shared = SharedSpark(Path(folder))
        try:
            for page in pages:
                rewrite(page, Path(folder), shared.session())
        finally:
            shared.release()


if __name__ == "__main__":
    main()
