"""Where a run comes from: the command, the commit, and the files of its dataset."""

import os
import subprocess

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run import command_line
from rankbeam.transforms.clients.storage import files

_COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA")
"""What GitHub, GitLab and Cloud Build call the commit that they check."""

_GIT = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
_GIT_S = 5.0


def provenance(experiment: Experiment) -> dict[str, str]:
    """What is known of where a run comes from; what is not known has no entry."""
    inputs = {"queries": experiment.queries, "qrels": experiment.qrels, "corpus": experiment.corpus}
    places = {f"dataset.{role}": files.absolute(path) for role, path in inputs.items() if path is not None}
    known = {"command": command_line.written(), "commit": _commit()}
    return {name: value for name, value in known.items() if value} | places


def _commit() -> str:
    """The commit that a CI server checks, else that of the current folder; "-dirty" where files have changed since."""
    for name in _COMMITS:
        if commit := os.environ.get(name):
            return commit
    try:
        said = subprocess.run(_GIT, capture_output=True, text=True, timeout=_GIT_S, check=False)  # noqa: S603  fixed words
    except (OSError, subprocess.TimeoutExpired):  # there is no git
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
