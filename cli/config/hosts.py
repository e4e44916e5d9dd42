"""The hosts whose agents a run asks to capture.

They come from the command line and the configuration file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.settings import RelayInput, RelaySettings
from gscope.cli.config.relay_inputs import silence_limits
from gscope.cli.config.yaml_file import HOST_NAME, ConfiguredHost, invalid_host_name
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.cli.config.effective import Config
    from gscope.cli.config.relay_inputs import InputRequest

_NAMED = re.compile(r"([^=]*)=(.+)", re.DOTALL)


def hosts_by_default(request: InputRequest, devices: tuple[str, ...], config: Config) -> bool:
    """Return whether a run without ``--host`` reads all hosts of the configuration file.

    It does if nothing says what else to read.
    """
    has_devices = any(each.device is not None for each in config.interfaces.values())
    return bool(config.hosts) and not (request.inputs or devices or has_devices)


def host_inputs(request: InputRequest, config: Config) -> RelaySettings:
    """Return the agents as inputs, which do not yet say what to capture.

    Raises:
        UsageError: a host is unknown, named twice, or lacks a token or certificate.
    """
    if request.inputs or request.consumer is not None:
        other = "--from" if request.inputs else "--as"
        message = f"{other} is about logs that sensors and relays serve, and not for --host"
        raise UsageError(message)
    chosen = [_host(text, config.hosts) for text in request.hosts] or list(config.hosts.items())
    names = [name for name, _ in chosen]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"duplicate host: expected each once, got {twice} twice"
        raise UsageError(message)
    inputs = tuple(_input(name, host, request, config) for name, host in chosen)
    return RelaySettings(inputs, "", *silence_limits(request, config))


def _host(text: str, configured: Mapping[str, ConfiguredHost]) -> tuple[str, ConfiguredHost]:
    match = _NAMED.fullmatch(text)
    if match is not None:
        name, place = match.groups()
        if not HOST_NAME.fullmatch(name):
            raise UsageError(invalid_host_name(name))
        return name, ConfiguredHost(TcpAddress.parse(place))
    if text not in configured:
        hint = suggestion(
            text, configured, f"expected NAME=HOST:PORT, such as {text}={text}:9480", is_quoted=True
        )
        message = f"unknown host {text!r}; {hint}"
        raise UsageError(message)
    return text, configured[text]


def _input(name: str, host: ConfiguredHost, request: InputRequest, config: Config) -> RelayInput:
    from gscope.capture.log.remote.credentials import read_tokens, trusted_certificates

    token = host.token_file or config.token_file
    trusted = host.certificates or request.certificates
    address = host.address
    if not address.port:
        message = f"invalid host {name}={address}: expected the port of its agent, got 0"
        raise UsageError(message)
    address.ensure_readable(has_tls=trusted is not None)
    if token is None:
        message = f"the agent of host {name} asks for a token; name its file with --token-file"
        raise UsageError(message)
    read_tokens(token)
    if trusted is not None:
        trusted_certificates(trusted)
    return RelayInput(
        name,
        str(address),
        str(token.absolute()),
        "" if trusted is None else str(trusted.absolute()),
    )
