"""Answers of a host on their way to another one: files over TLS, with a token.

    python -m benchmarks.partitioning.ship serve FOLDER NAME ADDRESS PORT
    python -m benchmarks.partitioning.ship fetch FOLDER INTO NAME=ADDRESS:PORT …

``FOLDER`` has ``token``, ``ca.pem``, and for a server ``NAME.crt``, ``NAME.key`` and the folder ``out-NAME``.
A server sends every file in that folder to one client, and ends.
"""

from __future__ import annotations

import hmac
import socket
import ssl
import struct
import sys
from pathlib import Path

_HEAD = struct.Struct(">HQ")
_CHUNK = 1 << 20


def serve(folder: Path, name: str, address: str, port: int) -> None:
    """Send the files of a host to the first client with the token."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    token = (folder / "token").read_bytes().strip()
    with socket.create_server((address, port)) as listener:
        print("listening", flush=True)
        while True:
            accepted, _ = listener.accept()
            with context.wrap_socket(accepted, server_side=True) as client:
                if not hmac.compare_digest(_read(client, len(token)), token):
                    continue
                for path in sorted((folder / f"out-{name}").rglob("*.arrow")):
                    shown = path.name.encode()
                    client.sendall(_HEAD.pack(len(shown), path.stat().st_size) + shown)
                    with path.open("rb") as file:
                        client.sendfile(file)
                client.sendall(_HEAD.pack(0, 0))
                _read(client, 1)
            return


def fetch(folder: Path, into: Path, places: list[str]) -> None:
    """Write the files of all hosts to folders below ``into``."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    for place in places:
        name, _, where = place.partition("=")
        address, _, port = where.rpartition(":")
        target = into / name
        target.mkdir(parents=True)
        with (
            socket.create_connection((address, int(port))) as connected,
            context.wrap_socket(connected, server_hostname=address) as server,
        ):
            server.sendall((folder / "token").read_bytes().strip())
            while True:
                letters, size = _HEAD.unpack(_read(server, _HEAD.size))
                if not letters:
                    break
                with (target / _read(server, letters).decode()).open("wb") as file:
                    while size:
                        chunk = server.recv(min(size, _CHUNK))
                        size -= len(chunk)
                        file.write(chunk)
            server.sendall(b"\0")


def _read(connection: ssl.SSLSocket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        chunk = connection.recv(size - len(found))
        if not chunk:
            message = "the connection ended"
            raise EOFError(message)
        found += chunk
    return found


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        fetch(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
