"""RAG Engine: its stand-in, TLS, credentials, and parameters that cannot work."""

import asyncio
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.connections import call
from support.data import REPOSITORY
from support.rag_engine_calls import CORPUS, retriever
from support.standins import serve

from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Ranking


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_stand_in_is_asked(scheme: str) -> None:
    answers = {"who?": [{"id": "MED-10", "score": 0.2, "text": "one"}, {"id": "v1.2", "score": 0.3, "text": "two"}]}
    with serve("rag_engine", answers=answers) as server:
        asking = retriever(api_endpoint=scheme + server.address)
        (answer,) = asyncio.run(call(asking, payload_of("who?", SearchDepth(2))))
        assert isinstance(answer, str)
        assert asking.read(answer) == Ranking(("MED-10", "v1.2"), (0.2, 0.3), ("one", "two"))


def test_more_calls_than_a_connection_carries_are_in_flight_at_once() -> None:
    with serve("rag_engine", latency_s=5.0, streams_per_connection=100) as server:
        payloads = [payload_of(f"question {number}", SearchDepth(3)) for number in range(250)]
        outcomes = asyncio.run(call(retriever(api_endpoint=server.address), *payloads, timeout_s=60.0))
        stats = server.stats()
    assert [type(outcome) for outcome in outcomes] == [str] * 250
    assert stats.most_open == 250
    assert stats.most_streams_per_connection <= 100
    assert (stats.calls, len(stats.queries)) == (250, 250)


OVER_TLS = f"""
import asyncio, sys
from rankbeam.transforms.clients.retrievers.rag_engine import RagEngine
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.records.calls.steps import SearchDepth

async def main(address):
    retriever = RagEngine(corpus={CORPUS!r}, api_endpoint=address)
    connection = await retriever.connect()
    print(retriever.read((await connection.call(payload_of("who?", SearchDepth(1)), 30.0, 1)).answer).doc_ids)
    await connection.close()

for address in sys.argv[1:]:
    asyncio.run(main(address))
"""


@pytest.mark.long
def test_credentials_go_to_a_server_with_tls(tmp_path: Path) -> None:
    with serve("rag_engine", answers={"who?": [{"id": "a", "score": 0.1}]}, tls=True) as server:
        assert server.certificate is not None
        environment = {
            **os.environ,
            "GOOGLE_APPLICATION_CREDENTIALS": str(key_file(tmp_path)),
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": server.certificate,  # gRPC reads it once: hence a process of its own
        }
        command = [sys.executable, "-c", OVER_TLS, server.address, f"https://{server.address}"]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120)
    # Over TLS the stand-in refuses calls without an access token.
    assert (done.stdout, done.returncode) == ("('a',)\n('a',)\n", 0), done.stderr


def test_no_credentials_are_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(InputError, match="gcloud auth application-default login"):
        asyncio.run(retriever().connect())


def test_a_key_file_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(InputError, match=r"missing\.json"):
        asyncio.run(retriever().connect())


def key_file(folder: Path) -> Path:
    """A service account's key, made up."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    path = folder / "key.json"
    account = {"client_email": "a@p.iam.gserviceaccount.com", "token_uri": "http://127.0.0.1:1/token"}
    path.write_text(json.dumps({"type": "service_account", "project_id": "p", "private_key": pem, **account}))
    return path


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"corpus": "42"}, "give its full name: projects/PROJECT/locations/LOCATION/ragCorpora/CORPUS"),
        ({"corpus": CORPUS + "/x"}, "give its full name"),
        ({"corpus": CORPUS + "\n"}, "give its full name"),
        ({"rank_service": "a", "llm_ranker": "b"}, "exclude each other"),
        ({"vector_similarity_threshold": math.nan}, "finite number"),
        ({"rag_file_ids": ("",)}, "at least 1 character"),
        ({"doc_id": {"pattern": "("}}, "is not a regular expression"),
        ({"api_endpoint": "ftp://x"}, "is not an address"),
        ({"api_endpoint": "user@host"}, "is not an address"),
        ({"api_endpoint": "host:99999"}, "is not an address"),
        ({"api_endpoint": "http://host/path"}, "is not an address"),
        ({"top_k": 3}, "top_k"),
    ],
)
def test_what_cannot_work_is_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as error:
        retriever(**parameters)
    assert problem in str(error.value)


def test_rerankers_see_only_what_was_retrieved() -> None:
    def keys(**parameters: Any) -> set[str]:
        asking = retriever(**parameters)
        return {asking.keys("rag_engine", ["who?"], SearchDepth(top_k))[0] for top_k in (5, 10)}

    assert [len(keys()), len(keys(rank_service="a")), len(keys(llm_ranker="b"))] == [1, 2, 2]


def test_parameters_travel() -> None:
    asking = retriever(rag_file_ids=("a",), doc_id={"pattern": "(.+)"}, api_endpoint="localhost:1")
    assert pickle.loads(pickle.dumps(asking)) == asking  # noqa: S301  our own
    assert asking.scope() == "projects/p/locations/us-central1"


def test_importing_the_parameters_does_not_import_the_client() -> None:
    code = (
        "import sys; from rankbeam.transforms.clients.retrievers import rag_engine, vertex_search; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rankbeam.transforms.clients.retrievers.rag_engine" in loaded
    assert loaded & {"grpc", "google.auth", "google.cloud.aiplatform_v1", "google.cloud.discoveryengine_v1"} == set()
