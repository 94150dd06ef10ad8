"""Find the files that a path or glob pattern names, on any of Beam's filesystems."""

import difflib
import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

Version = tuple[str, int, float]  # path, bytes and modification time of a file; they change with the content

_ALIKE = 0.8  # difflib's minimum ratio, from 0 to 1, for names to propose


def expand(pattern: str) -> list[str]:
    """The files that a path, a pattern or a folder of tables names, sorted; an exact name takes precedence."""
    with files.translate_errors(pattern, "cannot be looked up", ValueError):
        if not pattern.endswith("/") and files.exists(pattern) and not files.is_folder(pattern):
            return [pattern]
        folder = files.join(glob.escape(pattern.rstrip("/")) if files.is_folder(pattern) else pattern.rstrip("/"), "")
        paths = [] if files.is_folder(pattern) else [path for path in _match(pattern) if not files.is_folder(path)]
        paths = paths or _tables(folder)
    if not paths and files.is_folder(pattern) and files.exists(files.join(pattern, "dataset_dict.json")):
        raise InputError("has splits of a dataset of Hugging Face; name one of its folders", path=pattern)
    if not paths and files.is_folder(pattern):
        every = files.join(pattern, "*")
        other = f"is a folder without Parquet files; write {every} for all its files"
        is_empty = not files.match(files.join(glob.escape(pattern.rstrip("/")), "*"))
        raise InputError("is an empty folder" if is_empty else other, path=pattern)
    if not paths and pattern == "-":
        raise InputError(files.NOT_STANDARD_INPUT, path=pattern)
    if not paths:
        raise InputError(f"no such file{nearest(pattern)}", path=pattern)
    return sorted(paths)


def missing_parts(paths: Iterable[str]) -> dict[str, list[str]]:
    """The names of missing files by one that exists: Hugging Face and Beam write numbers of parts into names.

    >>> missing_parts(["in/a-00000-of-00003.parquet", "in/a-00002-of-00003.parquet", "in/b.parquet"])
    {'in/a-00000-of-00003.parquet': ['a-00001-of-00003.parquet']}
    """
    numbers: dict[tuple[str, str, str], dict[int, str]] = {}
    for path in paths:
        if parts := re.fullmatch(r"(.*-)(\d{5})(-of-(\d{5})\b[^/]*)", path, re.DOTALL):
            numbers.setdefault((parts[1], parts[4], parts[3]), {})[int(parts[2])] = path
    return {
        next(iter(there.values())): [
            f"{begin}{number:05}{end}".rpartition("/")[2] for number in range(int(count)) if number not in there
        ]
        for (begin, count, end), there in numbers.items()
        if len(there) < int(count)
    }


def has_tables(folder: str) -> bool:
    """Return whether a local folder has files of a table that `expand` reads.

    Links to folders are not followed: in a folder that others made, they may lead in circles, or to the whole machine.
    """
    for _, folders, names in os.walk(folder):
        folders[:] = filter(_is_read, folders)
        if any(name.endswith(".parquet") for name in filter(_is_read, names)):
            return True
    return any(Path(folder).glob("data-*.arrow"))


def matches(pattern: str) -> list[str]:
    """The files that a glob pattern names, sorted; empty if there are no such files."""
    with files.translate_errors(pattern, "cannot be looked up", ValueError):
        return sorted(_match(pattern))


def _match(pattern: str) -> list[str]:
    """The paths that a pattern matches; refuses local folders that may not be listed, which `glob` leaves out."""
    parts = pattern.split("/") if files.is_local(pattern) else []
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for end in range(first, len(parts)):
        is_listed = glob.has_magic(parts[end]) or "**" in parts[:end]
        for folder in files.match("/".join([*parts[:end], ""])):
            if not os.access(folder, os.R_OK | os.X_OK if is_listed else os.X_OK):
                raise InputError("cannot be listed, so its files would be missing: Permission denied", path=folder)
    return files.match(pattern)


def version(pattern: str) -> tuple[Version, ...]:
    """The version of each file that a path or pattern names."""
    paths = expand(pattern)
    if files.is_local(pattern):
        with files.translate_errors(pattern, "cannot be opened"):
            stats = [(path, Path(path).stat()) for path in paths]
        return tuple((path, stat.st_size, stat.st_mtime) for path, stat in stats)
    # Match the pattern again: one request for thousands of files.
    several = [pattern, *_table_patterns(files.join(pattern.rstrip("/"), ""))]
    patterns = [glob.escape(pattern)] if paths == [pattern] else several
    by_path = {version[0]: version for version in remote_versions(patterns)}
    return tuple(by_path[path] for path in paths)


def versions_in(folder: str) -> tuple[Version, ...]:
    """The versions of the Parquet files of a table's folder; elsewhere than on this machine, by one request."""
    versions: list[Version] = []
    if not files.is_local(folder):
        with files.translate_errors(folder, "cannot be listed", ValueError):
            versions = sorted(remote_versions([files.join(glob.escape(folder), "[!_.]*.parquet")]))
    return tuple(versions) or version(folder)


def versions_below(folder: str) -> dict[str, list[Version]]:
    """The versions of Parquet files by the folder below this one; what is deleted meanwhile is left out."""
    versions: dict[str, list[Version]] = {}
    with files.translate_errors(folder, "cannot be listed", ValueError):
        if files.is_local(folder):
            for below in _entries(folder):
                versions[below.name] = []
                for entry in _entries(below.path):
                    if entry.name.endswith(".parquet") and not entry.name.startswith(("_", ".")):
                        with suppress(FileNotFoundError):
                            versions[below.name].append((entry.path, entry.stat().st_size, entry.stat().st_mtime))
        else:
            for version in remote_versions([files.join(glob.escape(folder), "*", "[!_.]*.parquet")]):
                versions.setdefault(version[0].split("/")[-2], []).append(version)
    return {name: sorted(group) for name, group in versions.items()}


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return list(entries)
    return []


def remote_versions(patterns: list[str]) -> Iterator[Version]:
    """The versions of the files that match patterns, on filesystems other than the local one."""
    for result in files.beam().match(patterns):
        for file in result.metadata_list:
            yield file.path, int(file.size_in_bytes), float(file.last_updated_in_seconds or 0.0)


def _tables(folder: str) -> list[str]:
    """The Parquet files below a folder, except in folders that begin with _ or ., as other readers do; else Arrow's."""
    paths = next(filter(None, map(_match, _table_patterns(folder))), [])
    below = [path.split("/")[folder.count("/") :] for path in paths]
    return [path for path, parts in zip(paths, below, strict=True) if all(map(_is_read, parts))]


def _is_read(name: str) -> bool:
    return not name.startswith(("_", "."))


def _table_patterns(folder: str) -> tuple[str, ...]:
    """Patterns of Parquet files, and of Arrow files of Hugging Face's `save_to_disk`."""
    return folder + "*.parquet", folder + "**/*.parquet", folder + "data-*.arrow"


def nearest(path: str) -> str:
    """A hint for messages about a missing local path: the most similar name in its folder; "" if there is none."""
    folder = Path(path).parent
    if not files.is_local(path) or not folder.is_dir():
        return ""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:  # no permission to list it
        return ""
    alike = difflib.get_close_matches(Path(path).name, names, n=1, cutoff=_ALIKE)
    return f"; did you mean {str(folder / alike[0])!r}?" if alike else ""
