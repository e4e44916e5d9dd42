"""Tokens, keys and certificates, and files that must not be used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.requirements import needs, needs_root

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.log.remote.credentials import (
    MAX_FILE_BYTES,
    Tokens,
    read_tokens,
    server_context,
    trusted_certificates,
)
from gscope.capture.log.remote.listener import ensure_protected, open_socket
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_all_tokens_of_the_file_are_accepted_and_no_other(tmp_path: Path) -> None:
    other = "f" * 40
    tokens = Tokens(read_tokens(token_file(tmp_path, TOKEN, "", other)))
    accepted = [tokens.accept(each) for each in (TOKEN, other, "", TOKEN[:-1], TOKEN + "0", "é")]
    assert accepted == [True, True, False, False, False, False]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o602])
def test_a_token_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    path = token_file(tmp_path)
    path.chmod(mode)
    if mode == 0o640 or mode == 0o660:
        os.chown(path, -1, 65_534)
    with pytest.raises(UsageError, match=f"other users can read it .mode {mode:04o}.*chmod 600"):
        read_tokens(path)


@needs_root
def test_a_token_of_another_user_is_not_used(tmp_path: Path) -> None:
    path = token_file(tmp_path)
    os.chown(path, 65_534, -1)
    with pytest.raises(UsageError, match="belongs to another user"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("short", "invalid token"),
        ("a" * 600, "invalid token"),
        ("with spaces in it, long enough", "invalid token"),
        ("é" * 20, "invalid token"),
        ("a" * (MAX_FILE_BYTES + 1), "too large"),
    ],
)
def test_wrong_token_files_are_refused_without_their_contents(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        read_tokens(token_file(tmp_path, text))
    assert not text or text[:100] not in str(refusal.value)


def test_a_missing_token_and_a_pipe_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_tokens(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(UsageError, match="not a regular file"):
        read_tokens(tmp_path / "pipe")


@needs("openssl")
def test_a_certificate_needs_its_own_key(tmp_path: Path) -> None:
    one, other = make_certificate(tmp_path, "one"), make_certificate(tmp_path, "other")
    server_context(one.certificate, one.key)
    assert trusted_certificates(one.certificate) == one.certificate.read_bytes()
    with pytest.raises(UsageError, match=r"cannot use the certificate .*one\.crt with the key"):
        server_context(one.certificate, other.key)
    with pytest.raises(UsageError, match="holds no certificate"):
        trusted_certificates(one.key)
    one.key.chmod(0o644)
    with pytest.raises(UsageError, match=r"the key .*one.key is not used: other users can read it"):
        server_context(one.certificate, one.key)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "sensor1", "::"])
def test_plain_text_is_refused_where_other_hosts_can_connect(host: str) -> None:
    with pytest.raises(UsageError, match=r"without TLS.*--tls-certificate"):
        ensure_protected(TcpAddress(host, 1), has_tls=False)
    ensure_protected(TcpAddress(host, 1), has_tls=True)
    ensure_protected(TcpAddress("127.0.0.1", 1), has_tls=False)


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with open_socket(TcpAddress("127.0.0.1", 0)) as first:
        taken = TcpAddress("127.0.0.1", first.getsockname()[1])
        with pytest.raises(UsageError, match=f"cannot listen on {taken}: address already in use"):
            open_socket(taken)
    with pytest.raises(UsageError, match=r"cannot listen on no-such-host\.invalid:1: "):
        open_socket(TcpAddress("no-such-host.invalid", 1))
