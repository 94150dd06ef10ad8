"""Leases on Google Cloud Storage, whose generation preconditions decide which process was first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from rankbeam.transforms.clients.ledger.leases.lease import ReadFile
from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.records.errors import InputError

_NO_OBJECT = 0
_TIMEOUT_S = 20.0


def _beams_client() -> Any:  # google.cloud.storage.Client; with the credentials that Beam's own filesystem uses
    from apache_beam.io.gcp.gcsio import create_storage_client
    from apache_beam.options.pipeline_options import PipelineOptions

    gcs.prepare(gcs.SCHEME)
    return create_storage_client(PipelineOptions([]))


class GcsPlace:
    """Objects below a folder of a bucket."""

    def __init__(self, folder: str, connect: Callable[[], Any] = _beams_client) -> None:
        self._folder, self._connect = folder, connect

    def read(self, name: str) -> ReadFile | None:
        from google.api_core.exceptions import NotFound

        with self._translated(name):
            blob = self._blob(name)
            try:
                content = blob.download_as_bytes(timeout=_TIMEOUT_S)
            except NotFound:
                return None
            return ReadFile(content, blob.generation)

    def create(self, name: str, content: bytes) -> bool:
        return self._put(name, content, _NO_OBJECT)

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        return self._put(name, content, seen.version)

    def delete(self, name: str, seen: ReadFile) -> None:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._translated(name):
            try:
                self._blob(name).delete(if_generation_match=seen.version, timeout=_TIMEOUT_S)
            except (NotFound, PreconditionFailed):
                return

    def _put(self, name: str, content: bytes, generation: object) -> bool:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._translated(name):
            try:
                self._blob(name).upload_from_string(content, if_generation_match=generation, timeout=_TIMEOUT_S)
            except (NotFound, PreconditionFailed):  # a request repeated by the client may have written it
                return (seen := self.read(name)) is not None and seen.content == content
            return True

    @cached_property
    def _bucket(self) -> Any:
        return self._connect().bucket(self._folder.removeprefix(gcs.SCHEME).partition("/")[0])

    def _blob(self, name: str) -> Any:
        below = self._folder.removeprefix(gcs.SCHEME).partition("/")[2]
        return self._bucket.blob(f"{below}/{name}")

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except gcs.errors(self._folder) as error:
            problem = f"the ledger's lease cannot be written: {gcs.explained(error, self._folder)}"
            raise InputError(problem, path=f"{self._folder}/{name}") from error
