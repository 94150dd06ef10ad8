"""Models behind proxies, and with certificates and connections that fail: messages say what to do."""

import asyncio
import datetime
import gc
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.model_calls import question
from support.odd_server import saying, served
from support.standins import certificates

from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.errors import CallError, FailureKind, Unreachable


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "the-secret-key")


def model(kind: str, url: str) -> ModelParameters:
    if kind == "openai":
        return OpenAi(base_url=f"{url}/v1", model="m-001")
    return Gemini(model="gemini-x-001", api_key="${env:SOME_KEY}", api_endpoint=url)


async def error_of(kind: str, url: str) -> CallError:
    connection = await model(kind, url).connect()
    try:
        (error,) = await asyncio.gather(connection.call(question("who?").payload(), 60.0, 1), return_exceptions=True)
        gc.collect()  # it reports what was left open
    finally:
        await connection.close()
    assert isinstance(error, CallError)
    return error


@pytest.mark.long
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize("status", ["407 Proxy Authentication Required", "302 Found", "511 Log in"])
def test_a_proxy_that_refuses_makes_every_service_unreachable_and_is_named(
    kind: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> CallError:
        async with served(saying(b"<html>Log in</html>", status)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:s3cr3t@127.0.0.1:{urlsplit(proxy.url).port}")
            return await error_of(kind, "https://model.test")

    error = asyncio.run(run())
    assert isinstance(error, Unreachable)
    assert status[:3] in error.message
    assert "the environment names a proxy (HTTPS_PROXY)" in error.message
    assert "s3cr3t" not in error.message


@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize(
    ("days", "is_trusted", "advice"), [(2, False, "name its file in SSL_CERT_FILE"), (-1, True, "expired")]
)
def test_a_certificate_is_to_be_trusted_only_if_that_helps(
    kind: str, days: int, is_trusted: bool, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, private_key = certificates.write(tmp_path, datetime.timedelta(days=days))
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", certificate)

    async def run() -> CallError:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, private_key)
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context) as server:
            return await error_of(kind, f"https://localhost:{server.sockets[0].getsockname()[1]}")

    error = asyncio.run(run())
    assert isinstance(error, Unreachable)
    assert advice in error.message
    assert ("SSL_CERT_FILE" in error.message) is not is_trusted


def test_a_reply_of_gemini_that_breaks_off_leaves_no_connection_open(caplog: pytest.LogCaptureFixture) -> None:
    async def cut(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        writer.close()

    async def run() -> CallError:
        async with served(cut) as server:
            return await error_of("gemini", server.url)

    error = asyncio.run(run())
    assert error.kind is FailureKind.UNAVAILABLE
    assert "Unclosed" not in caplog.text
