"""What a reader reports about a server that it cannot or must not connect to.

One sentence, with the remedy.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.capture.log.remote.test_remote_service import Served
from tests.support.certificates import TOKEN, Certificate, make_certificate
from tests.support.requirements import needs

from gscope.capture.log.remote import connection
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.remote.failures import failure_of
from gscope.errors import DisconnectedError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = needs("openssl")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Certificate]:
    folder = tmp_path_factory.mktemp("certificates")
    return {
        "right": make_certificate(folder, "sensor1"),
        "other": make_certificate(folder, "sensor2"),
        "far": make_certificate(folder, "sensor3", "192.0.2.1"),
    }


@pytest.fixture
def served(
    request: pytest.FixtureRequest, tmp_path: Path, certificates: dict[str, Certificate]
) -> Iterator[Served]:
    served = Served(tmp_path, None if request.param is None else certificates[request.param])
    yield served
    served.close()


def reported(address: TcpAddress, trusted: Certificate | None, token: str = TOKEN) -> StreamError:
    """The error of a first request."""
    pem = None if trusted is None else trusted.certificate.read_bytes()
    with RemoteLog(LogAddress(address, token, pem), "relay") as log:
        with pytest.raises(StreamError) as raised:
            log.describe()
        return raised.value


@pytest.mark.parametrize(
    ("served", "trusted", "message"),
    [
        (
            "right",
            "other",
            "the certificate of {} is not trusted (self-signed certificate); give --tls-ca a file "
            "with it, or with the certificate of the authority that signed it",
        ),
        (
            "far",
            "far",
            "the certificate of {} is not one of 127.0.0.1; connect by a name that is in the "
            "certificate, or add this one to it (subjectAltName)",
        ),
        (
            None,
            "right",
            "{} does not use TLS; start it with --tls-certificate and --tls-key, or leave out "
            "--tls-ca on loopback",
        ),
    ],
    indirect=["served"],
)
def test_a_server_that_must_not_be_read_is_refused(
    served: Served, certificates: dict[str, Certificate], trusted: str, message: str
) -> None:
    error = reported(served.place, certificates[trusted])
    assert str(error) == message.format(served.place)
    assert not isinstance(error, DisconnectedError)


@pytest.mark.parametrize("served", ["right"], indirect=True)
def test_a_wrong_token_is_refused(served: Served, certificates: dict[str, Certificate]) -> None:
    error = reported(served.place, certificates["right"], "f" * 32)
    assert str(error).startswith(f"{served.place} refused the token: the token is wrong")
    assert not isinstance(error, DisconnectedError)


@pytest.mark.parametrize("served", ["right"], indirect=True)
def test_a_reader_without_tls_may_be_what_is_wrong(served: Served) -> None:
    error = reported(served.place, None)
    assert str(error) == (
        f"{served.place} does not answer: it closed the connection; if it uses TLS, name its "
        "certificate with --tls-ca"
    )
    assert isinstance(error, DisconnectedError)


def test_a_server_that_is_not_there_may_come(
    certificates: dict[str, Certificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CALL_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = TcpAddress("127.0.0.1", silent.getsockname()[1])
        error = reported(place, certificates["right"])
        assert str(error) == f"{place} does not answer: timed out"
    error = reported(place, certificates["right"])
    assert str(error) == f"{place} does not answer: connection refused"
    assert isinstance(error, DisconnectedError)


@pytest.mark.parametrize(
    ("text", "sentence", "is_refused"),
    [
        (
            "last error: UNKNOWN: certificate verify failed: certificate has expired",
            "the certificate of sensor1:9470 is not trusted (certificate has expired); renew it, "
            "or set the clock",
            True,
        ),
        (
            "Flight returned unavailable error, with message: errors resolving sensor1:9470: x",
            "sensor1:9470 does not answer: unknown host",
            False,
        ),
        (
            "Flight returned unavailable error, with message: failed to connect to all addresses; "
            "last error: UNKNOWN: ipv4:192.0.2.1:9470: No route to host",
            "sensor1:9470 does not answer: no route to host",
            False,
        ),
        ("", "sensor1:9470 does not answer: ", False),
    ],
)
def test_reports_of_grpc_become_sentences(text: str, sentence: str, is_refused: bool) -> None:
    failure = failure_of(text, LogAddress(TcpAddress("sensor1", 9470), certificates=b"pem"))
    assert (failure.sentence, failure.is_refused) == (sentence, is_refused)
