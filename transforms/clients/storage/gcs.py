"""Google Cloud Storage: check network and credentials before Beam uses it.

Without these checks, an offline laptop waits for two minutes, and a laptop without credentials for half a minute, with
five tracebacks. A public bucket needs no credentials.
"""

import os
import socket
from functools import cache
from http import HTTPStatus
from typing import BinaryIO

from rankbeam.transforms.clients.storage import other_filesystems
from rankbeam.transforms.clients.storage.remedies import SIGN_IN, remedy
from rankbeam.transforms.records.errors import InputError

SCHEME = "gs://"
_HOST = _SERVICE = "storage.googleapis.com"
_OTHER_WAYS = ("STORAGE_EMULATOR_HOST", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def prepare(path: str) -> None:
    """Check that a path's service can be reached, and load Beam's client; do nothing unless the path is on `gs://`."""
    if path.startswith(SCHEME):
        if not any(os.environ.get(name) for name in _OTHER_WAYS):
            _find_host(path)
        _has_credentials(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
        import apache_beam.io.gcp.gcsfilesystem  # noqa: F401  in case Beam was imported without it


def errors(path: str) -> tuple[type[Exception], ...]:
    if not path.startswith(SCHEME):
        return other_filesystems.errors(path)
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse  # of transfers in pieces

    return GoogleAPIError, GoogleAuthError, InvalidResponse, DataCorruption, OSError


def reading_ahead(handle: BinaryIO, count: int) -> BinaryIO:
    """The same file with a smaller request size, if it makes requests: 16 MiB is a lot for a first line."""
    if hasattr(handle, "_chunk_size"):
        handle._chunk_size = count  # Beam opens the file, and has no parameter for this
    return handle


def size_of(handle: BinaryIO) -> int | None:
    """The bytes of an open object; None for files elsewhere."""
    return getattr(getattr(handle, "_blob", None), "size", None)


def error_text(error: BaseException, path: str) -> str:
    if not path.startswith(SCHEME):
        return other_filesystems.error_text(error, path)
    bucket = path.removeprefix(SCHEME).partition("/")[0]
    advice = {
        401: SIGN_IN,
        403: f"grant the requesting account the role Storage Object User on the bucket {bucket}",
        404: f"does the bucket {bucket} exist? create it, or name another one",
    }
    status = _status(error)
    message = HTTPStatus(status).phrase if status in advice else " ".join(str(error).split())
    more = remedy(error, _SERVICE) or advice.get(status or 0, "")
    if status == HTTPStatus.NOT_FOUND and "generation=" in str(error):  # of an object that was opened before
        more = "it was replaced or deleted while it was read; run again"
    if not _has_credentials(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")):
        more = f"there are no credentials: {SIGN_IN}"
    return f"{message}; {more}" if more else message


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, which Beam may wrap in its own errors."""
    from apache_beam.io.filesystem import BeamIOError

    if isinstance(error, BeamIOError):
        inner = list((error.exception_details or {}).values())
        return next((status for item in inner if (status := _status(item)) is not None), None)
    status = getattr(getattr(error, "response", None), "status_code", None) or getattr(error, "code", None)
    return int(status) if isinstance(status, int) else None


def _find_host(path: str) -> None:
    try:
        socket.getaddrinfo(_HOST, "https")
    except OSError as error:
        raise InputError(f"{_HOST} cannot be found ({error}); is there a network?", path=path) from error


@cache
def _has_credentials(_file: str | None) -> bool:
    import google.auth
    from apache_beam.internal.gcp import auth

    if auth.is_running_in_gce:  # a Dataflow worker, whose credentials may be late; Beam waits for them
        return True
    try:
        google.auth.default()
    except google.auth.exceptions.DefaultCredentialsError:
        auth._Credentials._credentials_init = True  # tells Beam not to look for credentials again
        return False
    return True
