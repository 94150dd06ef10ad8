"""A filesystem of Beam's that lives in memory, as `mem://`: whatever works here needs no local path."""
# ruff: noqa: ARG002  the signatures are Beam's

import fnmatch
import io
import time
from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

FILES: dict[str, bytes] = {}
WRITTEN: dict[str, float] = {}
"""When a file was written through Beam, in seconds since the epoch."""


class _Written(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            FILES[self._path] = self.getvalue()
            WRITTEN[self._path] = time.time()
        super().close()


class MemoryFileSystem(FileSystem):
    """Beam finds it by its scheme, as it finds every subclass of FileSystem."""

    @classmethod
    def scheme(cls) -> str:
        return "mem"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path: str) -> None:
        """There are no folders, as in an object store."""

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path, content in FILES.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(content), WRITTEN.get(path, 1.0))

    def create(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        return _Written(path)

    def open(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        if path not in FILES:
            raise BeamIOError(f"no such file: {path}")
        return io.BytesIO(FILES[path])

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            for path in [path for path in FILES if path == source or path.startswith(source.rstrip("/") + "/")]:
                FILES[target + path[len(source) :]] = FILES[path]

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        self.copy(source_file_names, destination_file_names)
        self.delete(source_file_names)

    def exists(self, path: str) -> bool:
        return path in FILES

    def size(self, path: str) -> int:
        return len(FILES[path])

    def last_updated(self, path: str) -> float:
        return WRITTEN.get(path, 1.0)

    def checksum(self, path: str) -> str:
        return str(hash(FILES[path]))

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(FILES[path]), WRITTEN.get(path, 1.0))

    def delete(self, paths: list[str]) -> None:
        for name in paths:
            for path in list(FILES):
                if fnmatch.fnmatch(path, name) or path.startswith(name.rstrip("/") + "/"):
                    del FILES[path]
