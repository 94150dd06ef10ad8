"""The corpora of a project in all its locations, of which some have no RAG Engine."""

from pathlib import Path

import pytest
from support import rag_corpora as rag
from support.cli import rankbeam

LOCATIONS = {"us-central1": True, "africa-south1": False, "europe-west4": True}


def test_a_project_stands_for_all_its_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, locations=LOCATIONS) as server:
        project = ("projects/p", "--api-endpoint", server.url)
        path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, 5))
        assert rankbeam("evaluate", path).status == 0
        named = rankbeam("corpora", "list", "projects/p/locations/africa-south1", "--api-endpoint", server.url)
        listed = rankbeam("corpora", "list", *project)
        deleted = rankbeam("corpora", "delete", *project, "--unused-by", str(tmp_path / "out"))
        resource = server.stats().extra["corpora"][0]["name"]
        gone = rankbeam("corpora", "delete", *project, resource, "--yes")
        left = server.stats().extra["corpora"]

    assert (named.status, listed.status) == (2, 0)
    assert [line.split()[0] for line in listed.stdout.splitlines()[2:]] == [resource]
    assert (
        "projects/p/locations/africa-south1 has no corpora that can be listed: corpora: UNIMPLEMENTED: RAG Engine is "
        "not available in this location" in listed.stderr
    )
    assert "nothing to delete in projects/p/locations/europe-west4" in deleted.stdout
    assert (gone.status, left) == (0, [])
