"""Judgements that a report reads from the run's own files."""

from pathlib import Path

import pyarrow as pa
from support.inputs import write
from support.runs import run_experiment

from rankbeam.pipelines.report.sources import DatasetFiles


def test_a_document_of_several_subtopics_is_one_relevant_document(tmp_path: Path) -> None:
    """It was one for each of its grades, so curves of precision never reached the full recall."""
    write(tmp_path / "qrels", "q1 1 a 1\nq1 2 a 2\nq1 1 b 1\nq1 2 b 0\n")
    write(tmp_path / "a.run", "q1 Q0 b 0 2 x\n")
    content = {
        "dataset": {"qrels": "qrels"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}}],
        "metrics": ["StRecall@2"],
    }
    files = DatasetFiles(run_experiment(tmp_path, content))
    assert files.relevant(pa.array(["q1"])) == {"q1": [("a", 2.0), ("b", 1.0)]}
