"""The number of queries on pages and in exports, if not every query has judgements of documents."""

import json
from pathlib import Path

import pytest
import yaml
from support.inputs import trec_qrels, write
from support.pages import Page
from support.runs import evaluated

from rankbeam.pipelines import report, show


@pytest.mark.parametrize(
    ("judged", "words"), [(0, "3 queries"), (2, "3 queries, 2 of them judged"), (3, "3 judged queries")]
)
def test_queries_without_judgements_are_counted_and_not_said_to_be_left_out(
    judged: int, words: str, tmp_path: Path
) -> None:
    ids = ["q1", "q2", "q3"]
    replies = [
        {"query_id": query, "answer": "a", "contexts": [{"doc_id": "d", "text": "a"}], "steps": []} for query in ids
    ]
    files = {
        "queries": [{"_id": query, "text": query} for query in ids],
        "answers": replies,
    }
    paths = {name: write(tmp_path / f"{name}.jsonl", "\n".join(map(json.dumps, rows))) for name, rows in files.items()}
    qrels = write(tmp_path / "qrels.txt", trec_qrels([(query, "d", 1.0) for query in ids[:judged]]))
    experiment = {
        "name": "e",
        "dataset": {"queries": paths["queries"]} | ({"qrels": qrels} if judged else {}),
        "configurations": [{"name": "bot", "answers": {"type": "replay", "path": paths["answers"]}}],
        "metrics": ["Steps", *(["RR"] if judged else [])],
        "output": {"path": str(tmp_path / "out")},
    }
    results = evaluated(write(tmp_path / "e.yaml", yaml.safe_dump(experiment)))
    text = Page.of(report.build(results)).text
    assert f"\n    {words} ·\n" in text
    assert "not asked" not in text
    assert "these are asked" not in text
    assert f"averaged over {words}." in show.as_latex(results)
    assert f"e: {words}, dataset" in show.as_markdown(results)
