"""Every query of the library gives the rows that its oracle gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import FOLDER, REFERENCES, Case
from tests.library.comparison import LIBRARY, compare
from tests.library.oracles import ORACLES, PUBLISHED, PUBLISHED_OTHERWISE
from tests.library.table import PAGE, names, with_tables
from tests.support.requirements import needs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_COMMENT = re.compile(r"--[^\n]*|DEFINE \{[^}]*\}|Query \w+:", re.IGNORECASE)


@pytest.mark.spark
@pytest.mark.slow
@needs("tshark")
def test_every_query_gives_the_rows_of_its_oracle(tmp_path: Path, spark: SparkSession) -> None:
    """One test, because one reading of the trace answers all queries."""
    found = compare(tmp_path, spark)
    wrong = {
        one.query: (dict(one.differing), one.missing[:5], one.extra[:5])
        for one in found
        if set(one.differing) != set(one.oracle.differs)
    }
    assert wrong == {}
    assert [one.query for one in found if not one.agreeing] == []
    page = PAGE.read_text("utf-8")
    assert page == with_tables(page, found), "python -m tests.library.table writes the table"


def test_every_query_has_an_oracle() -> None:
    assert sorted(ORACLES) == names()
    assert sorted(PUBLISHED) == names(LIBRARY / "published")


@pytest.mark.parametrize("query", sorted(set(PUBLISHED) - set(PUBLISHED_OTHERWISE)))
def test_a_golden_case_answers_the_published_query(query: str) -> None:
    case = PUBLISHED[query]
    assert REFERENCES[case]
    asked = " ".join(plain(text.text) for text in Case.read(FOLDER / case).texts)
    statements = plain((LIBRARY / "published" / f"{query}.gsql").read_text()).split(" ; ")
    assert statements[-1] in asked


def plain(text: str) -> str:
    """Return a text without comments, definitions and line ends, in small letters."""
    return " ".join(_COMMENT.sub(" ", text).lower().replace(";", " ; ").split()).strip(" ;")
