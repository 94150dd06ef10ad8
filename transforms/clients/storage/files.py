"""Files on any of Beam's filesystems: local, gs://, hdfs://, s3://.

Local files are read without Beam, so that they can be read while Beam is still being imported. Compressed text is
recognised by its content, not by its name, and a truncated gzip file is an error (Beam's own reader just ends there).
"""

import errno
import glob
import gzip
import io
import os
import posixpath
import shutil
import uuid
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.records.errors import InputError

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 64 << 20  # maximum bytes of a line: a longer one is not text, and would fill the memory
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
_DEVICES = ("/dev/", "/proc/")
_NO_RENAME = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)  # in a folder of others, or mounted alone
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AS_STORED = "uncompressed"
"""Beam's CompressionTypes.UNCOMPRESSED: neither compressed nor decompressed, whatever the suffix of the name."""


def beam() -> Any:
    """Beam's filesystems, imported late: the import takes most of a second, during which local files can be read."""
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.value_provider import RuntimeValueProvider

    warnings.filterwarnings("ignore", "Possible nested set", FutureWarning)  # Beam's expression for a name with [
    if FileSystems._pipeline_options is None and RuntimeValueProvider.runtime_options is None:
        # S3 and HDFS do not work without options; these are from the command line, where Cloud Storage reads them, too.
        FileSystems.set_options(PipelineOptions())
    return FileSystems


def errors(path: str, *more: type[Exception]) -> tuple[type[Exception], ...]:
    """The error classes of a filesystem; Beam's own error is an OSError."""
    return (OSError, *more, *gcs.errors(path))


@contextmanager
def translate_errors(path: str, problem: str, *more: type[Exception]) -> Iterator[None]:
    """Raise errors of a path's filesystem as InputErrors that begin with `problem`."""
    gcs.prepare(path)
    try:
        yield
    except errors(path, *more) as error:
        raise InputError(f"{problem}: {gcs.error_text(error, path)}", path=path) from error


def is_local(path: str) -> bool:
    return "://" not in path


def join(folder: str, *names: str) -> str:
    join_there = os.path.join if is_local(folder) else posixpath.join  # Path would drop the slash of "a/"
    return join_there(folder, *names)


def parent(path: str) -> str:
    return path.rpartition("/")[0] if not is_local(path) else os.path.dirname(path)  # noqa: PTH120  "" stays ""


def below(folder: str, path: str) -> str:
    """A path below the folder; unchanged if it is absolute or on another filesystem."""
    absolute = not is_local(path) or path.startswith(("/", "~"))
    return str(Path(path).expanduser()) if path.startswith("~") else path if absolute else join(folder, path)


def absolute(path: str) -> str:
    """A path that names the same file in a process with another working directory."""
    return str(Path(path).expanduser().absolute()) if is_local(path) else path


def is_same(path: str, other: str) -> bool:
    """Return whether two paths name the same file or folder, maybe by a link."""
    places = [Path(one).expanduser().resolve() if is_local(one) else one.rstrip("/") for one in (path, other)]
    return places[0] == places[1]


def exists(path: str) -> bool:
    with translate_errors(path, "cannot be looked up"):
        return Path(path).exists() if is_local(path) else bool(beam().exists(path))


def refuse_existing(path: str) -> None:
    if exists(path):
        raise InputError("exists already, and is never overwritten; choose another path", path=path)


def is_folder(path: str) -> bool:
    return is_local(path) and Path(path).is_dir()


NOT_STANDARD_INPUT = "standard input cannot be read here; save it to a file, and name that file"


def open_raw(path: str, read_ahead_bytes: int | None = None) -> BinaryIO:
    """Open a file for reading, as it is stored."""
    if is_local(path) and Path(path).is_fifo():
        raise InputError("is a pipe, and files are read more than once; write it to a file (gzip is fine)", path=path)
    gcs.prepare(path)
    try:
        handle = _open_file(path)
    except errors(path) as error:
        problem = NOT_STANDARD_INPUT if path == "-" else f"cannot be opened: {gcs.error_text(error, path)}"
        raise InputError(problem, path=path) from error
    return handle if read_ahead_bytes is None or is_local(path) else gcs.reading_ahead(handle, read_ahead_bytes)


def read_raw(path: str, count: int = -1) -> bytes:
    """The first bytes of a file, or all, as it is stored."""
    with translate_errors(path, "reading failed"), open_raw(path, 1 << 10 if count >= 0 else None) as handle:
        return handle.read(count)


def _open_file(path: str) -> BinaryIO:
    if is_local(path):
        return Path(path).open("rb")  # as Beam does
    handle: BinaryIO = beam().open(path, compression_type=AS_STORED)
    return handle


def open_text(path: str, read_ahead_bytes: int | None = None) -> "io.BufferedReader[Any]":
    """Open a file for reading, without its byte order mark; decompress it if its content is gzip."""
    raw = io.BufferedReader(_Raw(open_raw(path, read_ahead_bytes)))
    packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)  # seeking back would cost another request
    stream = cast("io.BufferedReader[Any]", gzip.GzipFile(fileobj=raw)) if packed else raw
    if stream.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
        stream.read(len(_BYTE_ORDER_MARK))
    return stream


def read_blocks(path: str, block_bytes: int = BLOCK_BYTES, magic: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    """Read a text file in blocks of whole lines; of a binary file that begins with one of `magic`, only that."""
    rest: list[bytes] = []  # joined once, so that a long line is not copied for each of its pieces
    lines = 0
    try:
        with open_text(path, block_bytes if block_bytes < BLOCK_BYTES else None) as stream:
            packed = isinstance(stream, gzip.GzipFile)
            if magic and not packed:
                begin = stream.peek(max(map(len, magic)))
                if binary := next(filter(begin.startswith, magic), None):
                    yield binary
                    return
            for piece in _pieces(stream, block_bytes):
                end = piece.rfind(b"\n") + 1
                if not end:
                    rest.append(piece)
                    refuse_endless(path, rest)
                    continue
                block, rest = b"".join((*rest, memoryview(piece)[:end])), [piece[end:]]
                lines += block.count(b"\n") if packed else 0  # only gzip files show that they are truncated
                yield block
    except _GZIP_ERRORS as error:
        problem = f"the gzip file is cut short or damaged ({error}); copy it again"
        raise InputError(problem, path=path, line=lines + 1) from error
    except gcs.errors(path) as error:
        raise InputError(f"reading failed: {gcs.error_text(error, path)}", path=path) from error
    if any(rest):
        yield b"".join(rest)


def refuse_endless(path: str, pieces: Sequence[bytes]) -> None:
    if sum(map(len, pieces)) > LONGEST_LINE:
        raise InputError(f"has a line of more than {LONGEST_LINE >> 20} MiB; end lines with LF", path=path)


def _pieces(stream: "io.BufferedReader[Any]", piece_bytes: int) -> Iterator[bytes]:
    """Read until the end, or until an error; everything readable before the error is yielded first."""
    damage: Exception | None = None
    while damage is None:
        parts: list[bytes] = []
        missing = piece_bytes
        while missing > 0:
            try:
                part = stream.read1(missing)
            except _GZIP_ERRORS as error:
                damage = error
                break
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        if parts:
            yield b"".join(parts)
        if damage is None and missing > 0:
            return
    raise damage


def read_head(path: str, bytes_wanted: int = 1 << 16, magic: tuple[bytes, ...] = ()) -> bytes:
    """The first block of complete lines that is not blank, from a text file, decompressed; or one of `magic`."""
    return next((block for block in read_blocks(path, bytes_wanted, magic) if block.strip()), b"")


def read_all(path: str) -> bytes:
    """The whole content of a text file, decompressed."""
    return b"".join(read_blocks(path))


def read_text(path: str, advice: str = "", named: str = "", encoding: str = "utf-8") -> str:
    """The whole content of a UTF-8 file. An error names the file's line, and the file as `named`, with advice."""
    content = read_all(path)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not UTF-8{advice and f'; {advice}'}", path=named or path, line=line) from error


def write(path: str, content: bytes) -> None:
    """Write a file. A local one is renamed once it is complete: a killed process leaves no half file under its name."""
    with translate_errors(path, "cannot be written"):
        if not is_local(path) or path.startswith(_DEVICES) or not _replace(Path(os.path.realpath(path)), content):
            with create_file(path) as handle:
                handle.write(content)


def _replace(place: Path, content: bytes) -> bool:
    """Write under another name, and rename; return False where a file can only be written in place."""
    if str(place).startswith(_DEVICES) or (place.exists() and not (place.is_file() and os.access(place, os.W_OK))):
        return False
    part = place.with_name(f"_{uuid.uuid4().hex}.part")  # its length does not depend on the name, which may be long
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        with suppress(FileNotFoundError):  # a new file, or just deleted
            if place.stat()[4:6] != part.stat()[4:6]:  # its owner and group stay
                return False
            shutil.copymode(place, part)
        part.write_bytes(content)
        part.replace(place)
    except OSError as error:
        if error.errno not in _NO_RENAME or not place.exists():
            raise
        return False
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return True


@contextmanager
def create_file(path: str) -> Iterator[BinaryIO]:
    """Create a file; if writing fails, give it up: no reader may take half a file for the whole."""
    handle = beam().create(path, compression_type=AS_STORED)
    try:
        with handle:
            yield handle
    except BaseException:
        give_up(handle)
        if is_local(path) and Path(path).is_file():  # not a device
            with suppress(OSError):
                Path(path).resolve().unlink()
        raise


def give_up(handle: Any) -> None:
    """Discard a file; otherwise Google's client would try to send it, for up to two minutes, once it is collected."""
    if hasattr(handle, "terminate"):
        with suppress(*gcs.errors(gcs.SCHEME)):
            handle.terminate()


def delete(path: str) -> None:
    """Delete a file, or a folder with its content; do nothing if it does not exist."""
    if is_local(path):  # Beam would read a name with * or [ as a pattern
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  "~" stays
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError, NotADirectoryError):  # another run may have deleted it
                os.remove(path)  # noqa: PTH107
        return
    alone = glob.escape(path)
    if paths := sorted({*match(alone), *match(join(alone, "**"))}):  # an object store has no folders, only names
        delete_objects(paths)


def delete_objects(paths: Sequence[str]) -> None:
    """Delete files of another filesystem; on Cloud Storage, Beam would take a name with *, ? or [ for a pattern."""
    beam().delete([glob.escape(path) if path.startswith(gcs.SCHEME) else path for path in paths])


def make_writable_folder(path: str) -> None:
    """Make a folder if it does not exist, and check that it can be written to."""
    with translate_errors(path, "the folder cannot be made"):
        # Cloud Storage has no folders, and Beam no name for a whole bucket.
        if not path.startswith(gcs.SCHEME) and not beam().exists(path):
            try:
                beam().mkdirs(path)
            except errors(path):
                if not beam().exists(path):  # another run may have made it
                    raise
    probe = join(path, ".rankbeam-can-write")
    try:
        write(probe, b"\n")  # Beam cannot write an empty file to S3
    except InputError as error:
        raise InputError(f"the folder {error.problem}", path=path) from error
    with translate_errors(probe, "cannot be deleted"):
        delete(probe)


class _Raw(io.RawIOBase):
    """Adapts a Beam file, which need not have `readinto`, to BufferedReader."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self._readinto = getattr(handle, "readinto", None)
        self._size, self._position = gcs.size_of(handle), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed has WriteableBuffer
        if self._position == self._size:  # reading on would make a request
            return 0
        if self._readinto is not None:
            count = int(self._readinto(buffer))
        else:
            data = self._handle.read(len(buffer))
            buffer[: len(data)], count = data, len(data)
        self._position += count
        return count

    def close(self) -> None:
        if not self.closed:
            self._handle.close()
        super().close()


def match(pattern: str) -> list[str]:
    """The paths that a glob pattern matches, in any order."""
    if is_local(pattern):  # Beam's own matching does not support escaped brackets
        return glob.glob(pattern, recursive=True)  # noqa: PTH207  Path.glob takes no absolute pattern
    paths = [metadata.path for metadata in beam().match([pattern])[0].metadata_list]
    return [path for path in paths if not path.endswith("/")]  # consoles create such objects for folders
