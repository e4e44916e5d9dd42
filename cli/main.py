"""The command ``gscope``: finds the subcommand, and turns errors into messages and exit codes."""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from gscope import __version__
from gscope.cli.render.standard_streams import settle_streams
from gscope.errors import GscopeError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.startup import settle

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "replay": "gscope.cli.commands.replay:replay",
    "run": "gscope.cli.commands.run:run",
    "relay": "gscope.cli.commands.relay:relay",
    "capture": "gscope.cli.commands.capture:capture",
    "stop": "gscope.cli.commands.stop:stop",
    "status": "gscope.cli.commands.status:status",
    "view": "gscope.cli.commands.view:view",
    "report": "gscope.cli.commands.report:report",
    "serve": "gscope.cli.commands.serve:serve",
    "check": "gscope.cli.commands.check:check",
    "explain": "gscope.cli.commands.explain:explain",
    "schema": "gscope.cli.commands.schema:schema",
    "library": "gscope.cli.commands.library:library",
    "interfaces": "gscope.cli.commands.interfaces:interfaces",
    "config": "gscope.cli.commands.config:config",
    "completion": "gscope.cli.commands.completion:completion",
    "man": "gscope.cli.commands.man:man",
    "help": "gscope.cli.commands.help:show_help",
}
"""The module of each command, which is imported only when the command is used or listed."""

DEBUG_VARIABLE = "GSCOPE_DEBUG"
COMPLETION_VARIABLE = "_GSCOPE_COMPLETE"
"""Set by a shell that asks for candidates; click derives its name from that of the program."""

_FIRST = """\
A first command to try:

  gscope replay trace.pcap -q top_talkers

`gscope help` lists the commands, `gscope help COMMAND` describes one.
"""


class ReaderGone(Exception):
    """The reader of standard output is gone; click would handle ``BrokenPipeError`` itself."""


class Commands(click.Group):
    """The subcommands, imported on demand."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return their names, most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that ``args`` start with; suggest one for an unknown name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            hint = suggestion(name, COMMANDS, f"available: {', '.join(COMMANDS)}")
            message = f"unknown command {name!r}; {hint}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__, "-V", "--version", prog_name="gscope", message="%(prog)s %(version)s"
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Answer SQL-like queries (GSQL) over packets."""
    if context.invoked_subcommand is None:
        click.echo(
            f"gscope {__version__}: answers SQL-like queries (GSQL) over packets.\n\n{_FIRST}",
            nl=False,
        )


def main() -> None:
    """Run the command line and exit."""
    settle_streams()
    codes: list[int] = []
    # The first handler to be registered is called last, when only the interpreter is left to end.
    atexit.register(_end_at_once, codes)
    code = run(sys.argv[1:])
    _forsake_output()
    codes.append(code)
    sys.exit(code)


def _end_at_once(codes: Sequence[int]) -> None:
    """End the process with the code, if there is one: unloading all modules takes 60 ms."""
    for code in codes:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code; messages go to standard error."""
    settle()
    # Arrow Flight's transport would log each broken connection; gscope reports them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if COMPLETION_VARIABLE in os.environ:
        # Registers how bash, zsh and fish are answered.
        importlib.import_module("gscope.cli.completion.shells")
    try:
        result = cli.main(list(arguments), prog_name="gscope", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        return _leave_pipe()
    except click.exceptions.Abort:
        return 128 + signal.SIGINT
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except click.ClickException as error:
        _say(_usage(error))
        return error.exit_code
    except GscopeError as error:
        _say("\n".join([f"gscope: {error}", *getattr(error, "__notes__", ())]))
        return error.exit_code
    except OSError as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        _say(f"gscope: {_system(error)}")
        return 1
    except Exception as error:
        return _bug(error)
    return result if isinstance(result, int) else 0


def _usage(error: click.ClickException) -> str:
    """Return a click error as one sentence and where to find help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "gscope"
    message = error.format_message().strip().rstrip(".")
    return f"{path}: {message[:1].lower()}{message[1:]}\n`{path} -h` describes the command."


def _system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{os_reason(error)}"


def _bug(error: Exception) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    first = (str(error).splitlines() or [""])[0]
    _say(
        f"gscope: this is a bug in gscope ({type(error).__name__}: {first}); "
        f"set {DEBUG_VARIABLE}=1 for a traceback"
    )
    return 1


def _say(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:
        return


def _leave_pipe() -> int:
    """Exit silently after the reader has gone, also when the interpreter flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _forsake_output() -> None:
    """Keep the interpreter from failing at exit if standard output is closed."""
    try:
        sys.stdout.flush()
    except OSError:
        _leave_pipe()
