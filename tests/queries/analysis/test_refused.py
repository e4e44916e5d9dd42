"""Every query in ``tests/queries/refused`` is refused, for the reason in its first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse

CASES = sorted((Path(__file__).parents[1] / "refused").glob("*.gsql"))
INTERFACES = ("main0", "main1")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_wrong_query_is_refused_with_reason_place_and_remedy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    reason = text.splitlines()[0].removeprefix("-- fails: ")
    with pytest.raises(GsqlError) as caught:
        analyze([parse(text, path.name)], INTERFACES, {}, {}, is_unbounded=True)
    report = caught.value.report()
    assert reason in report
    if path.stem != "nothing_at_all":
        assert caught.value.position is not None
        assert "^" in report
