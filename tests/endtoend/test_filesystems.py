"""Everything read and written through Beam's filesystems: an experiment that lives elsewhere entirely."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support import memory_filesystem
from support.data import REPOSITORY
from support.runs import rankbeam, without_run

from rankbeam.pipelines.results.run import Results

HELPDESK = REPOSITORY / "examples" / "helpdesk"


@pytest.fixture
def stored() -> Iterator[dict[str, bytes]]:
    """The example at mem://bucket/helpdesk/."""
    files = memory_filesystem.FILES
    for name in ("experiment.yaml", "queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        files[f"mem://bucket/helpdesk/{name}"] = (HELPDESK / name).read_bytes()
    yield files
    files.clear()


@pytest.mark.campaign
def test_an_experiment_on_another_filesystem(stored: dict[str, bytes], tmp_path: Path) -> None:
    there = rankbeam("evaluate", "mem://bucket/helpdesk/experiment.yaml", "--run-id", "r")
    assert there.exit_code == 0, there.stderr
    here = rankbeam("evaluate", HELPDESK / "experiment.yaml", "--run-id", "r", "--output", tmp_path)
    assert there.stdout.partition("\nrun ")[0] == here.stdout.partition("\nrun ")[0]
    for name in ("query_metrics", "configuration_metrics", "rankings", "comparisons", "failures"):
        remote, local = Results("mem://bucket/helpdesk/out", "r"), Results(str(tmp_path), "r")
        assert without_run(remote.table(name)) == without_run(local.table(name))
    with tempfile.NamedTemporaryFile(suffix=".duckdb") as file:
        file.write(stored["mem://bucket/helpdesk/out/results.duckdb"])
        file.flush()
        with duckdb.connect(file.name, read_only=True) as connection:
            assert connection.execute("SELECT count(*) FROM query_metrics").fetchone() == (192,)


@pytest.mark.campaign
@pytest.mark.usefixtures("stored")
def test_a_second_run_replaces_the_first_there_too() -> None:
    for _ in range(2):
        assert rankbeam("evaluate", "mem://bucket/helpdesk/experiment.yaml", "--run-id", "r").exit_code == 0
    assert Results("mem://bucket/helpdesk/out", "r").table("query_metrics").num_rows == 192


def test_a_missing_file_there_is_refused(stored: dict[str, bytes]) -> None:
    del stored["mem://bucket/helpdesk/corpus.jsonl"]
    result = rankbeam("validate", "mem://bucket/helpdesk/experiment.yaml")
    assert result.exit_code == 2
    assert "dataset.corpus: mem://bucket/helpdesk/corpus.jsonl: no such file" in result.stderr
