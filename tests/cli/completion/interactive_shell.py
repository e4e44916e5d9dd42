"""An interactive shell on a pseudo-terminal, and what its line holds after some keys."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.gscope_command import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

READY = "READY:"
DUMP = "\x18d"
"""Ctrl-X d, to which each shell binds a function that writes its line to ``$LINE_FILE``."""
ERASE = "\x05\x15"
"""Ctrl-E Ctrl-U, which empties the line."""

BASH = r"""
bind 'set bell-style none'
bind 'set show-all-if-ambiguous off'
dump() { printf '%s' "$READLINE_LINE" > "$LINE_FILE.new"; mv "$LINE_FILE.new" "$LINE_FILE"; }
bind -x '"\C-xd": dump'
"""
ZSH = r"""
setopt no_beep no_always_last_prompt
autoload -Uz compinit && compinit -u -D
dump() { print -rn -- "$BUFFER" > "$LINE_FILE.new"; mv "$LINE_FILE.new" "$LINE_FILE" }
zle -N dump
bindkey '^I' complete-word
bindkey '^Xd' dump
"""
STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], BASH),
    "zsh": (["zsh", "-f", "-i"], ZSH),
}


def line_after(shell: str, folder: Path, loading: str, typed: list[str]) -> list[str]:
    """Return what the line of ``shell`` holds after each of ``typed``, keys on an empty line.

    ``loading`` is the command that makes completion available there.
    """
    arguments, prelude = STARTS[shell]
    line_file, startup = folder / "line", folder / "startup"
    startup.write_text(f"{prelude}\n{loading}\nPS1='{READY}'\n")
    venv = str(Path(sys.executable).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GSCOPE_")},
        "PATH": f"{venv}:{os.environ['PATH']}",
        "LINE_FILE": str(line_file),
        "HOME": str(folder),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PS1": "> ",
    }
    near, far = pty.openpty()
    process = subprocess.Popen(
        arguments,
        stdin=far,
        stdout=far,
        stderr=far,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(far)
    shown = ""
    try:
        until = time.monotonic() + PATIENCE_S
        os.write(near, f". '{startup}'\n".encode())
        shown = _read(near, until, lambda text: READY in text)
        lines = []
        for keys in typed:
            line_file.unlink(missing_ok=True)
            os.write(near, (keys + DUMP + ERASE).encode())
            _read(near, until, lambda _: line_file.exists())
            lines.append(line_file.read_text())
        return lines
    except TimeoutError as error:
        message = f"{shell} did not respond; it showed {shown!r}"
        raise AssertionError(message) from error
    finally:
        process.kill()
        process.wait()
        os.close(near)


def _read(terminal: int, until: float, is_enough: Callable[[str], bool]) -> str:
    """Read from ``terminal`` until what was read satisfies ``is_enough``."""
    text = ""
    while not is_enough(text):
        if time.monotonic() > until:
            raise TimeoutError
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text
