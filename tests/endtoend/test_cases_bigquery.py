# ruff: noqa: F811  fixtures are named as what they give
"""A table of BigQuery as a file of another tool: dataset and answers, with the values of the same rows in a file."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from support.bigquery_tables import new_dataset
from support.cli import rankbeam
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.inputs import write
from support.runs import evaluated

ROWS = [
    {"user_input": "Who pays?", "response": "Owners pay. Guests do, too.", "reference": "Owners pay.",
     "retrieved_contexts": ["Owners pay the invoices.", "It rains."]},
    {"user_input": "Is it green?", "response": None, "reference": "Yes.", "retrieved_contexts": ["It is green."]},
    {"user_input": "How does it open?", "response": "With a code.", "reference": "With a code.",
     "retrieved_contexts": ["The door opens with a code."]},
]  # fmt: skip


def values(folder: Path, file: str, answers: dict[str, Any]) -> list[Any]:
    experiment = {
        "name": "e", "dataset": {"file": file}, "services": {"j": {"type": "lexical"}}, "judge": {"service": "j"},
        "configurations": [{"name": "bot", "answers": {"type": "replay", **answers}}], "max_failure_rate": 0.5,
        "metrics": ["Faithfulness", "ClaimRecall"], "statistics": {"replicates": 0}, "output": {"path": "out"},
    }  # fmt: skip
    evaluated(write(folder / "e.yaml", yaml.safe_dump(experiment)))
    rows = pq.read_table(folder / "out" / "query_metrics").to_pylist()
    return sorted(
        (row["query_id"], row["text"], entry["metric"], repr(entry["value"]), entry["status"])
        for row in rows
        for entry in row["metrics"]
    )


def test_a_table_is_a_dataset_and_answers_with_the_values_of_a_file(cloud: Cloud, tmp_path: Path) -> None:
    write(tmp_path / "file" / "rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in ROWS))
    expected = values(tmp_path / "file", "rows.jsonl", {})
    tables = new_dataset(cloud)
    try:
        source = tables.add("answers", pa.Table.from_pylist(ROWS))
        texts = [{**row, "retrieved_contexts": json.dumps(row["retrieved_contexts"])} for row in ROWS]
        as_json = tables.add("texts", pa.Table.from_pylist(texts))  # lists as JSON, which columns of type JSON give
        assert values(tmp_path / "texts", as_json, {}) == expected
        assert values(tmp_path / "both", source, {"path": source}) == expected
        judged = rankbeam("judge", source, "-m", "Faithfulness", "--service", "lexical", "--output", f"{tmp_path}/out")
        assert "Faithfulness(judge=lexical)" in judged.stdout, judged.stderr
        copied = rankbeam("export", f"{tmp_path}/out", "--like", source, "--output", f"{tmp_path}/copy.jsonl")
        assert copied.status == 0, copied.stderr
        copy = [json.loads(line) for line in (tmp_path / "copy.jsonl").read_text().splitlines()]
        assert [row["user_input"] for row in copy] == [row["user_input"] for row in ROWS]
        assert [row["Faithfulness(judge=lexical)"] for row in copy] == [0.5, None, 1.0]
        missing = rankbeam("judge", f"{source}s", "-m", "Faithfulness", "--service", "lexical")
        assert missing.status == 2
        created = rankbeam("init", f"{tmp_path}/new/e.yaml", "--from", source)
        assert created.status == 0, created.stderr
        assert rankbeam("validate", f"{tmp_path}/new/e.yaml").status == 0
    finally:
        tables.client.delete_dataset(tables.dataset, delete_contents=True)
