"""Destinations of rows beyond this machine's files, as ``--to`` names them."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from gscope.cli.config.setting import Kind
from gscope.queries.did_you_mean import suggestion
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_SPOOL_BYTES = 256 << 20

MIN_SPOOL_BYTES = 1 << 20
"""Room for several segments of the spool."""

WEBHOOKS = ("https", "http")
SYSLOGS: Mapping[str, int] = {"syslog": 514, "syslog+tcp": 601, "syslog+tls": 6514}
"""Transports of syslog with their ports: UDP, and TCP without and with TLS."""

KAFKA = "kafka"
_NAMES = (*WEBHOOKS, *SYSLOGS, KAFKA)
SCHEMES = tuple(f"{name}://" for name in _NAMES)
_EXPECTED = "expected a URL such as https://HOST/PATH or syslog+tcp://HOST:PORT"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKERS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?")
_SYSLOG_OPTIONS = ("facility", "severity")
FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron"),
    *("authpriv", "ftp", "ntp", "audit", "alert", "clock"),
    *(f"local{number}" for number in range(8)),
)
"""Facilities of syslog in the order of their numbers (RFC 5424, 6.2.1)."""
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
"""Severities of syslog in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where rows are sent.

    Attributes:
        url: the URL as it was given, perhaps with a password.
        scheme: the scheme of the URL.
        host: the host, without brackets; of Kafka all brokers with their ports.
        port: the port, that of the scheme by default; 0 of Kafka.
        path: the path of a webhook with its query, from the first slash; of Kafka the topic.
        credentials: user and password of a webhook, as ``USER:PASSWORD``; "" for none.
        options: what follows ``?`` in the URL of a syslog server or of Kafka.
    """

    url: str
    scheme: str
    host: str
    port: int
    path: str = ""
    credentials: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the URL without what may be secret: credentials, and the path of a webhook."""
        if self.scheme == KAFKA:
            return f"{self.scheme}://{self.host}/{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = f"{self.scheme}://{host}:{self.port}"
        return f"{shown}/…" if self.path.strip("/") else shown


def parse_destination(text: str) -> Destination:
    """Return the destination that a URL names.

    Raises:
        ValueError: the URL is invalid; the message says what is expected.
    """
    url = text.strip()
    if any(character <= " " for character in url):
        message = f"invalid destination {text!r}: {_EXPECTED}"
        raise ValueError(message)
    try:
        parts = urlsplit(url)
        if parts.scheme == KAFKA:
            return _kafka(url, parts)
        port = parts.port
    except ValueError as error:
        if str(error).startswith("invalid destination"):
            raise
        message = f"invalid destination {text!r}: {error}"
        raise ValueError(message) from error
    if parts.scheme not in _NAMES:
        hint = suggestion(parts.scheme, _NAMES, _EXPECTED, is_quoted=True)
        message = f"invalid destination {text!r}: unknown scheme; {hint}"
        raise ValueError(message)
    if not parts.hostname or port == 0:
        message = f"invalid destination {text!r}: {_EXPECTED}"
        raise ValueError(message)
    if parts.scheme in WEBHOOKS:
        return _webhook(url, parts, parts.hostname, port)
    return _syslog(url, parts, parts.hostname, port)


def _webhook(url: str, parts: SplitResult, host: str, port: int | None) -> Destination:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    _, is_given, _ = parts.netloc.rpartition("@")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    credentials = f"{user}:{password}" if is_given else ""
    default = 443 if parts.scheme == "https" else 80
    return Destination(url, parts.scheme, host, port or default, path, credentials)


def _syslog(url: str, parts: SplitResult, host: str, port: int | None) -> Destination:
    if parts.path.strip("/") or parts.username is not None or parts.fragment:
        message = f"invalid destination {url!r}: expected {parts.scheme}://HOST:PORT"
        raise ValueError(message)
    allowed = (*_SYSLOG_OPTIONS, "ca") if parts.scheme == "syslog+tls" else _SYSLOG_OPTIONS
    options = _options(url, parts, allowed)
    for name, value in options.items():
        words = {"facility": FACILITIES, "severity": SEVERITIES}.get(name)
        if words is not None and value not in words:
            hint = suggestion(value, words, f"expected one of {', '.join(words)}", is_quoted=True)
            message = f"invalid destination {url!r}: unknown {name} {value!r}; {hint}"
            raise ValueError(message)
    return Destination(url, parts.scheme, host, port or SYSLOGS[parts.scheme], options=options)


def _kafka(url: str, parts: SplitResult) -> Destination:
    topic = parts.path.strip("/")
    brokers = parts.netloc.split(",")
    if not _TOPIC.fullmatch(topic) or not all(map(_BROKERS.fullmatch, brokers)) or parts.fragment:
        message = f"invalid destination {url!r}: expected kafka://BROKER[:PORT][,BROKER…]/TOPIC"
        raise ValueError(message)
    options = _options(url, parts, ("key", "config"))
    return Destination(url, parts.scheme, parts.netloc, 0, topic, options=options)


def _options(url: str, parts: SplitResult, allowed: Sequence[str]) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in allowed:
            otherwise = f"expected one of {', '.join(allowed)}"
            hint = suggestion(name, allowed, otherwise, is_quoted=True)
            message = f"invalid destination {url!r}: unknown option {name!r}; {hint}"
            raise ValueError(message)
    return options


def parse_destinations(text: str) -> tuple[Destination, ...]:
    """Return the destinations of lines with a URL each.

    Raises:
        ValueError: a line is invalid; the message says what is expected.
    """
    found = [parse_destination(line) for line in text.splitlines() if line.strip()]
    urls = [each.url for each in found]
    for url in urls:
        if urls.count(url) > 1:
            message = f"the destination {url} is given twice"
            raise ValueError(message)
    return tuple(found)


def show_destinations(destinations: tuple[Destination, ...]) -> str:
    """Return lines that ``parse_destinations`` reads."""
    return "\n".join(each.url for each in destinations)


def without_secrets(words: Sequence[str], destinations: Sequence[Destination]) -> tuple[str, ...]:
    """Return the words of a command line with names of destinations for their URLs.

    Args:
        words: the command line.
        destinations: those that it, or another origin of settings, gives.
    """
    # Of two URLs of which one begins the other, the longer one is replaced first.
    for each in sorted(destinations, key=lambda found: len(found.url), reverse=True):
        words = [word.replace(each.url, each.name) for word in words]
    return tuple(words)


DESTINATIONS = Kind("URL", parse_destinations, show_destinations, is_repeated=True, is_list=True)
