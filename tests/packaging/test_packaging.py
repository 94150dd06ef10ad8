"""Built packages are complete, and work away from the repository, as on Beam's workers."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml
from support.built import Built, run
from support.data import REPOSITORY

IMPORT_EVERYTHING = """
import importlib, json, os, sys, sysconfig
from importlib.metadata import entry_points

installed = sysconfig.get_path("purelib")
modules = {name: os.path.relpath(importlib.import_module(name).__file__, installed) for name in sys.argv[1:]}
groups = [group for group in entry_points().groups if group.startswith("rankbeam.")]
types = {group: {point.name: point.load().__qualname__ for point in entry_points(group=group)} for group in groups}
print(json.dumps([modules, types]))
"""


@pytest.mark.parametrize("archive", ["sdist", "wheel"])
def test_every_file_is_packaged_as_it_is(built: Built, archive: str) -> None:
    packaged: Mapping[str, bytes] = getattr(built, archive)
    ours = {name: content for name, content in packaged.items() if name.startswith("rankbeam/")}
    assert ours == {name: (built.checkout / name).read_bytes() for name in built.sources}
    assert "rankbeam/py.typed" in ours


def test_the_sdist_can_be_built_again(built: Built) -> None:
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        assert built.sdist[name] == (built.checkout / name).read_bytes()


def test_the_wheel_installs_nothing_but_rankbeam(built: Built) -> None:
    about = f"rankbeam-{built.project['version']}.dist-info"
    assert {name.partition("/")[0] for name in built.wheel} == {"rankbeam", about}
    assert built.wheel[f"{about}/licenses/LICENSE"] == (built.checkout / "LICENSE").read_bytes()


def test_the_page_of_the_package_links_to_the_repository(built: Built) -> None:
    about = f"rankbeam-{built.project['version']}.dist-info"
    head, _, page = built.wheel[f"{about}/METADATA"].decode().partition("\n\n")
    source = built.project["urls"]["Source"]
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    at = f"/v{built.project['version']}/"
    files = {link.partition(at)[2] for link in links if link.startswith(source)}
    assert files >= {"docs/report.webp", "docs/index.md", "LICENSE"}
    assert [name for name in files if not (REPOSITORY / name).exists()] == []
    assert f"Project-URL: Source, {source}" in head
    assert yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["repo_url"] == source


@pytest.mark.parametrize("archive", ["sdist", "wheel"])
def test_the_command_and_all_types_are_registered(built: Built, archive: str) -> None:
    packaged: Mapping[str, bytes] = getattr(built, archive)
    (written,) = (content for name, content in packaged.items() if name.endswith("/entry_points.txt"))
    registered = ConfigParser(delimiters="=")
    registered.read_string(written.decode())
    assert {group: dict(registered[group]) for group in registered.sections()} == {
        "console_scripts": {"rankbeam": "rankbeam.__main__:command"},
        **built.project["entry-points"],
    }


@pytest.mark.campaign
def test_a_worker_imports_every_module_from_the_wheel(built: Built, worker: Path, tmp_path: Path) -> None:
    printed = run(worker / "python", "-I", "-c", IMPORT_EVERYTHING, *sorted(built.modules), cwd=tmp_path)
    modules, types = json.loads(printed)
    assert modules == built.modules
    assert types == {
        group: {name: place.partition(":")[2] for name, place in classes.items()}
        for group, classes in built.project["entry-points"].items()
    }


def test_the_command_works_from_the_wheel(built: Built, worker: Path, tmp_path: Path) -> None:
    assert run(worker / "rankbeam", "--help", cwd=tmp_path).startswith("Usage: rankbeam [OPTIONS] COMMAND")
    example = built.checkout / "examples" / "helpdesk" / "experiment.yaml"
    assert run(worker / "rankbeam", "validate", example, cwd=tmp_path).startswith(f"{example}: valid. 3 configurations")


@pytest.mark.campaign
def test_the_demo_of_the_wheel_runs_beside_foreign_folders_of_the_same_names(worker: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "a team's own"
    for name in ("pipelines", "transforms", "deploy", "tests", "examples"):
        (foreign / name).mkdir(parents=True)
        (foreign / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    run(worker / "rankbeam", "init", "--example", tmp_path / "demo", cwd=tmp_path)
    command = [worker / "rankbeam", "evaluate", tmp_path / "demo" / "answers.yaml", "--output", tmp_path / "out"]
    environment = {**os.environ, "PYTHONPATH": str(foreign)}
    done = subprocess.run(command, cwd=foreign, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "By nDCG@10, bm25 is the best" in done.stdout
    assert (tmp_path / "out" / "report.html").exists()


def test_authors_of_plug_ins_import_from_rankbeam_itself() -> None:
    import rankbeam

    homes = {name: getattr(rankbeam, name) for name in rankbeam.__all__}
    assert sorted(rankbeam.__all__) == dir(rankbeam)
    assert homes["RemoteRetriever"].__mro__[1] is homes["RetrieverParameters"]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        rankbeam.Nothing  # noqa: B018  looking it up is what fails
