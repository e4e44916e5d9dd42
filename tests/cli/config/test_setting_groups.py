"""Groups of settings that commands leave out: each key exists, and no command repeats a group."""

from __future__ import annotations

import click
import pytest

from gscope.cli.commands.option_groups import with_config
from gscope.cli.config import setting_groups
from gscope.cli.config.settings import SETTINGS
from gscope.cli.main import cli

KEYS = {each.key for each in SETTINGS}
GROUPS = {name: keys for name, keys in vars(setting_groups).items() if name.startswith("OF_")}
NAMES = {each.attribute: each.key for each in SETTINGS}


def shown(command: str) -> set[str]:
    """The keys of the settings that a command has options for."""
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    names = {each.name or "" for each in found.params}
    return {NAMES[name] for name in names & NAMES.keys()}


@pytest.mark.parametrize("group", GROUPS)
def test_each_key_of_a_group_exists_once(group: str) -> None:
    keys = GROUPS[group]
    assert keys
    assert set(keys) <= KEYS
    assert len(set(keys)) == len(keys)


def test_a_command_cannot_leave_out_a_key_that_does_not_exist() -> None:
    with pytest.raises(AssertionError, match="outptu"):
        with_config(without=("outptu.format",))


def test_agents_and_relays_have_no_options_of_answers_and_jobs() -> None:
    answers = {
        key for key in KEYS if key.startswith(("output.", "metrics.", "spark.", "shedding."))
    }
    assert len(answers) > 10
    for command in ("capture", "relay"):
        assert not shown(command) & (answers | {"partitions", "lookups", "limits.job_disk"})


def test_a_relay_can_be_strict_and_an_agent_cannot() -> None:
    assert "strict" in shown("relay")
    assert "strict" not in shown("capture")
