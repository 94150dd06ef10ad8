"""Experiment files: what a good one means, and every mistake of a bad one in one message."""

import json
from pathlib import Path

import pytest
from support.inputs import beir_qrels, json_texts, trec_run, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import ExperimentModel, load_experiment
from rankbeam.transforms.clients.retrievers.bm25 import Bm25
from rankbeam.transforms.records.errors import InputError

GOOD = """\
name: helpdesk
dataset:
  qrels: data/qrels.tsv
  queries: data/queries.jsonl
  corpus: data/corpus.jsonl
configurations:
  - name: bm25
    retriever: {type: bm25, b: 0.4}
  - name: old
    retriever: {type: run_file, path: data/old.run}
metrics: [nDCG@10, map, P.5]
slices: [language]
output: {path: out}
"""

BM25 = """\
  - name: bm25
    retriever: {type: bm25, b: 0.4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that GOOD names."""
    write(tmp_path / "data" / "qrels.tsv", beir_qrels([("q1", "d1", 1.0)]))
    write(tmp_path / "data" / "queries.jsonl", '{"_id": "q1", "text": "a", "metadata": {"language": "de"}}\n')
    write(tmp_path / "data" / "corpus.jsonl", json_texts([("d1", "a document")]))
    write(tmp_path / "data" / "old.run", trec_run([("q1", "d1", 1.0)]))
    return tmp_path


def load(folder: Path, text: str) -> Experiment:
    return load_experiment(write(folder / "e.yaml", text))


def problems(folder: Path, text: str) -> list[str]:
    """The lines of the message about a bad experiment, each without the path in front."""
    with pytest.raises(InputError) as caught:
        load(folder, text)
    start = f"{folder}/e.yaml:"
    lines = str(caught.value).split("\n")
    assert all(line.startswith(start) for line in lines), lines
    return [line.removeprefix(start) for line in lines]


def changed(old: str, new: str) -> str:
    """GOOD with one change."""
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


# --- What a good file means --------------------------------------------------------------------------------------


def test_a_good_file(folder: Path) -> None:
    found = load(folder, GOOD)
    evaluation = found.evaluation
    assert (found.name, found.text, found.output) == ("helpdesk", GOOD, f"{folder}/out")
    data = f"{folder}/data"
    assert (found.qrels, found.queries, found.corpus) == (
        f"{data}/qrels.tsv", f"{data}/queries.jsonl", f"{data}/corpus.jsonl",
    )  # fmt: skip
    assert [str(metric) for metric in evaluation.metrics] == ["nDCG@10", "AP", "P@5"]
    assert (evaluation.slices, evaluation.baseline) == (("language",), 0)
    assert [each.keep_rankings for each in evaluation.sources] == [each.path is None for each in evaluation.sources]
    bm25, old = evaluation.configurations
    assert (bm25.name, bm25.source, bm25.retriever, bm25.top_k, bm25.derived_from) == ("bm25", 0, "bm25", 100, None)
    assert (old.name, old.source, old.retriever, old.top_k, old.derived_from) == ("old", 1, "run_file", None, None)
    assert json.loads(bm25.parameters)["retriever"]["b"] == 0.4
    assert json.loads(bm25.parameters)["top_k"] == 100
    assert [source.path for source in evaluation.sources] == [None, f"{data}/old.run"]
    assert found.sources[0].retriever.parameters == Bm25(b=0.4)


def test_paths_are_below_the_folder_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "e.yaml", GOOD)
    monkeypatch.chdir(folder)
    assert load_experiment("e.yaml").qrels == "data/qrels.tsv"
    monkeypatch.chdir(folder.parent)
    assert load_experiment(f"{folder.name}/e.yaml").qrels == f"{folder.name}/data/qrels.tsv"


def test_a_grid_over_top_k_is_one_source(folder: Path) -> None:
    found = load(folder, GOOD + "grid: {top_k: [5, 20, 10]}\n").evaluation
    names = [f"{name}:top_k={top_k}" for name in ("bm25", "old") for top_k in (5, 20, 10)]
    assert [each.name for each in found.configurations] == names
    assert [each.source for each in found.configurations] == [0, 0, 0, 1, 1, 1]
    assert [source.top_k for source in found.sources] == [20, 20]
    for first in (0, 3):
        small, large, middle = found.configurations[first : first + 3]
        assert (small.derived_from, large.derived_from, middle.derived_from) == (large.config_id, None, large.config_id)
    assert len({each.config_id for each in found.configurations}) == 6


def test_a_grid_over_parameters_is_one_source_a_combination(folder: Path) -> None:
    found = load(folder, GOOD + "grid: {k1: [0.9, 1.2], top_k: [10, 5]}\n").evaluation
    assert [each.name for each in found.configurations] == [
        "bm25:k1=0.9,top_k=10",
        "bm25:k1=0.9,top_k=5",
        "bm25:k1=1.2,top_k=10",
        "bm25:k1=1.2,top_k=5",
        "old:top_k=10",
        "old:top_k=5",
    ]
    assert [each.source for each in found.configurations] == [0, 0, 1, 1, 2, 2]
    assert [json.loads(each.parameters)["retriever"].get("k1") for each in found.configurations[::2]] == [
        0.9,
        1.2,
        None,
    ]


def test_configurations_that_differ_in_top_k_share_a_source(folder: Path) -> None:
    more = BM25 + "    top_k: 5\n  - name: other\n    top_k: 7\n    retriever: {b: 0.4, type: bm25}\n"
    first, second, _ = load(folder, changed(BM25, more)).evaluation.configurations
    assert (first.source, second.source) == (0, 0)
    assert (first.derived_from, second.derived_from) == (second.config_id, None)


def test_all_of_a_run_is_what_its_prefixes_are_derived_from(folder: Path) -> None:
    text = GOOD.replace(
        "metrics:", "  - {name: cut, top_k: 1000000, retriever: {path: data/old.run, type: run_file}}\nmetrics:"
    )
    _, whole, cut = load(folder, text).evaluation.configurations
    assert (whole.derived_from, cut.derived_from, whole.source == cut.source) == (None, whole.config_id, True)


SAME = [
    GOOD.replace("{type: bm25, b: 0.4}", "{b: 0.4, type: bm25}"),
    GOOD.replace("b: 0.4}", "b: 0.4, k1: 1.2, method: lucene}"),
    GOOD.replace("b: 0.4}", "b: 0.4, k1: 1.20}\n    top_k: 100"),
    GOOD.replace("name: helpdesk", "name: another").replace("[nDCG@10, map, P.5]", "[RR]"),
    GOOD.replace("name: bm25", "name: renamed").replace("slices: [language]\n", "baseline: old\n"),
    GOOD.replace("{path: out}", "{path: elsewhere, rankings: false}"),
    GOOD.replace(BM25, "").replace("metrics:", BM25 + "metrics:"),
]


@pytest.mark.parametrize("text", SAME)
def test_the_config_id_depends_on_nothing_else(folder: Path, text: str) -> None:
    ids = {each.retriever: each.config_id for each in load(folder, GOOD).evaluation.configurations}
    assert {each.retriever: each.config_id for each in load(folder, text).evaluation.configurations} == ids


def test_a_whole_number_is_the_same_as_with_a_fraction(folder: Path) -> None:
    ids = [load(folder, changed("b: 0.4", f"b: 0.4, k1: {k1}")).evaluation for k1 in ("1", "1.0")]
    assert ids[0].configurations == ids[1].configurations


@pytest.mark.parametrize(
    "parameter", ["b: 0.5", "b: 0.4, k1: 1.3", "b: 0.4, method: robertson", "b: 0.4, fields: [text]"]
)
def test_the_config_id_depends_on_every_parameter(folder: Path, parameter: str) -> None:
    before, after = (load(folder, text).evaluation.configurations for text in (GOOD, changed("b: 0.4", parameter)))
    assert before[0].config_id != after[0].config_id
    assert before[1].config_id == after[1].config_id


def test_the_config_id_does_not_change_between_versions(folder: Path) -> None:
    # Dashboards select by it. A new parameter with a default would change it: then this number may change too.
    assert load(folder, GOOD).evaluation.configurations[1].config_id == "f69f17037663"


@pytest.mark.parametrize(("line", "place"), [("baseline: old\n", 1), ("baseline: bm25\n", 0), ("", 0)])
def test_the_baseline(folder: Path, line: str, place: int) -> None:
    assert load(folder, GOOD + line).evaluation.baseline == place


def test_defaults(folder: Path) -> None:
    text = GOOD.replace("metrics: [nDCG@10, map, P.5]\nslices: [language]\n", "")
    evaluation = load(folder, text).evaluation
    assert [str(metric) for metric in evaluation.metrics] == ["nDCG@10", "R@100", "RR@10", "AP"]
    assert evaluation.slices == ()


@pytest.mark.parametrize(("unit", "bm25", "old"), [("document", False, True), ("chunk", True, True)])
def test_repeated_documents_are_refused_where_they_cannot_be(folder: Path, unit: str, bm25: bool, old: bool) -> None:
    sources = load(folder, changed("dataset:\n", f"dataset:\n  unit: {unit}\n")).evaluation.sources
    assert [source.refuse_repeats for source in sources] == [bm25, old]


def test_parameters_may_be_merged_and_overridden(folder: Path) -> None:
    text = GOOD.replace("{type: bm25, b: 0.4}", "&base {type: bm25, b: 0.4}")
    text = text.replace("metrics:", "  - {name: sharp, retriever: {<<: *base, b: 0.9}}\nmetrics:")
    evaluation = load(folder, text).evaluation
    assert [json.loads(each.parameters)["retriever"].get("b") for each in evaluation.configurations] == [0.4, None, 0.9]


# --- One mistake at a time ---------------------------------------------------------------------------------------

MISTAKES = [
    ("name: helpdesk", "nam: helpdesk", ["1: name: is missing", "1: nam: unknown key; did you mean 'name'?"]),
    ("output:", "zzz: 1\noutput:", [
        "13: zzz: unknown key; valid are: " + ", ".join(sorted(ExperimentModel.model_fields)),
    ]),
    ("  queries:", "  querys: x\n  queries:", ["4: dataset.querys: unknown key; did you mean 'queries'?"]),
    ("name: old", "nome: x\n    name: old", ["9: configurations[1].nome: unknown key; did you mean 'name'?"]),
    ("{path: out}", "{path: out, ranking: true}", ["13: output.ranking: unknown key; did you mean 'rankings'?"]),
    ("b: 0.4", "bb: 1, stopwords: none", [
        "8: configurations[0].retriever.bb: unknown key; did you mean 'b'?",
        "8: configurations[0].retriever.stopwords: unknown key; did you mean 'stop_words'?",
    ]),
    ("type: bm25", "type: bm52", [
        "8: configurations[0].retriever.type: unknown retriever type 'bm52'; did you mean 'bm25'?",
    ]),
    ("type: bm25, ", "", ["8: configurations[0].retriever.type: is missing"]),
    ("type: bm25", "type: [bm25]", ["8: configurations[0].retriever.type: is not a word"]),
    ("b: 0.4", "b: [1]", ["8: configurations[0].retriever.b: input should be a valid number, found [1]"]),
    ("b: 0.4", "b: 1.5", ["8: configurations[0].retriever.b: input should be less than or equal to 1, found 1.5"]),
    ("b: 0.4", "stemming: englsh", [
        "8: configurations[0].retriever.stemming: unknown stemming; did you mean 'english'?, found 'englsh'",
    ]),
    ("type: run_file, path: data/old.run", "type: run_file", ["10: configurations[1].retriever.path: is missing"]),
    ("P.5", "Jugded@5", ["11: metrics[2]: unknown metric 'Jugded'; did you mean 'Judged'?"]),
    ("name: helpdesk", "name: 42", ["1: name: input should be a valid string, found 42"]),
    ("name: bm25", "name: bm25\n    top_k: ten", [
        "8: configurations[0].top_k: input should be a valid integer, found 'ten'",
    ]),
    ("name: bm25", "name: bm25\n    top_k: 0", [
        "8: configurations[0].top_k: input should be greater than or equal to 1, found 0",
    ]),
    ("[nDCG@10, map, P.5]", "AP", ["11: metrics: input should be a valid list, found 'AP'"]),
    ("[nDCG@10, map, P.5]", "[]", [
        "11: metrics: list should have at least 1 item after validation, not 0, found []",
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
    ("output:", "grid: {k1: 0.9}\noutput:", ["13: grid.k1: input should be a valid list, found 0.9"]),
    ("output:", "grid: {top_k: [5, many]}\noutput:", [
        "13: grid.top_k: input should be whole numbers from 1 to 2,147,483,647, found [5, 'many']",
    ]),
    ("output:", "grid: {k1: [1, high]}\noutput:", [
        "13: grid.k1: input should be a valid number, unable to parse string as a number, found 'high'",
    ]),
    ("output:", "baseline: bm52\noutput:", ["13: baseline: no configuration is named 'bm52'; did you mean 'bm25'?"]),
    ("  corpus: data/corpus.jsonl\n", "", [
        "2: dataset.corpus: is missing; a configuration's retriever needs the corpus",
    ]),
    ("name: helpdesk", "name: helpdesk\nname: again", ["2: name: is given twice; keep one"]),
    ("b: 0.4", "b: 0.4, b: 0.5", ["8: configurations[0].retriever.b: is given twice; keep one"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES, ids=[new.strip()[:30] for _, new, _ in MISTAKES])
def test_a_mistake(folder: Path, old: str, new: str, expected: list[str]) -> None:
    assert problems(folder, changed(old, new)) == expected


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
        f"5: dataset.corpus: {folder}/data/corpus.json: no such file",
    ]


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
    found = [": ".join(problem.split(": ")[:2]) for problem in problems(folder, bad)]
    assert found == [
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
