"""Labels of values of a grid are part of names, and of no identity of a configuration."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.experiments import experiment, install, load, problems
from support.pages import Page

from rankbeam.pipelines.report.parameters import parameters
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.parameters import entry_points_of

LONG = "projects/my-project/locations/us-central1/ragCorpora/{}"


def test_names_have_labels_and_config_ids_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    text = experiment({"rag": "retriever: {type: near}"})
    grids = (f"[{LONG.format(1)}, {LONG.format(2)}]", f"{{chunk-256: {LONG.format(1)}, 512: {LONG.format(2)}}}")
    plain, labelled = (
        load(tmp_path, text + f"grid: {{region: {values}, top_k: [5, 10]}}\n").evaluation.configurations
        for values in grids
    )
    entry_points_of.cache_clear()
    assert [configuration.config_id for configuration in labelled] == [
        configuration.config_id for configuration in plain
    ]
    assert [configuration.parameters for configuration in labelled] == [
        configuration.parameters for configuration in plain
    ]
    assert plain[0].name == f"rag:region={LONG.format(1)},top_k=5"
    assert [configuration.name for configuration in labelled] == [
        "rag:region=chunk-256,top_k=5",
        "rag:region=chunk-256,top_k=10",
        "rag:region=512,top_k=5",
        "rag:region=512,top_k=10",
    ]


def test_a_label_that_makes_names_ambiguous_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    text = experiment({"rag": "retriever: {type: near}"}) + 'grid: {region: {"a,b": r1}}\n'
    (problem,) = problems(tmp_path, text)
    entry_points_of.cache_clear()
    assert "the label 'a,b' is empty, or has one of" in problem


@pytest.mark.long
def test_tables_and_the_report_show_labels(tmp_path: Path) -> None:
    example = Path(__file__).parents[4] / "examples" / "helpdesk"
    text = (example / "experiment.yaml").read_text()
    head = text[: text.index("configurations:")]
    for name in ("queries.jsonl", "qrels/test.tsv", "corpus.jsonl"):
        head = head.replace(f" {name}", f" {example / name}")
    path = tmp_path / "labels.yaml"
    path.write_text(
        f"{head}configurations:\n  - {{name: bm25, retriever: {{type: bm25}}, top_k: 5}}\n"
        "grid: {fields: {everything: [title, text], body: [text]}, b: [0.3, 0.75]}\n"
        f"metrics: [nDCG@5]\nstatistics: {{replicates: 0}}\noutput: {{path: {tmp_path / 'out'}}}\n"
    )
    shown = rankbeam("evaluate", str(path))
    assert shown.status == 0
    assert "bm25:fields=body,b=0.3" in shown.stdout
    results = find_run(str(tmp_path / "out"))
    values = {parameter.name: parameter.values for parameter in parameters(Study(results))}
    assert values == {"fields": ["everything", "body"], "b": ["0.3", "0.75"]}
    page = Page.of((tmp_path / "out" / "report.html").read_text())
    assert "nDCG@5 along b" in page.text
    assert "everything" in page.text
