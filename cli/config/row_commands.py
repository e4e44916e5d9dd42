"""The setting of commands that are run for each row."""

from __future__ import annotations

import shlex

from gscope.cli.config.setting import Kind


def parse_row_commands(text: str) -> tuple[str, ...]:
    """Return the commands of lines with one each.

    Raises:
        ValueError: a line is not a command; the message says what is expected.
    """
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    for command in found:
        try:
            words = shlex.split(command)
        except ValueError as error:
            reason = str(error)
            message = f"invalid command {command!r}: {reason[:1].lower()}{reason[1:]}"
            raise ValueError(message) from error
        if not words or "\0" in command:
            message = f"invalid command {command!r}: expected a program and its arguments"
            raise ValueError(message)
        if found.count(command) > 1:
            message = f"the command {command} is given twice"
            raise ValueError(message)
    return found


def show_row_commands(commands: tuple[str, ...]) -> str:
    """Return lines that ``parse_row_commands`` reads."""
    return "\n".join(commands)


ROW_COMMANDS = Kind(
    "COMMAND", parse_row_commands, show_row_commands, is_repeated=True, is_list=True
)
