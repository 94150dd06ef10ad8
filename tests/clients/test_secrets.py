"""Secrets by reference; Secret Manager is Google's own client, talking gRPC to a server of this test."""

import asyncio
import html
import json
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import grpc
import pytest
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import secretmanager
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import SecretManagerServiceGrpcTransport
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.clients.secrets import LEAST_SECRET, REFERENCE, Secrets, check_references, resolve
from rankbeam.transforms.records.errors import InputError

SECRETS = {
    "projects/p/secrets/key/versions/latest": b"  from the manager\n",
    "projects/p/secrets/key/versions/2": b"the second",
    "projects/p/secrets/empty/versions/1": b"\n",
    "projects/p/secrets/bytes/versions/1": b"\xff\xfe",
}


def _access(request: secretmanager.AccessSecretVersionRequest, context: grpc.ServicerContext) -> object:
    if request.name not in SECRETS:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such secret")
    return secretmanager.AccessSecretVersionResponse(payload={"data": SECRETS[request.name]})


@pytest.fixture
def manager() -> Iterator[Callable[[], object]]:
    """Makes clients of a Secret Manager that keeps KEPT."""
    handler = grpc.unary_unary_rpc_method_handler(
        _access,
        request_deserializer=secretmanager.AccessSecretVersionRequest.deserialize,
        response_serializer=secretmanager.AccessSecretVersionResponse.serialize,
    )
    name = "google.cloud.secretmanager.v1.SecretManagerService"
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, {"AccessSecretVersion": handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def client() -> object:
        transport = SecretManagerServiceGrpcTransport(channel=grpc.insecure_channel(f"127.0.0.1:{port}"))
        return secretmanager.SecretManagerServiceClient(transport=transport)

    yield client
    server.stop(None)


def reference(name: str) -> str:
    return f"${{secret:projects/p/secrets/{name}}}"


def test_values_come_from_the_environment_and_from_secret_manager(
    manager: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RB_KEY", "from the environment\n")
    references = ["${env:RB_KEY}", reference("key/versions/latest"), reference("key/versions/2")]
    values = asyncio.run(resolve(dict.fromkeys(references, "the url"), manager))
    assert list(values.values.values()) == ["from the environment", "from the manager", "the second"]
    assert values.hide("a from the manager, the second") == "a ***, ***"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone/versions/1", "which Secret Manager refused: 404 no such secret; it must exist"),
        ("empty/versions/1", "which is empty"),
        ("bytes/versions/1", "which is not text"),
    ],
)
def test_a_secret_without_a_value_says_which_and_what_to_do(
    manager: Callable[[], object], name: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        asyncio.run(resolve({reference(name): "header Authorization"}, manager))
    assert str(caught.value).startswith(f"header Authorization needs projects/p/secrets/{name}")
    assert message in str(caught.value)


def test_without_credentials_it_says_how_to_log_in() -> None:
    def without_credentials() -> object:
        raise DefaultCredentialsError("no credentials were found")

    with pytest.raises(InputError, match="gcloud auth application-default login"):
        asyncio.run(resolve({reference("key/versions/2"): "the url"}, without_credentials))


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_variable_without_a_value_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("RB_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("RB_KEY", value)
    with pytest.raises(InputError, match="parameter key needs the environment variable RB_KEY"):
        asyncio.run(resolve({"${env:RB_KEY}": "parameter key"}))


@pytest.mark.parametrize(
    "text",
    ["${HOME}", "${env:}", "${env:1A}", "${env:A", "${ENV:A}", "${secret:key}", "${secret:projects/p/secrets/s}", "${"],
)
def test_what_only_looks_like_a_reference_is_refused_unseen(text: str) -> None:
    with pytest.raises(ValueError, match="is not a reference") as caught:
        check_references(f"s3cr3t {text}")
    assert "s3cr3t" not in str(caught.value)


def test_references_are_found_in_a_text() -> None:
    text = "Bearer ${env:A_1}:${secret:projects/42/secrets/my-key/versions/latest} $5 {query}"
    check_references(text)
    assert REFERENCE.findall(text) == ["${env:A_1}", "${secret:projects/42/secrets/my-key/versions/latest}"]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="*<>"), min_size=1))
@example("sk/1+2&3=")
def test_a_value_is_hidden_in_each_spelling(value: str) -> None:
    secrets = Secrets({"${env:A}": value})
    escaped = json.dumps(value)[1:-1]
    encoded = quote(value, safe="")
    lower = re.sub("%..", lambda match: match[0].lower(), encoded)
    slashes, signs = escaped.replace("/", "\\/"), escaped.replace("+", "\\u002B").replace("&", "\\u0026")
    for spelled in (value, encoded, lower, escaped, slashes, signs, html.escape(value)):
        assert set(secrets.hide(spelled)) == {"*"}
    hidden = secrets.hide(value) if len(value) >= LEAST_SECRET else value
    assert secrets.hide_in([{"<": value, value: 1}, None]) == [{"<": hidden, hidden: 1}, None]


def test_a_short_value_is_a_word_of_answers_and_hidden_in_messages_alone() -> None:
    secrets = Secrets({"${env:A}": "test", "${env:B}": "long enough"})
    assert secrets.hide_in({"a test": "of long enough"}) == {"a test": "of ***"}
    assert secrets.hide("a test") == "a ***"


def test_of_two_values_the_longer_is_hidden_whole() -> None:
    assert Secrets({"${env:A}": "abc", "${env:B}": "abcdef"}).hide("abcdef abc") == "*** ***"


def test_values_are_not_shown_and_do_not_travel() -> None:
    secrets = Secrets({"${env:A}": "s3cr3t"})
    assert repr(secrets) == "Secrets(${env:A})"
    with pytest.raises(TypeError, match="stay in the process"):
        pickle.dumps(secrets)
