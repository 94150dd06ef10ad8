"""Files of leases, for which several processes compete.

On this machine's disks, files are created with O_EXCL, and changed under a lock that ends with its process. Cloud
Storage creates files atomically. Elsewhere, a process writes a claim next to the file, and waits until the claims of
other processes are visible; the process whose claim sorts first creates the file. Two processes can still create it if
a claim takes longer to become visible.
"""

import fcntl
import glob
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.ledger.leases.lease import LeasePlace, ReadFile
from rankbeam.transforms.clients.storage import files, gcs, whole_files
from rankbeam.transforms.records.errors import InputError

FOLDER = "leases"
_GUARD = ".guard"


def lease_place(ledger: str) -> LeasePlace:
    folder = files.join(ledger, FOLDER)
    if files.is_local(folder):
        return LocalPlace(folder)
    return GcsPlace(folder) if folder.startswith(gcs.SCHEME) else ElsewherePlace(folder)


class LocalPlace:
    """A folder on a local disk, created with the first lease.

    O_EXCL decides which process creates a file. Replacing or deleting a file that was read before takes two steps,
    which are protected by a lock if the filesystem has locks.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def read(self, name: str) -> ReadFile | None:
        with self._translate_errors(name):
            if (seen := self._now(name)) is None or seen.content:
                return seen
            with self._hold_lock():  # its creator may be writing it at this moment
                return self._now(name)

    def create(self, name: str, content: bytes) -> bool:
        with self._translate_errors(name):
            whole_files.make_folder(self._folder)
            with self._hold_lock():
                return self._create_file(self._folder / name, content)

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        with self._translate_errors(name), self._hold_lock():
            if self._now(name) != seen:
                return False
            temporary = self._folder / f".{name}"
            with whole_files.opened_new(temporary) as file:
                file.write(content)
            temporary.replace(self._folder / name)
            return True

    def delete(self, name: str, seen: ReadFile) -> None:
        with self._translate_errors(name), self._hold_lock():
            if self._now(name) == seen:
                (self._folder / name).unlink(missing_ok=True)

    def _now(self, name: str) -> ReadFile | None:
        try:
            content = (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return ReadFile(content, content)

    @staticmethod
    def _create_file(path: Path, content: bytes) -> bool:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, whole_files.mode_in(path.parent))
        except FileExistsError:
            return False
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return True

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        with whole_files.opened_new(self._folder / _GUARD, "ab") as guard:
            with suppress(OSError):  # a filesystem without locks
                fcntl.flock(guard, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = "free disk space or grant write access"
            problem = f"the ledger's lease cannot be written: {error.strerror or error}; {advice}"
            raise InputError(problem, path=str(self._folder / name)) from error


_NO_OBJECT = 0
_TIMEOUT_S = 20.0


def _beams_client() -> Any:  # a google.cloud.storage.Client with the credentials that Beam's own filesystem uses
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

        with self._translate_errors(name):
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

        with self._translate_errors(name):
            try:
                self._blob(name).delete(if_generation_match=seen.version, timeout=_TIMEOUT_S)
            except (NotFound, PreconditionFailed):
                return

    def _put(self, name: str, content: bytes, generation: object) -> bool:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._translate_errors(name):
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
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except gcs.errors(self._folder) as error:
            problem = f"the ledger's lease cannot be written: {gcs.error_text(error, self._folder)}"
            raise InputError(problem, path=f"{self._folder}/{name}") from error


_SETTLE_S = 2.0
_FORGOTTEN_S = 60.0


class ElsewherePlace:
    """A folder on any of Beam's other filesystems."""

    def __init__(
        self, folder: str, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._folder, self._clock, self._sleep = folder, clock, sleep
        self._first_seen: dict[str, float] = {}

    def read(self, name: str) -> ReadFile | None:
        path = files.join(self._folder, name)
        try:
            if not files.beam().exists(path):
                return None
            with files.open_raw(path) as handle:
                content = handle.read()
        except (OSError, InputError):  # just deleted; other errors are reported when it is written
            return None
        return ReadFile(content, content)

    def create(self, name: str, content: bytes) -> bool:
        if self.read(name) is not None:
            return False
        claim = files.join(self._folder, f"{name}.claim-{uuid.uuid4().hex}")
        files.write(claim, b"\n")  # Beam cannot write an empty file to S3
        try:
            self._sleep(_SETTLE_S)
            if self.read(name) is not None or self._claims(name)[:1] != [claim]:
                return False
            files.write(files.join(self._folder, name), content)
        finally:
            with suppress(OSError):
                files.beam().delete([claim])
        seen = self.read(name)
        return seen is not None and seen.content == content

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        if self.read(name) != seen:
            return False
        files.write(files.join(self._folder, name), content)
        return True

    def delete(self, name: str, seen: ReadFile) -> None:
        with suppress(OSError):
            if self.read(name) == seen:
                files.beam().delete([files.join(self._folder, name)])

    def _claims(self, name: str) -> list[str]:
        """The claims to a file, sorted, without abandoned ones."""
        try:
            claims = files.beam().match([files.join(glob.escape(self._folder), f"{name}.claim-*")])[0].metadata_list
        except OSError as error:
            raise InputError(f"the ledger's leases cannot be looked up: {error}", path=self._folder) from error
        now = self._clock()
        seen = {lease.path: self._first_seen.get(lease.path, now) for lease in claims}
        self._first_seen = seen
        return sorted(path for path, since in seen.items() if now - since < _FORGOTTEN_S)
