"""What the summary says of rows for destinations, and whether they count as lost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.render.finished_captures import finished

from gscope.cli.render.outcome import Outcome
from gscope.cli.render.sent import UNSENT, sent_lines
from gscope.cli.render.summary import is_whole

WHOLE: dict[str, Any] = {
    "name": "http://h:80/…",
    "sent_rows_total": 1200,
    "waiting_rows": 0,
    "dropped_rows_total": 0,
    "refused_rows_total": 0,
    "outages_total": 0,
    "failure": None,
}


def test_a_line_for_each_destination_and_each_loss() -> None:
    lossy = {"dropped_rows_total": 1, "refused_rows_total": 2, "waiting_rows": 3}
    assert list(sent_lines([WHOLE, WHOLE | lossy | {"outages_total": 2, "failure": "down"}])) == [
        "  1,200 rows sent to http://h:80/…",
        "  1,200 rows sent to http://h:80/…; it was out 2 times",
        "  1 row not sent: the spool was full; --spool keeps more",
        "  2 rows failed: http://h:80/… does not take them",
        "  3 rows not sent: down",
    ]


@pytest.mark.parametrize("loss", UNSENT)
def test_what_a_destination_lacks_is_lost(loss: str) -> None:
    assert is_whole(Outcome(capture=finished(), outlets=[WHOLE | {"outages_total": 9}]))
    assert not is_whole(Outcome(capture=finished(), outlets=[WHOLE, WHOLE | {loss: 1}]))
