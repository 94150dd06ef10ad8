# ruff: noqa: F811  fixtures are named as what they give
"""Experiment files: every mistake of a bad one in one message."""

from pathlib import Path

import pytest
from support.experiment_files import (
    BM25,
    GOOD,
    changed,
    folder,  # noqa: F401  pytest finds it by name
    load,
)
from support.experiments import problems
from support.inputs import beir_qrels, write

from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.load import load_experiment, parse_experiment
from rankbeam.transforms.records.errors import InputError

# --- One mistake at a time ---------------------------------------------------------------------------------------

OR_REMOTE = "or one that begins with gs://, s3:// or hdfs://"
MISTAKES = [
    ("name: helpdesk", "nam: helpdesk", ["1: name: is missing", "1: nam: unknown key; did you mean 'name'?"]),
    ("output:", "zzz: 1\noutput:", [
        "13: zzz: unknown key; valid are: " + ", ".join(sorted(ExperimentModel.model_fields)),
    ]),
    ("  queries:", "  querys: x\n  queries:", ["4: dataset.querys: unknown key; did you mean 'queries'?"]),
    ("name: old", "nome: x\n    name: old", ["9: configurations[1].nome: unknown key; did you mean 'name'?"]),
    ("{path: out}", "{path: out, ranking: true}", ["13: output.ranking: unknown key; did you mean 'rankings'?"]),
    ("{path: out}", "{path: 'https://host/out', ledger: 'ftp://host/ledger'}", [
        f"13: output.{key}: no filesystem begins with {scheme}://; name a local path, {OR_REMOTE}"
        for key, scheme in (("path", "https"), ("ledger", "ftp"))
    ]),
    ("b: 0.4", "bb: 1, stopwords: none", [
        "8: configurations[0].retriever.bb: unknown key; did you mean 'b'?",
        "8: configurations[0].retriever.stopwords: unknown key; did you mean 'stop_words'?",
    ]),
    ("type: bm25", "type: bm52", [
        "8: configurations[0].retriever.type: unknown retriever type 'bm52'; did you mean 'bm25'?",
    ]),
    ("type: bm25, ", "", ["8: configurations[0].retriever.type: is missing"]),
    ("type: bm25", "type: [bm25]", ["8: configurations[0].retriever.type: is not a word"]),
    ("b: 0.4", "b: [1]", ["8: configurations[0].retriever.b: must be a number, found [1]"]),
    ("b: 0.4", "b: 1.5", ["8: configurations[0].retriever.b: must be at most 1, found 1.5"]),
    ("b: 0.4", "stemming: englsh", [
        "8: configurations[0].retriever.stemming: unknown stemming; did you mean 'english'?, found 'englsh'",
    ]),
    ("type: run_file, path: data/old.run", "type: run_file", ["10: configurations[1].retriever.path: is missing"]),
    ("P.5", "Jugded@5", ["11: metrics[2]: unknown metric 'Jugded'; did you mean 'Judged'?"]),
    ("name: helpdesk", "name: 42", ["1: name: must be a text, found 42"]),
    ("name: bm25", "name: bm25\n    top_k: ten", [
        "8: configurations[0].top_k: must be a whole number, found 'ten'",
    ]),
    ("name: bm25", "name: bm25\n    top_k: 0", [
        "8: configurations[0].top_k: must be at least 1, found 0",
    ]),
    ("[nDCG@10, map, P.5]", "AP", ["11: metrics: must be a list, found 'AP'"]),
    ("[nDCG@10, map, P.5]", "[]", [
        "11: metrics: must not be empty, found []",
    ]),
    ("[language]", "[language, language]", ["12: slices: names an attribute twice, found ['language', 'language']"]),
    ("name: old", "name: bm25", ["9: configurations[1].name: two configurations are named 'bm25'"]),
    ("{type: run_file, path: data/old.run}", "{b: 0.40, type: bm25}", [
        "9: configurations[1]: 'old' is the same configuration as 'bm25'",
    ]),
    ("output:", "grid: {detla: [1]}\noutput:", [
        "13: grid.detla: no configuration has this parameter; did you mean 'delta'?",
    ]),
    ("output:", "grid:\n  k1: []\noutput:", ["14: grid.k1: lists no value"]),
    ("output:", "grid: {k1: 0.9}\noutput:", ["13: grid.k1: must be a list, found 0.9"]),
    ("output:", "grid: {top_k: [5, many]}\noutput:", [
        "13: grid.top_k: must be whole numbers from 1 to 2,147,483,647, found [5, 'many']",
    ]),
    ("output:", "grid: {k1: [1, high]}\noutput:", [
        "13: grid.k1: must be a number, found 'high'",
    ]),
    ("output:", "baseline: bm52\noutput:", ["13: baseline: no configuration is named 'bm52'; did you mean 'bm25'?"]),
    ("  corpus: data/corpus.jsonl\n", "", [
        "2: dataset.corpus: is missing; a configuration's retriever needs the corpus",
    ]),
    ("name: helpdesk", "name: helpdesk\nname: again", ["2: name: is given twice; keep one"]),
    ("b: 0.4", "b: 0.4, b: 0.5", ["8: configurations[0].retriever.b: is given twice; keep one"]),
    ("  queries:", "  beir: fiqa\n  ir_datasets: cranfield\n  queries:", [
        "5: dataset.ir_datasets: is a second dataset beside beir; keep one",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES, ids=[new.strip()[:30] for _, new, _ in MISTAKES])
def test_a_mistake(folder: Path, old: str, new: str, expected: list[str]) -> None:
    assert problems(folder, changed(old, new)) == expected


@pytest.mark.parametrize("value", ["queries.jsonl", "7", "[queries.jsonl]", "true"])
def test_a_dataset_that_is_not_a_mapping(folder: Path, value: str) -> None:
    messages = problems(folder, f"name: x\ndataset: {value}\nconfigurations: []\noutput: {{path: out}}\n")
    assert any(message.startswith("2: dataset: must be a mapping of keys to values, found ") for message in messages)


def test_slices_without_queries(folder: Path) -> None:
    text = changed(BM25, "").replace("  queries: data/queries.jsonl\n", "")
    (problem,) = problems(folder, text)
    assert problem.startswith("9: slices: ")
    assert "dataset.queries is missing" in problem


def test_a_missing_run_is_reported_where_it_is_named(folder: Path) -> None:
    expected = f"10: configurations[1].retriever.path: {folder}/data/new.run: no such file"
    assert problems(folder, changed("old.run", "new.run")) == [expected]


def test_missing_files_are_all_reported(folder: Path) -> None:
    text = GOOD.replace("qrels.tsv", "qrels.txt").replace("corpus.jsonl", "corpus.json")
    assert problems(folder, text) == [
        f"3: dataset.qrels: {folder}/data/qrels.txt: no such file",
        f"5: dataset.corpus: {folder}/data/corpus.json: no such file; did you mean '{folder}/data/corpus.jsonl'?",
    ]


def test_an_output_among_the_documents_is_refused(folder: Path) -> None:
    write(folder / "docs" / "a.md", "text")
    text = GOOD.replace("corpus.jsonl", "../docs")
    for place, output in (("docs/out", None), ("elsewhere", str(folder / "docs" / "out"))):
        with pytest.raises(InputError, match=r"5: dataset\.corpus: .*contains the output .*docs/out"):
            parse_experiment(text.replace("path: out}", f"path: {place}}}"), str(folder / "e.yaml"), output)


def test_a_broken_line_of_queries_hides_no_other_mistake(folder: Path) -> None:
    queries = write(folder / "data" / "queries.jsonl", '{"_id": "q1", "text": "a"}\n{broken\n')
    application = '{type: http, url: "http://h/", body: {q: "{query}", in: "{language}"}, answer: answer}'
    text = changed("retriever: {type: bm25, b: 0.4}", f"answers: {application}").replace("P.5", "Jugded@5")
    with pytest.raises(InputError) as raised:
        load(folder, text)
    broken, metric = str(raised.value).splitlines()
    assert broken.startswith(f"{queries}:2: is not valid JSON")
    assert metric.endswith("metrics[2]: unknown metric 'Jugded'; did you mean 'Judged'?")


def test_wrong_formats_are_all_reported(folder: Path) -> None:
    text = GOOD.replace("data/qrels.tsv", "data/queries.jsonl").replace("{path: out}", "{path: out} # moved")
    text = text.replace("  queries: data/queries.jsonl\n  corpus", "  queries: data/qrels2.tsv\n  corpus")
    write(folder / "data" / "qrels2.tsv", beir_qrels([("q1", "d1", 1.0)]))
    first, second = problems(folder, text)
    assert first.startswith(f"3: dataset.qrels: {folder}/data/queries.jsonl: is not a file of judgements")
    assert second.startswith(f"4: dataset.queries: {folder}/data/qrels2.tsv: is not a file of queries")


def test_a_wrong_value_in_a_grid_is_reported_once(folder: Path) -> None:
    text = GOOD.replace("metrics:", "  - {name: third, retriever: {type: bm25, b: 0.1}}\nmetrics:")
    (problem,) = problems(folder, text + "grid: {k1: [high]}\n")
    assert problem.startswith("15: grid.k1: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "mapping"),
        ("# nothing yet\n", "mapping"),
        ("- name: a\n- dataset: b\n", "mapping"),
        ("helpdesk\n", "mapping"),
        ("name: [a\n", "not valid YAML"),
    ],
)
def test_what_is_no_experiment_at_all(folder: Path, text: str, words: str) -> None:
    (problem,) = problems(folder, text)
    assert words in problem


def test_a_missing_experiment(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: no such file"):
        load_experiment(str(tmp_path / "none.yaml"))


def test_an_experiment_that_is_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"e\.yaml:2: .*UTF-8"):
        load_experiment(write(tmp_path / "e.yaml", b"# caf\n# caf\xe9\nname: a\n"))


# --- Many mistakes at once ---------------------------------------------------------------------------------------


def test_a_broken_configuration_may_still_be_the_baseline(folder: Path) -> None:
    text = changed("type: bm25", "type: bm52") + "baseline: bm25\n"
    assert [problem.partition(": ")[2] for problem in problems(folder, text)] == [
        "configurations[0].retriever.type: unknown retriever type 'bm52'; did you mean 'bm25'?"
    ]


BAD = """\
name: 42
dataset:
  qrels: data/none.tsv
  querys: data/queries.jsonl
  queries: data/queries.jsonl
  corpus: data/old.run
configurations:
  - name: one
    retriever: {type: bm52}
  - name: two
    retriever: {type: bm25, bb: 1}
    top_k: ten
  - name: three
    retriever: {type: run_file, path: data/new.run}
  - name: three
    retriever: {type: run_file, path: data/old.run}
    nome: x
metrics: [nDCG@10, ndgc@5]
grid: {k2: [1]}
baseline: thre
basline: three
output: {path: out, path: out2, rankings: perhaps}
"""

PLACES = [
    "1: name",
    "3: dataset.qrels",
    "4: dataset.querys",
    "6: dataset.corpus",
    "9: configurations[0].retriever.type",
    "11: configurations[1].retriever.bb",
    "12: configurations[1].top_k",
    "14: configurations[2].retriever.path",
    "15: configurations[3].name",
    "17: configurations[3].nome",
    "18: metrics[1]",
    "19: grid.k2",
    "20: baseline",
    "21: basline",
    "22: output.path",
    "22: output.rankings",
]


def test_all_mistakes_are_reported_at_once_in_order_of_their_lines(folder: Path) -> None:
    assert [": ".join(problem.split(": ")[:2]) for problem in problems(folder, BAD)] == PLACES


def test_all_mistakes_beyond_the_shape_of_the_file_are_reported_at_once(folder: Path) -> None:
    bad = BAD.replace("name: 42", "name: x").replace("  querys: data/queries.jsonl\n", "").replace("    nome: x\n", "")
    bad = bad.replace("    top_k: ten\n", "").replace("basline: three\n", "").replace(", rankings: perhaps", "")
    messages = [": ".join(problem.split(": ")[:2]) for problem in problems(folder, bad)]
    assert messages == [
        "3: dataset.qrels",
        "5: dataset.corpus",
        "8: configurations[0].retriever.type",
        "10: configurations[1].retriever.bb",
        "12: configurations[2].retriever.path",
        "13: configurations[3].name",
        "15: metrics[1]",
        "16: grid.k2",
        "17: baseline",
        "18: output.path",
    ]
