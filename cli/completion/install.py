"""Where each shell looks for completions, and the line that makes it load them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gscope.cli.completion.shells import script
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

_MARK = "# completion of gscope"
_LOADER = re.compile(r"^[^#\n]*\bbash_completion\b", re.M)
_SYSTEM_STARTUP = (Path("/etc/bash.bashrc"), Path("/etc/bashrc"))


@dataclass(frozen=True, slots=True)
class Installation:
    """The files that make completion work in one shell.

    Attributes:
        file: the file that gets the shell's script.
        startup: the file that is read by each interactive shell and gets a line that loads the
            script; None where the shell finds the script by itself.
    """

    file: Path
    startup: Path | None = None

    @property
    def line(self) -> str:
        """The line that loads the script, if it is still there."""
        quoted = "'" + str(self.file).replace("'", "'\\''") + "'"
        return f"[ ! -r {quoted} ] || . {quoted}  {_MARK}"


def installation(shell: str) -> Installation:
    """Return where completion for ``shell`` belongs, for the user who runs gscope."""
    data = _folder("XDG_DATA_HOME", ".local/share")
    if shell == "fish":
        return Installation(_folder("XDG_CONFIG_HOME", ".config") / "fish/completions/gscope.fish")
    if shell == "zsh":
        named = os.environ.get("ZDOTDIR")
        return Installation(
            data / "gscope/completion.zsh", (Path(named) if named else _home()) / ".zshrc"
        )
    startup = _home() / ".bashrc"
    # bash-completion, if the shell loads it, finds the script by its name.
    is_found = any(_loads_completions(file) for file in (startup, *_SYSTEM_STARTUP))
    return Installation(data / "bash-completion/completions/gscope", None if is_found else startup)


def install(shell: str) -> list[str]:
    """Install completion for ``shell``; return a sentence for each file, written or unchanged.

    Raises:
        GscopeError: a file cannot be written.
    """
    where = installation(shell)
    report = [_write(where.file, script(shell))]
    if where.startup is not None:
        before = _read(where.startup) or ""
        lines = [line for line in before.splitlines() if not line.endswith(_MARK)]
        if where.line in before.splitlines():
            report.append(f"{where.startup} loads it already")
        else:
            _write(where.startup, "\n".join([*lines, where.line]) + "\n")
            report.append(f"added a line to {where.startup} that loads it")
    return report


def _loads_completions(file: Path) -> bool:
    return _LOADER.search(_read(file) or "") is not None


def _write(path: Path, text: str) -> str:
    if _read(path) == text:
        return f"{path} is up to date"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In place: a startup file may be a link into a folder of such files.
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        message = f"cannot write {path}: {os_reason(error)}"
        raise GscopeError(message) from error
    return f"wrote {path}"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot read {path}: {os_reason(error)}"
        raise GscopeError(message) from error


def _folder(variable: str, default: str) -> Path:
    """Return the folder that ``variable`` names, by default one in the home."""
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else _home() / default


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        message = (
            "cannot install completion: you have no home folder; `gscope completion SHELL` prints"
            " the script"
        )
        raise UsageError(message) from error
