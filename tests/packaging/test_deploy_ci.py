"""The examples for CI services: their commands exist, their gates are gates, their variables are known."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.data import REPOSITORY

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.gates.gates import KnownNames, located_gates, read_gates

GITHUB, GITLAB = Path("github", "evaluate.yml"), Path("gitlab", "evaluate.gitlab-ci.yml")
CLOUD_BUILD = Path("cloud_build", "evaluate.yaml")


def loaded(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "deploy" / path).read_text())
    return document


def scripts(path: Path) -> Iterator[str]:
    """The shell scripts of an example, in their order."""
    document = loaded(path)
    if path == GITHUB:
        yield from (step.get("run", "") for job in document["jobs"].values() for step in job["steps"])
    elif path == GITLAB:
        yield from (line for job in ("baseline", "gate") for line in document[job]["script"])
    else:
        yield from (step["args"][-1] for step in document["steps"])


def commands(path: Path) -> list[list[str]]:
    lines = [line for script in scripts(path) for line in script.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line) for line in lines if line.strip()]
    ours = [words[1:] for words in commands if words[0] == "rankbeam"]
    return [list(words[: next((i for i, word in enumerate(words) if word in (">", ">>")), None)]) for words in ours]


@pytest.mark.parametrize("path", [GITHUB, GITLAB, CLOUD_BUILD], ids=str)
def test_commands_are_understood(path: Path) -> None:
    words = commands(path)
    names = [name for name, *_ in words]
    assert {"evaluate", "validate", "gate", "compare"} == set(names)
    for name, *arguments in words:
        context = main.commands[name].make_context(name, list(arguments), parent=click.Context(main))
        assert context.params.get("beam_options", ()) == ()
        assert not context.args
        if name in ("gate", "compare"):
            assert context.params["other_dataset"]


def test_the_gates_shown_are_gates(tmp_path: Path) -> None:
    lines = (REPOSITORY / "deploy" / GITHUB).read_text().splitlines()
    path = tmp_path / "gates.yaml"
    path.write_text("\n".join(line.removeprefix("#   ") for line in lines if line.startswith("#   ")))
    known = KnownNames(["base", "other"], ["nDCG@10"], ["language"], None)
    gates = located_gates(read_gates(str(path)), known)
    assert [(gate.value, gate.skips_new) for gate in gates] == [
        ("difference_low", True),
        ("mean", False),
        ("failure_rate", False),
    ]


def test_cloud_build_knows_every_variable() -> None:
    document = loaded(CLOUD_BUILD)
    used = set(re.findall(r"\$\{?(\w+)", "".join(scripts(CLOUD_BUILD))))
    assert used == {*document["substitutions"], "BUILD_ID"}


def test_gitlab_knows_every_variable() -> None:
    document = loaded(GITLAB)
    used = set(re.findall(r"\$(\w+)", "".join(scripts(GITLAB))))
    assert used <= {*document["variables"], "CI_JOB_TOKEN"}
    own = re.findall(r"\$(\w+)", "".join(str(value) for value in document["variables"].values()))
    assert all(name.startswith("CI_") for name in own)
    assert {document[job]["extends"] for job in ("baseline", "gate")} == {".rankbeam"}


def test_answers_are_cached_even_if_a_job_is_cancelled() -> None:
    github, gitlab = loaded(GITHUB), loaded(GITLAB)[".rankbeam"]["cache"]
    for job in github["jobs"].values():
        restored, evaluated, saved = (
            next(place for place, step in enumerate(job["steps"]) if text in str(step))
            for text in ("restore-keys': 'rankbeam-ledger-", "rankbeam evaluate", "always()")
        )
        assert restored < evaluated < saved
        assert job["steps"][saved]["with"]["path"] == github["env"]["RANKBEAM_LEDGER"]
    assert (gitlab["when"], "ledger" in gitlab["paths"]) == ("always", True)
