"""`corpora:`: entries that retrievers name, the grid over their parameters, and every mistake with its line."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.experiments import install, load, problems
from support.inputs import json_texts, write

from rankbeam.pipelines.plan.plan import plan_of
from rankbeam.transforms.clients.corpora.chunks import Chunks
from rankbeam.transforms.clients.parameters import entry_points_of

LOCAL = "corpora: {local: {type: chunks}}\n"
BM25 = "retriever: {type: bm25, corpus: local}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install(tmp_path, monkeypatch)
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "a document")]))
    yield tmp_path
    entry_points_of.cache_clear()


def text(configurations: Mapping[str, str], more: str = LOCAL, dataset: str = ", corpus: corpus.jsonl") -> str:
    """An experiment; `more` begins in the line below those of the configurations, two lines on."""
    lines = [f"  - {{name: {name}, {content}}}\n" for name, content in configurations.items()]
    start = f"name: e\ndataset: {{qrels: qrels, queries: queries.jsonl{dataset}}}\nconfigurations:\n"
    return f"{start}{''.join(lines)}metrics: [AP]\noutput: {{path: out}}\n{more}"


def test_a_corpus_is_a_component_of_a_configuration_by_what_it_is_and_not_by_its_name(folder: Path) -> None:
    (configuration,) = load(folder, text({"a": BM25})).evaluation.configurations
    renamed = text({"a": "retriever: {type: bm25, corpus: other}"}, "corpora: {other: {type: chunks}}\n")

    assert json.loads(configuration.parameters)["corpus"] == {
        "type": "chunks",
        "by": "words",
        "chunk_size": 512,
        "chunk_overlap": 0,
    }
    assert load(folder, renamed).evaluation.configurations[0].config_id == configuration.config_id


def test_a_configuration_without_a_corpus_is_what_it_was(folder: Path) -> None:
    (plain,) = load(folder, text({"a": "retriever: {type: bm25}"}, "")).evaluation.configurations
    beside = load(folder, text({"a": "retriever: {type: bm25}", "b": BM25})).evaluation.configurations

    assert beside[0].config_id == plain.config_id
    assert "corpus" not in json.loads(plain.parameters)


@pytest.mark.parametrize("dot", ["", "corpus."])
def test_the_grid_replaces_parameters_of_a_corpus_and_repeats_no_other_configuration(folder: Path, dot: str) -> None:
    grid = f"grid: {{{dot}chunk_size: [64, 128], {dot}chunk_overlap: [0, 16], top_k: [5, 10]}}\n"
    experiment = load(folder, text({"plain": "retriever: {type: bm25}", "a": BM25}, LOCAL + grid))
    names = [configuration.name for configuration in experiment.evaluation.configurations]

    assert names[:2] == ["plain:top_k=5", "plain:top_k=10"]
    assert len(names) == 2 + 8
    assert names[-1] == f"a:{dot}chunk_size=128,{dot}chunk_overlap=16,top_k=10"
    assert [str(configuration.chunking) for configuration in experiment.documents_by_source.values()] == [
        "None",
        "chunks of at most 64 words",
        "chunks of at most 64 words, 16 of them shared",
        "chunks of at most 128 words",
        "chunks of at most 128 words, 16 of them shared",
    ]


def test_configurations_with_equal_retrievers_over_equal_corpora_share_a_ranking(folder: Path) -> None:
    both = {"a": f"{BM25}, top_k: 5", "b": "retriever: {type: bm25, corpus: again}, top_k: 10"}
    experiment = load(folder, text(both, "corpora: {local: {type: chunks}, again: {type: chunks, chunk_size: 512}}\n"))

    assert [configuration.source for configuration in experiment.evaluation.configurations] == [0, 0]


def test_corpora_that_no_configuration_searches_are_said_with_their_line(folder: Path) -> None:
    warnings = list(load(folder, text({"a": "retriever: {type: bm25}"})).evaluation.warnings())

    assert warnings == [f"{folder}/e.yaml:7: corpora.local: no configuration searches this corpus"]


def test_a_plan_names_every_corpus_once_and_how_many_configurations_search_it(folder: Path) -> None:
    grid = "grid: {chunk_size: [64, 128], top_k: [5, 10]}\n"
    plan = plan_of(load(folder, text({"a": BM25}, LOCAL + grid)))

    assert [corpus.line() for corpus in plan.corpora] == [
        "corpus local: chunks of at most 64 words · 2 configurations search it",
        "corpus local: chunks of at most 128 words · 2 configurations search it",
    ]
    assert plan.corpora[0].line() in plan.as_text()


MISTAKES = [
    ("corpora: {local: {typ: chunks}}\n", "7: corpora.local.type: is missing; a corpus is {type: …, parameters"),
    ("corpora: {local: words}\n", "7: corpora.local.type: is missing; a corpus is {type: …, parameters"),
    ("corpora: {local: {type: chunk}}\n", "7: corpora.local.type: unknown corpus type 'chunk'; did you mean 'chunks'?"),
    ("corpora: {local: {type: chunks, size: 5}}\n", "7: corpora.local.size: unknown key; valid are: by, "),
    ("corpora: {local: {type: chunks, by: lines}}\n", "7: corpora.local.by: must be 'words', 'tokens'"),
    ("corpora: {local: {type: chunks, chunk_size: 0}}\n", "7: corpora.local.chunk_size: must be at least"),
    ("corpora: {local: {type: chunks, chunk_size: 9, chunk_overlap: 9}}\n",
     "7: corpora.local.chunk_overlap: is not less than chunk_size, 9, found 9"),
    (f"{LOCAL}grid: {{chunk_size: [64, 16], chunk_overlap: [0, 16]}}\n",
     "8: grid.chunk_overlap: is not less than chunk_size, 16, found 16"),
    ("corpora: {local: {type: chunks, chunk_overlap: 16}}\ngrid: {chunk_size: [64, 16]}\n",
     "7: corpora.local.chunk_overlap: is not less than chunk_size, 16, found 16"),
    (f"{LOCAL}grid: {{chunk_sizes: [64]}}\n",
     "8: grid.chunk_sizes: no configuration has this parameter; did you mean 'chunk_size'?"),
    (f"{LOCAL}grid: {{corpus: [local]}}\n", "8: grid.corpus: names an entry of corpora:; name it in the retriever"),
    ("corpora: {locl: {type: chunks}}\n",
     "4: configurations[0].retriever.corpus: corpora: has no 'local'; did you mean 'locl'?"),
    ("", "4: configurations[0].retriever.corpus: corpora: has no 'local'; name it there: {NAME: {type: chunks}}"),
    ("corpora: {local: {type: chunks}, spare: {type: chunks, by: lines}}\n",
     "7: corpora.spare.by: must be 'words', 'tokens'"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "expected"), MISTAKES)
def test_a_mistake(folder: Path, more: str, expected: str) -> None:
    (problem,) = problems(folder, text({"a": BM25}, more))
    assert problem.startswith(expected)


def test_a_corpus_needs_the_documents(folder: Path) -> None:
    messages = problems(folder, text({"a": BM25}, dataset=""))
    assert messages == ["2: dataset.corpus: is missing; a configuration's retriever needs the corpus"]


def test_a_retriever_that_searches_no_corpus_takes_none(folder: Path) -> None:
    (problem,) = problems(folder, text({"a": "retriever: {type: near, corpus: local}"}))
    assert problem.startswith("4: configurations[0].retriever.corpus: unknown key")


def test_chunks_that_split_longer_units_have_another_identity_and_others_the_one_of_the_first_release() -> None:
    whole, split = Chunks(by="headings"), Chunks(by="headings", longer="split")

    assert "longer" not in whole.decisive()
    assert whole.chunking.identity == ["headings", 512, 0]
    assert split.decisive() == {**whole.decisive(), "longer": "split"}
    assert split.chunking.identity == ["headings", 512, 0, "split"]
