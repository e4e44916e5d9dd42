"""Runs a module without privileges: ``python -m gscope.cli.unprivileged MODULE ARGUMENT…``.

The HFTA job is started so: whatever the supervisor may do, the job and its Java never hold a capability, neither
root's nor those that a service manager hands down (systemd's AmbientCapabilities).
"""

from __future__ import annotations

import runpy
import sys

from gscope.capture.privileges import drop_privileges


def main() -> None:
    """Give up all capabilities and become the module that is named."""
    drop_privileges()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
