"""Provenance of a run: the command, the commit, and the files of its dataset.

The command line stores its words here, because the threads of a run have no context of click's.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence

_COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA")
"""Variables in which GitHub, GitLab and Cloud Build name the commit."""

# `git describe --dirty` writes the index: on a full disk, or killed, it leaves a lock in the user's repository.
_GIT = ("git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no")
_GIT_S = 5.0
_SECRET_OPTION = re.compile(r"--[\w-]*(?:key|token|secret|password)[\w-]*", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^\s/?#@]+@")
_PARAMETER = re.compile(r"(?<=[?&])([^\s=&#]+)=[^\s&#]+")
_words: list[str] = []


def provenance(inputs: Mapping[str, str | None]) -> dict[str, str]:
    """Origin of a run: command, commit and paths of inputs by role, as far as they are known."""
    from rankbeam.transforms.clients.formats.cases.source import file_of
    from rankbeam.transforms.clients.storage import files  # the command line records its words before it needs Beam

    places = {f"dataset.{role}": files.absolute(file_of(path)) for role, path in inputs.items() if path is not None}
    known = {"command": command_line(), "commit": _commit()}
    return {name: value for name, value in known.items() if value} | places


def _commit() -> str:
    """The commit that a CI server checks, else the current folder's; "-dirty" if files have changed since."""
    for name in _COMMITS:
        if from_server := os.environ.get(name):
            return from_server
    try:
        status = subprocess.run(_GIT, capture_output=True, text=True, timeout=_GIT_S, check=False)  # noqa: S603  fixed words
    except (OSError, subprocess.TimeoutExpired):  # git is not installed
        return ""
    if status.returncode or (commit := re.match(r"# branch\.oid (\w{40,})\n", status.stdout)) is None:
        return ""
    return commit[1] + "-dirty" * any(not line.startswith("#") for line in status.stdout.splitlines())


def remember(words: Sequence[str]) -> None:
    """Remember the words after the program's name."""
    _words[:] = words


def command_line() -> str:
    """The command in shell syntax, without secrets; empty if Python code started the run.

    >>> remember(["evaluate", "my file.yaml", "--api_key=abc"]); command_line()
    "rankbeam evaluate 'my file.yaml' '--api_key=…'"
    >>> remember([]); command_line()
    ''
    """
    return shlex.join(["rankbeam", *_without_secrets(_words)]) if _words else ""


def _without_secrets(words: Iterable[str]) -> Iterator[str]:
    """Words without values of options that name a secret, and without users and secret parameters of URLs.

    >>> list(_without_secrets(["--token", "abc", "--flink_master=http://me:abc@host", "http://h/?sig=abc&n=1"]))
    ['--token', '…', '--flink_master=http://…@host', 'http://h/?sig=…&n=1']
    """
    is_value = False
    for word in words:
        name, equals, _ = word.partition("=")
        names_secret = _SECRET_OPTION.fullmatch(name) is not None
        if (is_value and not word.startswith("--")) or (names_secret and equals):
            yield "…" if is_value else f"{name}=…"
        else:
            yield _PARAMETER.sub(_without_value, _USER.sub("…@", word))
        is_value = names_secret and not equals


def _without_value(parameter: re.Match[str]) -> str:
    from rankbeam.transforms.clients.secrets import names_secret_parameter  # as above

    return f"{parameter[1]}=…" if names_secret_parameter(parameter[1]) else parameter[0]
