"""Needs of judged metrics and models: reference answers, texts, a judge; and a dataset without judgements."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.experiments import install
from support.inputs import json_texts, trec_run, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import parse_experiment
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.dataset import References
from rankbeam.transforms.records.errors import InputError

TEXT = """\
name: e
dataset: {queries: queries.jsonl, corpus: corpus.jsonl, answers: answer}
services: {m: {type: remote_model, model: one}}
configurations:
  - {name: rag, retriever: {type: near}, generate: {service: m}}
judge: {service: m}
metrics: [Faithfulness, context_recall]
output: {path: out}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install(tmp_path, monkeypatch)
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "a", "answer": "a long text", "zone": "x"}\n')
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "a document")]))
    write(tmp_path / "answers.jsonl", '{"query_id": "q1", "answer": "yes"}\n')
    write(tmp_path / "old.run", trec_run([("q1", "d1", 1.0)]))
    yield tmp_path
    entry_points_of.cache_clear()


def parsed(folder: Path, text: str) -> Experiment:
    return parse_experiment(text, str(folder / "e.yaml"))


def test_judged_metrics_need_no_judgements(folder: Path) -> None:
    experiment = parsed(folder, TEXT)
    assert (experiment.dataset.qrels, experiment.dataset.references) == (None, References(attribute="answer"))
    assert experiment.evaluation.metrics == (JudgedMetric("Faithfulness"), JudgedMetric("ContextRecall"))
    assert [str(metric) for metric in experiment.judged] == ["Faithfulness", "ContextRecall"]


def test_reference_answers_may_have_a_file_of_their_own(folder: Path) -> None:
    experiment = parsed(folder, TEXT.replace("answers: answer", "answers: {path: answers.jsonl}"))
    assert experiment.dataset.references == References(path=f"{folder}/answers.jsonl")
    assert f"{folder}/answers.jsonl" in experiment.inputs()


MISTAKES = [
    ("[Faithfulness, context_recall]", "[nDCG@10, AP, Faithfulness]",
     "2: dataset.qrels: is missing; nDCG@10, AP need judgements"),
    ("[Faithfulness, context_recall]", "[AP, Faithfulness]", "2: dataset.qrels: is missing; AP needs judgements"),
    ("metrics: [Faithfulness, context_recall]\n", "",
     "2: dataset.qrels: is missing; nDCG@10, R@100, RR@10, AP need judgements"),
    (", answers: answer", "", "7: metrics[1]: ContextRecall needs reference answers; say where they are: "),
    ("judge: {service: m}\nmetrics: [Faithfulness, context_recall]", "metrics: [Faithfulness]",
     "6: metrics[0]: Faithfulness is judged; name the model that judges: judge: {service: NAME}"),
    ("context_recall", "AnswerSimilarity", "7: metrics[1]: AnswerSimilarity compares embeddings; name the model"),
    ("context_recall", "NuggetAll", "7: metrics[1]: NuggetAll needs nuggets, which a file of reference answers has"),
    ("context_recall", "Consistency", "7: metrics[1]: Consistency compares several answers of one model; ask for them"),
    (", generate: {service: m}", "", "7: metrics[0]: Faithfulness judges answers, but no configuration has any"),
    (", generate: {service: m}", ", generate: null",
     "7: metrics[0]: Faithfulness judges answers, but no configuration has any"),
    ("context_recall", "ContextRecal", "7: metrics[1]: unknown metric 'ContextRecal'; did you mean 'ContextRecall'?"),
    ("answers: answer", "answers: answr",
     "2: dataset.answers: no query has the attribute 'answr'; did you mean 'answer'?"),
    ("answers: answer", "answers: {path: no.jsonl}", "2: dataset.answers.path: {folder}/no.jsonl: no such file"),
    ("answers: answer", "answers: {path: old.run}",
     "2: dataset.answers.path: {folder}/old.run: is not a file of reference answers: JSON lines with"),
    ("answers: answer", "answers: {path: a, attribute: b}",
     "2: dataset.answers: is an attribute of the queries, or a mapping with path; give one of them"),
    ("answers: answer", "answers: {pth: a}", "2: dataset.answers.pth: unknown key; did you mean 'path'?"),
    ("output:", "slices: [answer]\noutput:",
     "8: slices[0]: no query has the attribute 'answer'; valid are: zone"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_a_mistake(folder: Path, old: str, new: str, expected: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        parsed(folder, TEXT.replace(old, new))
    lines = [line.removeprefix(f"{folder}/e.yaml:") for line in str(caught.value).split("\n")]
    assert lines[0].startswith(expected.replace("{folder}", str(folder)))


def test_contexts_are_judged_without_answers_where_their_number_is_given(folder: Path) -> None:
    text = TEXT.replace(", generate: {service: m}", "").replace("Faithfulness, context_recall", "context_recall")
    with pytest.raises(InputError, match=r"judges contexts; set the number of first results, such as ContextRecall@5"):
        parsed(folder, text)
    experiment = parsed(folder, text.replace("context_recall", "context_recall@5"))
    assert [str(metric) for metric in experiment.judged] == ["ContextRecall@5"]


def test_texts_of_documents_that_a_run_names_stand_in_the_corpus(folder: Path) -> None:
    text = TEXT.replace("{type: near}", "{type: run_file, path: old.run}")
    assert parsed(folder, text)
    problem = r"2: dataset\.corpus: is missing; the run of 'rag' names documents, whose texts are read from there"
    with pytest.raises(InputError, match=problem):
        parsed(folder, text.replace("corpus: corpus.jsonl, ", ""))
