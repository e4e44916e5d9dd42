"""``gscope.yaml``: settings, interfaces and interface sets; every error names the line."""

from __future__ import annotations

import re
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from gscope.capture.settings import LIVE_SKEW_NS, SOURCES, TIMESTAMPS, DeviceSettings
from gscope.cli.config.quantities import parse_count, parse_duration, parse_size
from gscope.cli.config.setting import FILE
from gscope.cli.config.settings import ADDRESS, DEFAULT_SKEW_NS, SETTINGS, SWITCH
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import yaml

    from gscope.capture.log.remote.address import TcpAddress

_BY_KEY = {setting.key: setting for setting in SETTINGS}
_SECTIONS = tuple(
    dict.fromkeys(setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key)
)
_LISTS = ("interfaces", "sets", "udf", "hosts")
_LARGEST_FILE = 1 << 20

HOST_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""The names of hosts: those of their interfaces follow behind a dot."""


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts one of some words, and raises ValueError otherwise."""

    def parse(text: str) -> str:
        if text not in allowed:
            message = f"invalid value {text!r}: expected one of {', '.join(allowed)}"
            raise ValueError(message)
        return text

    return parse


_DEVICE_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "device": ("device", str),
    "snaplen": ("snaplen", parse_count),
    "ring": ("ring_bytes", parse_size),
    "promiscuous": ("is_promiscuous", SWITCH.parse),
    "filter": ("filter", str),
    "fanout": ("fanout", parse_count),
    "source": ("source", _one_of(SOURCES)),
    "timestamps": ("timestamps", _one_of(TIMESTAMPS)),
    "kernel_filter": ("has_kernel_filter", SWITCH.parse),
}
"""Keys of a live interface: the attribute of ``DeviceSettings`` and the reader of each."""


@dataclass(frozen=True, slots=True)
class ConfiguredInterface:
    """An interface of the file.

    Attributes:
        files: captures, read in that order; () if the file gives none.
        skew_ns: see ``InterfaceSettings``; None for the default.
        device: the device to capture on; None if the file gives none.
        is_latent: see ``InterfaceSettings``.
    """

    files: tuple[str, ...] = ()
    skew_ns: int | None = None
    device: DeviceSettings | None = None
    is_latent: bool = False

    @property
    def effective_skew_ns(self) -> int:
        """Return the skew in nanoseconds, also where it is not given."""
        default = DEFAULT_SKEW_NS if self.device is None else LIVE_SKEW_NS
        return default if self.skew_ns is None else self.skew_ns


@dataclass(frozen=True, slots=True)
class ConfiguredHost:
    """A host of the file, on which an agent listens.

    Attributes:
        address: where it listens.
        token_file: the file with the token to present; None for ``token_file`` of all hosts.
        certificates: the file with the certificates to trust; None for --tls-ca.
    """

    address: TcpAddress
    token_file: Path | None = None
    certificates: Path | None = None


@dataclass(frozen=True, slots=True)
class FileContents:
    """The contents of a file.

    Attributes:
        interfaces: the interfaces, by name.
        values: the parsed values, by key of the setting.
        places: ``file:line`` of each value.
        sets: the interface sets, by name.
        udf: the files of user code.
        hosts: the hosts whose agents can be asked to capture, by name.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    interfaces: Mapping[str, ConfiguredInterface] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    udf: tuple[str, ...] = ()
    hosts: Mapping[str, ConfiguredHost] = field(default_factory=dict)


def read_file(path: Path) -> FileContents:
    """Return the contents of the file at ``path``.

    Raises:
        UsageError: the file is unreadable or not YAML, a key is unknown or a value invalid.
    """
    import yaml

    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        message = f"cannot read configuration file {path}: {os_reason(error)}"
        raise UsageError(message) from error
    except UnicodeDecodeError as error:
        message = f"configuration file {path} is not UTF-8 text"
        raise UsageError(message) from error
    if len(text) > _LARGEST_FILE:
        message = f"configuration file {path} is larger than {_LARGEST_FILE} characters"
        raise UsageError(message)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        message = f"{path}:{line}: invalid YAML: {error.problem}"
        raise UsageError(message) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = f"configuration file {path} is not valid YAML: {str(error).splitlines()[0]}"
        raise UsageError(message) from error
    return _Reader(path).contents(root)


@dataclass(slots=True)
class _Reader:
    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def contents(self, root: yaml.Node | None) -> FileContents:
        interfaces: dict[str, ConfiguredInterface] = {}
        sets: dict[str, tuple[str, ...]] = {}
        udf: tuple[str, ...] = ()
        hosts: dict[str, ConfiguredHost] = {}
        plain = tuple(key for key in _BY_KEY if "." not in key)
        for key, node in self._entries(root, "", (*_SECTIONS, *plain, *_LISTS)):
            if key == "interfaces":
                interfaces = {name: self._interface(n) for name, n in self._entries(node, key)}
            elif key == "sets":
                sets = {name: self._names(n) for name, n in self._entries(node, key)}
            elif key == "udf":
                udf = self._names(node)
            elif key == "hosts":
                hosts = {name: self._host(name, n) for name, n in self._entries(node, key)}
            elif key in plain:
                self._set(key, node)
            else:
                names = tuple(k.partition(".")[2] for k in _BY_KEY if k.startswith(f"{key}."))
                for name, value in self._entries(node, key, names):
                    self._set(f"{key}.{name}", value)
        return FileContents(self.values, self.places, interfaces, sets, udf, hosts)

    def _set(self, key: str, node: yaml.Node) -> None:
        parse = _BY_KEY[key].parse
        if _BY_KEY[key].kind.is_list:
            self.values[key] = self._lines(node, parse)
        elif _BY_KEY[key].kind.is_repeated:
            found: dict[str, str] = {}
            for name, value in self._entries(node, key):
                found |= self._parsed(value, partial(_entry, parse, name))
            self.values[key] = found
        else:
            self.values[key] = self._parsed(node, parse)
        self.places[key] = self._place(node)

    def _lines(self, node: yaml.Node, parse: Callable[[str], Any]) -> Any:
        """Return the value of a list, of which each item is a line of the setting's text."""
        import yaml

        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in items:
            self._parsed(item, parse)
        try:
            return parse("\n".join(self._text(item) for item in items))
        except ValueError as error:
            raise self._wrong(node, str(error)) from error

    def _interface(self, node: yaml.Node) -> ConfiguredInterface:
        files: tuple[str, ...] = ()
        skew_ns: int | None = None
        is_latent = False
        live: dict[str, Any] = {}
        allowed = ("file", "files", "skew", "latent", *_DEVICE_KEYS)
        for key, value in self._entries(node, "an interface", allowed):
            if key == "skew":
                skew_ns = self._parsed(value, parse_duration)
            elif key == "latent":
                is_latent = self._parsed(value, SWITCH.parse)
            elif key in _DEVICE_KEYS:
                attribute, parse = _DEVICE_KEYS[key]
                live[attribute] = self._parsed(value, parse)
            elif files:
                raise self._wrong(value, "file and files are mutually exclusive")
            else:
                files = (self._text(value),) if key == "file" else self._names(value)
        if live and "device" not in live:
            keys = [key for key, (attribute, _) in _DEVICE_KEYS.items() if attribute in live]
            raise self._wrong(
                node, f"{', '.join(keys)}: allowed only with a device, such as `device: eth0`"
            )
        if live and files:
            raise self._wrong(node, "device and files are mutually exclusive")
        try:
            device = DeviceSettings(**live) if live else None
        except UsageError as error:
            raise self._wrong(node, str(error)) from error
        return ConfiguredInterface(files, skew_ns, device, is_latent)

    def _host(self, name: str, node: yaml.Node) -> ConfiguredHost:
        found: dict[str, Any] = {}
        readers: dict[str, tuple[str, Callable[[str], Any]]] = {
            "address": ("address", ADDRESS.parse),
            "token_file": ("token_file", FILE.parse),
            "tls_ca": ("certificates", FILE.parse),
        }
        if not HOST_NAME.fullmatch(name):
            raise self._wrong(node, invalid_host_name(name))
        for key, value in self._entries(node, "a host", readers):
            attribute, parse = readers[key]
            found[attribute] = self._parsed(value, parse)
        if "address" not in found:
            raise self._wrong(node, f"host {name} lacks an address, such as `address: {name}:9480`")
        return ConfiguredHost(**found)

    def _names(self, node: yaml.Node) -> tuple[str, ...]:
        import yaml

        if isinstance(node, yaml.SequenceNode) and node.value:
            return tuple(self._text(item) for item in node.value)
        raise self._wrong(node, "expected a list such as [a, b]")

    def _entries(
        self, node: yaml.Node | None, where: str, allowed: Iterable[str] | None = None
    ) -> Iterable[tuple[str, yaml.Node]]:
        """Yield the entries of a mapping; none of an empty value."""
        import yaml

        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
            return
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, f"expected entries `name: value`{_below(where)}")
        seen: set[str] = set()
        for key_node, value in node.value:
            key = self._text(key_node)
            if allowed is not None and key not in allowed:
                raise self._wrong(
                    key_node, f"unknown key {key!r}{_below(where)}; {_hint(key, allowed)}"
                )
            if key in seen:
                raise self._wrong(key_node, f"{key!r} is given twice{_below(where)}")
            seen.add(key)
            yield key, value

    def _text(self, node: yaml.Node) -> str:
        import yaml

        if isinstance(node, yaml.ScalarNode) and node.value:
            return str(node.value)
        raise self._wrong(node, "expected a single value")

    def _parsed(self, node: yaml.Node, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(self._text(node))
        except ValueError as error:
            raise self._wrong(node, str(error)) from error

    def _wrong(self, node: yaml.Node, message: str) -> UsageError:
        return UsageError(f"{self._place(node)}: {message}")

    def _place(self, node: yaml.Node) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"


def _entry(parse: Callable[[str], dict[str, str]], name: str, text: str) -> dict[str, str]:
    """Return an entry of a mapping, read as a line ``NAME=VALUE``."""
    return parse(f"{name}={text}")


def invalid_host_name(name: str) -> str:
    """Return what to report of a name that no host can have."""
    return (
        f"invalid host {name!r}: expected up to 64 letters, digits, '_' and '-', beginning with a "
        "letter or '_'"
    )


def _below(where: str) -> str:
    return f" below {where}" if where else ""


_OPTIONS = {
    **dict.fromkeys(("from", "input", "inputs"), "--from"),
    "ca": "--tls-ca",
    "as": "--as",
    "absent_after": "--absent-after",
}
"""Options that are not settings of the file, by the keys that users try."""


def _hint(key: str, allowed: Iterable[str]) -> str:
    if option := _OPTIONS.get(key):
        variable = f"GSCOPE_{option[2:].replace('-', '_').upper()}"
        return f"it is not in the file: give {option}, or set ${variable}"
    return suggestion(key, allowed, f"expected one of {', '.join(allowed)}", is_quoted=True)
