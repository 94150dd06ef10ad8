"""Parts of a release: workflows, forms and policies that are valid and agree with the package."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.data import REPOSITORY

GITHUB = REPOSITORY / ".github"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
OWN_ADDRESS = re.compile(r"https://github\.com/rankbeam/[\w.-]+")


def workflow(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    return loaded


def test_a_release_publishes_what_was_checked_and_installed_without_a_token() -> None:
    jobs = workflow("release")["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None, "install": "build", "publish": "install", "image": "install",
    }  # fmt: skip
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets" not in str(jobs["publish"])
    checks = str(jobs["build"]["steps"])
    assert "twine check --strict" in checks
    assert "tomllib" in checks
    supported = [name.rpartition(" :: ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert jobs["install"]["strategy"]["matrix"]["python"] == supported
    tried = jobs["install"]["steps"][-1]["run"].splitlines()
    assert tried[0] == 'python -m pip install "$(ls dist/*.whl)[test]"'
    assert tried[1] == "rm -r rankbeam pipelines transforms"  # so that the tests import the wheel
    folders = [word for word in tried[2].split() if word.startswith("tests/")]
    assert folders
    assert all((REPOSITORY / folder).is_dir() for folder in folders)
    image = next(step["with"] for step in jobs["image"]["steps"] if "build-push" in step.get("uses", ""))
    dockerfile = (REPOSITORY / image["file"]).read_text(encoding="utf-8")
    assert f" AS {image['target']}\n" in dockerfile


def test_the_pages_are_published_with_their_version() -> None:
    jobs = workflow("docs")["jobs"]
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == ["make docs"]
    (published,) = [step["run"] for step in jobs["publish"]["steps"] if "run" in step]
    (script,) = re.findall(r"python (\S+\.py) out/site pages", published)
    assert (REPOSITORY / script).exists()


@pytest.mark.parametrize("name", ["ci", "docs", "release"])
def test_jobs_that_install_packages_may_write_nothing(name: str) -> None:
    loaded = workflow(name)
    assert loaded["permissions"] == {"contents": "read"}
    installing = [job for job in loaded["jobs"].values() if re.search(r"pip install|make \w", str(job["steps"]))]
    assert installing
    for job in installing:
        assert "permissions" not in job
        assert job["steps"][0]["with"] == {"persist-credentials": False}


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_a_form_asks_for_something_and_needs_an_answer(name: str) -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_every_address_of_the_repository_is_that_of_the_package() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone")
    texts = {}
    for name in listed.stdout.split():
        path = REPOSITORY / name
        if path.suffix in (".md", ".yml", ".yaml", ".py", ".toml", ".json", ".tf", ".cfg") and path.is_file():
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
    other = {name: set(OWN_ADDRESS.findall(text)) - {SOURCE} for name, text in texts.items()}
    assert {name: addresses for name, addresses in other.items() if addresses} == {}


def test_policies_are_there_and_name_each_other() -> None:
    assert "Report a vulnerability" in (GITHUB / "SECURITY.md").read_text(encoding="utf-8")
    assert "(SECURITY.md)" in (GITHUB / "CODE_OF_CONDUCT.md").read_text(encoding="utf-8")


def test_the_documentation_shows_the_changelog_itself() -> None:
    assert (REPOSITORY / "docs" / "changelog.md").readlink() == Path("../CHANGELOG.md")


def test_the_changelog_has_the_version() -> None:
    first = re.findall(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
    assert first == PROJECT["version"]
