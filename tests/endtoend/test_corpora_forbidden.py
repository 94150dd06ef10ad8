"""A bucket that may not be written to, from the beginning or from some object on: refused, and nothing is left."""

from pathlib import Path

import pytest
from support import rag_corpora as rag
from support.cli import rankbeam

DOCUMENTS = 25


@pytest.mark.parametrize("granted", [0, 2, DOCUMENTS])
def test_a_bucket_that_may_not_be_written_to_is_refused_with_the_role_that_is_missing(
    granted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, uploads_granted=granted) as server:
        path = rag.experiment(tmp_path, server, rag.dataset(tmp_path, DOCUMENTS), grid={"chunk_size": [12, 16]})
        done = rankbeam("evaluate", path)
        extra = server.stats().extra

    assert done.status == 2
    assert (
        "cannot be written to: Forbidden; grant the requesting account the role Storage Object User on the bucket "
        "bucket" in done.stderr
    )
    assert (extra["corpora"], extra["objects"]) == ([], [])
