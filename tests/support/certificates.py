"""Certificates and tokens for tests of remote logs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a self-signed certificate."""

    certificate: Path
    key: Path


def make_certificate(folder: Path, name: str, address: str = "127.0.0.1") -> Certificate:
    """Return a new certificate for ``name`` and ``address``, valid for a day."""
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name},IP:{address}"),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        ],
        check=True,
        capture_output=True,
    )
    made.key.chmod(0o600)
    return made


def token_file(folder: Path, *tokens: str) -> Path:
    """Return a file with these tokens, or with ``TOKEN``."""
    path = folder / "token"
    path.write_text("".join(f"{token}\n" for token in tokens or (TOKEN,)))
    path.chmod(0o600)
    return path
