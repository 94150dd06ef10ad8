"""Google's errors in our words, and addresses: what speaks TLS gets credentials, what does not gets none."""

import asyncio
import socket
import threading
from typing import Any

import pytest
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from support.standins import serve

from rankbeam.transforms.clients.google.channels import Address, address_of
from rankbeam.transforms.clients.google.errors import call_error, refusal, short_message
from rankbeam.transforms.records.errors import FailureKind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (api.ResourceExhausted("x"), FailureKind.QUOTA),
        (api.TooManyRequests("x"), FailureKind.QUOTA),
        (api.DeadlineExceeded("x"), FailureKind.TIMEOUT),
        (api.GatewayTimeout("x"), FailureKind.TIMEOUT),
        (api.Forbidden("x"), FailureKind.PERMISSION),
        (api.Unauthorized("x"), FailureKind.PERMISSION),
        (api.NotFound("x"), FailureKind.NOT_FOUND),
        (api.BadRequest("x"), FailureKind.INVALID),
        (api.ServiceUnavailable("x"), FailureKind.UNAVAILABLE),
        (api.BadGateway("x"), FailureKind.UNAVAILABLE),
        (api.GoogleAPICallError("x"), FailureKind.UNAVAILABLE),
        (auth.RefreshError("invalid_grant"), FailureKind.PERMISSION),
        (auth.RefreshError("busy", retryable=True), FailureKind.UNAVAILABLE),
        (auth.TransportError("no network"), FailureKind.UNAVAILABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_every_error_has_a_kind(error: Any, kind: FailureKind) -> None:
    assert call_error(error).kind is kind


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("discoveryengine.googleapis.com", Address("discoveryengine.googleapis.com:443", True)),
        ("search.example.com:8443", Address("search.example.com:8443", True)),
        ("https://search.example.com", Address("search.example.com:443", True)),
        ("https://localhost:1234/", Address("localhost:1234", True)),
        ("http://search.example.com:8080", Address("search.example.com:8080", False)),
        ("http://[::1]:8080", Address("[::1]:8080", False)),
        ("http://localhost", Address("localhost:80", False)),
    ],
)
def test_schemes_say_who_gets_credentials(endpoint: str, address: Address) -> None:
    assert asyncio.run(address_of(endpoint)) == address


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_on_this_machine_is_asked_whether_it_speaks_tls(tls: bool) -> None:
    with serve("rag_engine", tls=tls) as server:
        assert asyncio.run(address_of(server.address)) == Address(server.address, tls)


def test_a_server_that_says_nothing_speaks_no_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sockets: list[socket.socket] = []
        waiter = threading.Thread(target=lambda: sockets.append(silent.accept()[0]), daemon=True)
        waiter.start()
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        assert asyncio.run(address_of(endpoint)) == Address(endpoint, False)
        waiter.join(10.0)
        sockets[0].close()


def test_tokens_are_hidden_in_messages_that_repeat_their_beginning() -> None:  # trying each of them would take hours
    message = f"no {'-eyJ' * 500_000} and Bearer abc, key=eyJhbGci.eyJzdWIi.c2ln, old-eyJhbGci.e30"
    assert short_message(message).startswith("no -eyJ-eyJ")
    assert short_message(message[-57:]) == "*** key=***, ***"


def test_a_refusal_that_is_nested_too_deeply_is_a_text() -> None:
    assert refusal(FailureKind.UNAVAILABLE, 503, b"[" * 100_000, None).kind is FailureKind.UNAVAILABLE
