"""Which runs are viewed: those that ask for it, and answer anything here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gscope.capture.log.agent.messages import CaptureRequest
from gscope.capture.settings import ListenerSettings
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.session.request import QueryRequest
from gscope.cli.session.session import Session
from gscope.cli.session.viewing import ensure_viewable, is_viewed
from gscope.errors import UsageError


@pytest.fixture
def session() -> Session:
    config = load_config({"output.format": GivenSetting("view", "-o")}, None)
    return Session(QueryRequest(), (), RunLimits(), None, None, config)


def test_a_view_needs_a_terminal_and_no_folder(session: Session) -> None:
    assert is_viewed(session)
    with pytest.raises(UsageError, match="standard output is a pipe or a file"):
        ensure_viewable(session)
    with pytest.raises(UsageError, match="not written to files"):
        ensure_viewable(replace(session, folder=Path("answers")))


def test_a_run_for_other_hosts_has_nothing_to_view(session: Session) -> None:
    listener = ListenerSettings(3, "127.0.0.1:9470", "token")
    asked = CaptureRequest("1", "a", ("a.eth0",), ("a",), (), ())
    for served in (replace(session, listener=listener), replace(session, requested=asked)):
        assert not is_viewed(served)
        ensure_viewable(served)
