"""Settings of an agent, and of each capture that it runs for another host, as files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.cli.config.capture_devices import Overrides, live_interfaces
from gscope.cli.config.capture_files import chosen_interfaces
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.settings import SETTINGS
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.config.effective import Config

AGENT_FILE = "agent.json"
REQUEST_FILE = "request.json"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent allows, and the settings of its captures.

    Attributes:
        host: the address at which captures serve.
        devices: ``[NAME=]DEVICE``, as ``--allow-interface`` takes them.
        captures: ``[NAME=]FILE``, as ``--allow-capture`` takes them.
        settings: the text of each setting, by key.
        config_path: the configuration file; "" for none.
        udf: the files of user code.
        capture_ports: the ports at which captures may serve; () for any free one.
    """

    host: str
    devices: tuple[str, ...]
    captures: tuple[str, ...]
    settings: dict[str, str]
    config_path: str = ""
    udf: tuple[str, ...] = ()
    capture_ports: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        host: str,
        devices: tuple[str, ...],
        captures: tuple[str, ...],
        config: Config,
        capture_ports: tuple[int, ...] = (),
    ) -> AgentSettings:
        """Return the settings of an agent whose effective configuration is ``config``."""
        values = ((each, getattr(config, each.attribute)) for each in SETTINGS)
        return cls(
            host,
            devices,
            captures,
            {each.key: each.kind.show(v) for each, v in values if v is not None},
            "" if config.path is None else str(config.path.absolute()),
            config.udf,
            capture_ports,
        )

    @property
    def config(self) -> Config:
        """The effective configuration.

        Raises:
            UsageError: the configuration file has become unreadable or invalid.
        """
        given = {key: GivenSetting(text, key) for key, text in self.settings.items()}
        config = load_config(given, Path(self.config_path) if self.config_path else None)
        return replace(config, udf=self.udf)

    def interfaces(self, config: Config) -> tuple[InterfaceSettings, ...]:
        """Return the interfaces that may be captured.

        Raises:
            UsageError: there is none, one is invalid, or a name is given twice.
        """
        found: tuple[InterfaceSettings, ...] = ()
        has_devices = any(each.device is not None for each in config.interfaces.values())
        if self.devices or (has_devices and not self.captures):
            found = live_interfaces(self.devices, (), Overrides(), config.interfaces)
        if self.captures:
            found += chosen_interfaces(self.captures, (), (), {})
        if not found:
            message = (
                "an agent captures only what it is allowed to: name devices with "
                "--allow-interface, or captures to replay with --allow-capture"
            )
            raise UsageError(message)
        names = [each.name for each in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            message = f"duplicate interface: expected each once, got {twice} twice"
            raise UsageError(message)
        return found


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A request as the agent keeps it in the folder of the capture.

    Attributes:
        request: the request, see ``CaptureRequest``.
        digest: its digest, see ``request_digest``.
        is_known: whether the host has rows of it already.
        port: the port at which its log was last served; 0 for none.
        has_ended: whether all of it was captured and acknowledged.
        is_recording: whether it is kept for a run that has not asked for it yet.
    """

    request: dict[str, Any]
    digest: str
    is_known: bool = False
    port: int = 0
    has_ended: bool = False
    is_recording: bool = False


def write_plain(path: Path, value: object) -> None:
    """Write a dataclass to ``path``, replacing any file there.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        replace_file(path, json.dumps(to_plain(value)))
    except OSError as error:
        message = f"cannot write {path}: {os_reason(error)}"
        raise UsageError(message) from error


def read_plain(kind: type[Any], path: Path) -> Any:
    """Return the dataclass in ``path``.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        return from_plain(kind, json.loads(path.read_bytes()))
    except OSError as error:
        message = f"cannot read {path}: {os_reason(error)}"
        raise UsageError(message) from error
    except (ValueError, TypeError, AttributeError) as error:
        message = f"{path} is damaged: {error}"
        raise UsageError(message) from error
