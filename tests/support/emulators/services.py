"""Emulated services: Cloud Storage, BigQuery, and both with an environment for Google's clients."""

import gc
import json
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.emulators.process import log_of, running

PROJECT = "rankbeam-test"
STORAGE_READ_HOST = "RANKBEAM_BIGQUERY_STORAGE_EMULATOR_HOST"
KEY_BITS = 2048
OBJECTS = ".cloudstorage"
"""Below the folder that the emulator works in, where it keeps the buckets."""


@dataclass(frozen=True)
class Gcs:
    """Cloud Storage that runs.

    Attributes:
        url: with its scheme, for STORAGE_EMULATOR_HOST.
        folder: holds a folder a bucket, and the objects in it as files.
        token_url: gives OAuth tokens to anybody.
        log: its log file.
    """

    url: str
    folder: Path
    token_url: str
    log: Path

    def bucket(self, name: str = "") -> str:
        """Make a bucket; returns its name, one that is new unless it is given."""
        name = name or f"bucket-{uuid.uuid4().hex[:12]}"
        request = urllib.request.Request(  # noqa: S310  the URL is ours
            f"{self.url}/storage/v1/b?project={PROJECT}",
            data=json.dumps({"name": name}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request):  # noqa: S310  the URL is ours
            return name


@dataclass(frozen=True)
class BigQuery:
    """BigQuery that runs.

    Attributes:
        rest_url: for BIGQUERY_EMULATOR_HOST.
        grpc_address: host and port of the Storage Read and Write APIs, without TLS.
        project: it takes where a request names none; others work as well.
        log: its log file.
    """

    rest_url: str
    grpc_address: str
    project: str
    log: Path


@dataclass(frozen=True)
class Cloud:
    """Both of them.

    Attributes:
        gcs: the storage.
        bigquery: loads from that storage.
        environment: variables that lead Google's clients to both, in this process and in others.
    """

    gcs: Gcs
    bigquery: BigQuery
    environment: Mapping[str, str]

    def logs(self) -> list[Path]:
        """The log files of both."""
        return [self.gcs.log, self.bigquery.log]


@contextmanager
def gcs() -> Iterator[Gcs]:
    """Cloud Storage without any bucket, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="gcs-") as folder, running("gcs", Path(folder)) as ports:
        token_url = f"{_url(ports['token_port'])}/token"
        yield Gcs(_url(ports["port"]), Path(folder, OBJECTS), token_url, log_of(Path(folder)))
        gc.collect()  # a file that a failed run left open is sent when it is collected: later, for 120 s, to nobody


@contextmanager
def bigquery(storage: Gcs) -> Iterator[BigQuery]:
    """BigQuery without any dataset, for as long as the block lasts.

    Args:
        storage: the Cloud Storage behind `gs://`; the emulator reads its files.
    """
    with (
        tempfile.TemporaryDirectory(prefix="bigquery-") as folder,
        running("bigquery", Path(folder), str(storage.folder), PROJECT) as ports,
    ):
        yield BigQuery(_url(ports["port"]), f"127.0.0.1:{ports['grpc_port']}", PROJECT, log_of(Path(folder)))


@contextmanager
def cloud() -> Iterator[Cloud]:
    """Both, and the environment for Google's clients, for as long as the block lasts."""
    with gcs() as storage, bigquery(storage) as warehouse:
        folder = storage.folder.parent
        environment = {
            "STORAGE_EMULATOR_HOST": storage.url,
            "BIGQUERY_EMULATOR_HOST": warehouse.rest_url,
            STORAGE_READ_HOST: warehouse.grpc_address,
            "GOOGLE_APPLICATION_CREDENTIALS": str(write_credentials(folder, storage.token_url)),
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "NO_GCE_CHECK": "true",
            "CLOUDSDK_CONFIG": str(folder),
        }
        yield Cloud(storage, warehouse, environment)


def write_credentials(folder: Path, token_url: str) -> Path:
    """Write the file of a service account that exists nowhere.

    Args:
        folder: folder for the file.
        token_url: address that gives tokens without checking the signature.
    """
    path = folder / "service-account.json"
    account = f"nobody@{PROJECT}.iam.gserviceaccount.com"
    content = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "none",
        "private_key": _private_key(),
        "client_email": account,
        "client_id": "0",
        "token_uri": token_url,
    }
    path.write_text(json.dumps(content))
    return path


@cache
def _private_key() -> str:
    """A key that nothing is signed with for anybody who looks; one does for a whole process."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem.decode()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"
