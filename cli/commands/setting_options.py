"""The option of each setting: its heading, help and completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from click.core import ParameterSource

from gscope.cli.commands.options import Lines, option
from gscope.cli.completion import candidates
from gscope.cli.config.alerts import ALERTS
from gscope.cli.config.cluster import INTERPRETER, MASTER
from gscope.cli.config.destinations import DESTINATIONS, SCHEMES
from gscope.cli.config.lookups import LOOKUP
from gscope.cli.config.row_commands import ROW_COMMANDS
from gscope.cli.config.row_metrics import RESULTS
from gscope.cli.config.setting import FILE
from gscope.cli.config.settings import FOLDER, USER

if TYPE_CHECKING:
    from collections.abc import Callable

    import click

    from gscope.cli.config.setting import Setting

F = TypeVar("F", bound="Callable[..., Any]")

_HEADINGS = {
    "output": "Output",
    "metrics": "Runs and monitoring",
    "strict": "Output",
    "heartbeat": "Heartbeats and failures",
    "failure": "Heartbeats and failures",
    "shedding": "Sampling",
    "listen": "Other hosts",
    "token_file": "Other hosts",
    "tls": "Other hosts",
    "spark": "Memory, disk and cores",
    "partitions": "Memory, disk and cores",
    "limits": "Memory, disk and cores",
    "lookups": "Queries",
    "user": "Privileges",
    "sandbox": "Privileges",
    "work_dir": "Runs and monitoring",
}
"""The heading of a setting in help, by the first part of its key."""


def setting_option(setting: Setting) -> Callable[[F], F]:
    """Return the option of a setting, whose value becomes the argument ``setting.attribute``."""
    text = setting.meaning[0].upper() + setting.meaning[1:] + "."
    if setting.default is not None and setting.kind.metavar and not setting.kind.is_repeated:
        text += f" Default: {setting.default_text}."
    heading = _HEADINGS[setting.key.partition(".")[0]]
    if not setting.kind.metavar:
        name = setting.long
        return option(
            f"{name}/--no-{name[2:]}",
            setting.attribute,
            heading=heading,
            default=None,
            help=text,
            is_flag=True,
        )
    names = [name for name in (setting.short, setting.long) if name]
    others: dict[str, Any] = {"multiple": True, "type": Lines()} if setting.kind.is_repeated else {}
    others |= {"metavar": setting.kind.metavar, "shell_complete": _completer(setting)}
    return option(*names, setting.attribute, heading=heading, help=text, **others)


def _completer(setting: Setting) -> candidates.Completer | None:
    """Return what completes the values of a setting; None where they are quantities."""
    if setting.kind is FOLDER:
        return candidates.folders
    if setting.kind in (FILE, INTERPRETER, ROW_COMMANDS):
        return candidates.files
    if setting.kind is ALERTS:
        return candidates.results
    if setting.kind is LOOKUP:
        return candidates.lookups
    if setting.kind is RESULTS:
        return candidates.results
    if setting.kind is DESTINATIONS:
        return candidates.words(*SCHEMES)
    if setting.kind is USER:
        return candidates.users
    if setting.kind is MASTER:
        return candidates.words("local", "spark://", "yarn", "k8s://https://")
    words = setting.kind.metavar.split("|")
    return candidates.words(*words) if len(words) > 1 else None


def origin_of(context: click.Context, setting: Setting) -> str:
    """Return where a setting's value comes from: its variable or its flag."""
    if context.get_parameter_source(setting.attribute) is ParameterSource.ENVIRONMENT:
        return f"${setting.variable}"
    return setting.long
