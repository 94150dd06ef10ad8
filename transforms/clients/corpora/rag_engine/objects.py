"""Objects in Cloud Storage that corpora need: uploaded documents, and results of imports."""

import json
import mimetypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any

from rankbeam.transforms.clients.formats.documents.files import File
from rankbeam.transforms.clients.http.template import texts_in
from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.records.errors import InputError

_THREADS = 16
_AT_ONCE = 512  # documents whose texts are in memory
_TIMEOUT_S = 60.0
_LONGEST_REASON = 300
_TEXT = "text/plain; charset=utf-8"


class Objects:
    """Objects below a folder in a bucket."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/")
        self._bucket_name, _, self._below = self._folder.removeprefix(gcs.SCHEME).partition("/")

    def probe(self) -> None:
        """Check that objects can be written, before creating anything that needs them."""
        self.put(f"{self._folder}/.rankbeam-can-write", b"")
        self.delete([f"{self._folder}/.rankbeam-can-write"])

    def names(self, folder: str) -> set[str]:
        prefix = f"{self._name(folder)}/"
        with self._translate_errors("cannot be listed"):
            blobs = self._bucket.list_blobs(prefix=prefix, timeout=_TIMEOUT_S, fields="items(name),nextPageToken")
            return {f"{gcs.SCHEME}{self._bucket_name}/{blob.name}" for blob in blobs}

    def originals(self) -> Iterator[File]:
        """All objects with their checksums, without reading them."""
        prefix = f"{self._below}/" if self._below else ""
        fields = "items(name,size,crc32c),nextPageToken"
        with self._translate_errors("cannot be listed"):
            for blob in self._bucket.list_blobs(prefix=prefix, timeout=_TIMEOUT_S, fields=fields):
                if not blob.name.endswith("/"):  # consoles create this for an empty folder
                    path, name = f"{gcs.SCHEME}{self._bucket_name}/{blob.name}", blob.name.removeprefix(prefix)
                    yield File(path, name, int(blob.size or 0), 0.0, blob.crc32c or "")

    def put(self, uri: str, content: bytes, content_type: str = _TEXT) -> None:
        with self._translate_errors("cannot be written to"):
            blob = self._bucket.blob(self._name(uri))
            blob.upload_from_string(content, content_type=content_type, timeout=_TIMEOUT_S)

    def read(self, uri: str) -> bytes | None:
        from google.api_core.exceptions import NotFound

        with self._translate_errors("cannot be read"):
            try:
                content: bytes = self._bucket.blob(self._name(uri)).download_as_bytes(timeout=_TIMEOUT_S)
            except NotFound:
                return None
            return content

    def delete(self, uris: "Iterator[str] | list[str]") -> None:
        from google.api_core.exceptions import NotFound

        def delete(uri: str) -> None:
            try:
                self._bucket.blob(self._name(uri)).delete(timeout=_TIMEOUT_S)
            except NotFound:
                return

        with self._translate_errors("cannot be deleted"):
            _do_all(delete, iter(uris))

    def upload(self, contents: Iterator[tuple[str, Callable[[], bytes]]]) -> int:
        return _do_all(lambda item: self.put(item[0], item[1](), _type_of(item[0])), contents)

    @cached_property
    def _bucket(self) -> Any:
        from apache_beam.io.gcp.gcsio import create_storage_client
        from apache_beam.options.pipeline_options import PipelineOptions
        from requests.adapters import HTTPAdapter

        gcs.prepare(self._folder)
        client = create_storage_client(PipelineOptions([]))  # with the credentials that Beam's own filesystem uses
        for scheme in ("https://", "http://"):
            client._http.mount(scheme, HTTPAdapter(pool_maxsize=_THREADS))  # the default, ten, would be too few
        return client.bucket(self._bucket_name)

    def _name(self, uri: str) -> str:
        return uri.removeprefix(gcs.SCHEME).partition("/")[2]

    @contextmanager
    def _translate_errors(self, problem: str) -> Iterator[None]:
        try:
            yield
        except gcs.errors(self._folder) as error:
            raise InputError(f"{problem}: {gcs.error_text(error, self._folder)}", path=self._folder) from error


def _type_of(uri: str) -> str:
    guess = mimetypes.guess_type(uri)[0] or ""
    return _TEXT if guess in ("", "text/plain") else guess


def _do_all(work: Callable[[Any], object], items: Iterator[Any]) -> int:
    done = 0
    with ThreadPoolExecutor(_THREADS) as threads:
        while part := list(islice(items, _AT_ONCE)):
            for _ in threads.map(work, part):
                done += 1
    return done


def reasons(content: bytes) -> dict[str, str]:
    r"""Reasons for failures, by URI, from an import's result: JSON lines, whose form Google does not document.

    A line is about the file whose URI is in it, and is a failure if the name of a key contains "error".

    >>> reasons(b'{"source_uri": "gs://b/d/a.txt", "status": "FAILED", "error": {"message": "too large"}}\n')
    {'gs://b/d/a.txt': 'too large'}
    """
    errors = {}
    for line in content.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        texts = {".".join(map(str, path)): text for path, text in texts_in(values)}
        uri = next((text for text in texts.values() if text.startswith(gcs.SCHEME)), None)
        error = next((text for key, text in texts.items() if "error" in key.lower() and text), None)
        if uri is not None and error is not None:
            errors[uri] = error[:_LONGEST_REASON]
    return errors
