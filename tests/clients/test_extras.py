"""A library that is not installed is named with the command that installs it, before anything is called."""

import asyncio
import re
import sys
import zipfile
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.pipelines.dataflow.package import write_wheel
from rankbeam.transforms.clients.secrets import resolve
from rankbeam.transforms.records.errors import InputError


def test_an_experiment_that_needs_a_missing_library_is_refused_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.discoveryengine_v1", None)  # as where it is not installed
    path = REPOSITORY / "examples" / "vertex_search.yaml"
    outcome = rankbeam("validate", str(path))
    assert outcome.status == 2
    places = re.findall(rf"{path}:\d+: (\S+): the library of Vertex AI Search is not installed: (.*)", outcome.stderr)
    assert places
    assert {command for _, command in places} == {"pip install 'rankbeam[search]'"}


def test_a_secret_that_needs_a_missing_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.secretmanager", None)
    reference = "${secret:projects/p/secrets/s/versions/1}"
    with pytest.raises(InputError, match=re.escape("pip install 'rankbeam[secrets]'")):
        asyncio.run(resolve({reference: "headers.Authorization"}))


def test_workers_install_what_is_installed_here(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_wheel(str(tmp_path))) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(about).decode().splitlines()
    assert any(re.fullmatch(r"Requires-Dist: google-cloud-discoveryengine>=[\d.]+", line) for line in lines)
    assert "Requires-Dist: google-cloud-secret-manager>=2.0" in lines
    assert not any(line.startswith("Requires-Dist: pytest>") and "extra" not in line for line in lines)
