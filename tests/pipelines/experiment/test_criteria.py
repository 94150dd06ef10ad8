"""Criteria in an experiment file: what they mean, and every mistake with its line."""

import json
from pathlib import Path

import pytest
from support.inputs import json_texts, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import parse_experiment
from rankbeam.transforms.records.errors import InputError

TEXT = """\
name: e
dataset: {queries: queries.jsonl, corpus: corpus.jsonl}
services: {m: {type: lexical}, reader: {type: extractive}}
configurations:
  - {name: rag, retriever: {type: bm25}, top_k: 3, generate: {service: reader}}
judge:
  service: m
  criteria:
    Tone: {question: "Is it polite?"}
    Current: {question: current.txt, about: [query, context], scale: 0..3}
metrics: [Tone, Current@2, "Criterion(Current)"]
race: {metric: Tone}
gates: [{metric: Tone, at_least: 0.5}]
output: {path: out}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "a"}\n')
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "a document")]))
    write(tmp_path / "current.txt", "Is it current?\n")
    write(tmp_path / "empty.txt", "\n")
    return tmp_path


def parsed(folder: Path, text: str) -> Experiment:
    return parse_experiment(text, str(folder / "e.yaml"))


def test_a_criterion_is_a_metric(folder: Path) -> None:
    experiment = parsed(folder, TEXT)
    names = ["Criterion(Tone,judge=lexical)", "Criterion(Current,judge=lexical)@2", "Criterion(Current,judge=lexical)"]
    assert [str(metric) for metric in experiment.judged] == names
    tone, current, _ = (metric.criterion for metric in experiment.judged)
    assert tone is not None
    assert (tone.about, tone.levels) == (("query", "answer"), (("yes", 1.0), ("no", 0.0)))
    assert current is not None
    assert (current.question, current.levels[1]) == ("Is it current?", ("1", 1 / 3))
    assert [gate.metric for gate in experiment.gates] == names[:1]
    assert experiment.evaluation.race is not None
    assert experiment.evaluation.race.metric == names[0]


def test_a_question_alone_is_the_same_criterion(folder: Path) -> None:
    alone = TEXT.replace('{question: "Is it polite?"}', "Is it polite?")
    assert alone != TEXT
    assert parsed(folder, alone).judged == parsed(folder, TEXT).judged
    file = TEXT.replace('{question: "Is it polite?"}', "current.txt")
    assert parsed(folder, file).judged[0].criterion.question == "Is it current?"  # type: ignore[union-attr]


def test_words_that_yaml_reads_as_booleans_and_numbers_are_words(folder: Path) -> None:
    text = TEXT.replace('polite?"}', 'polite?", scale: {yes: 1, no: 0, 2: 0.5}}')
    (tone, *_) = parsed(folder, text).judged
    assert tone.criterion is not None
    assert tone.criterion.levels == (("yes", 1.0), ("no", 0.0), ("2", 0.5))


def test_examples_are_part_of_the_prompt(folder: Path) -> None:
    lines = '{"query": "who?", "context": "Ann, in 2019.", "verdict": 1, "reason": "an old year"}\n'
    write(folder / "examples.jsonl", lines)
    experiment = parsed(folder, TEXT.replace("scale: 0..3}", "scale: 0..3, examples: examples.jsonl}"))
    tone, current, _ = (metric.criterion for metric in experiment.judged)
    assert tone is not None
    assert current is not None
    assert tone.examples == ""
    expected = "(query) who?\n(context) Ann, in 2019.\nreason: an old year\nverdict: 1\n"
    assert current.examples == f"\nExamples of right verdicts on other texts:\n\n{expected}"


RUBRICS = TEXT.replace('Tone: {question: "Is it polite?"}', "Tone: {rubrics: {attribute: rules}, about: [answer]}")
TWO = TEXT.replace("race: {metric: Tone}\n", "").replace(
    "configurations:\n",
    """\
configurations:
  - {name: short, retriever: {type: bm25}, top_k: 1, generate: {service: reader}}
""",
)
PAIRS = TWO.replace('polite?"}', 'polite?", pairs: baseline}')


def test_rubrics_are_an_attribute_of_queries(folder: Path) -> None:
    for rules in (["It is short."], "It is short.\nIt is polite."):
        write(folder / "queries.jsonl", json.dumps({"_id": "q1", "text": "a", "rules": rules}) + "\n")
        tone, *_ = parsed(folder, RUBRICS).judged
        assert tone.criterion is not None
        assert tone.criterion.rubrics == "rules"
        assert tone.criterion.texts == ("statement", "answer")


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"rules": [1]}, "queries.jsonl:1: rules is not a list of strings"),
        ({"rules": {"a": "b"}}, "queries.jsonl:1: rules is not a list of strings"),
        ({"rule": ["It is short."]}, "9: judge.criteria.Tone.rubrics.attribute: no query has the attribute 'rules'"),
        ({}, "they have no attributes"),
    ],
)
def test_queries_without_statements_are_refused(folder: Path, attributes: dict[str, object], problem: str) -> None:
    write(folder / "queries.jsonl", json.dumps({"_id": "q1", "text": "a", **attributes}) + "\n")
    with pytest.raises(InputError) as caught:
        parsed(folder, RUBRICS)
    assert problem in str(caught.value)


def test_pairs_have_verdicts_and_examples_of_their_own(folder: Path) -> None:
    lines = '{"query": "who?", "answer 1": "Ann.", "answer 2": "Not Bob.", "verdict": "answer 1", "reason": "clear"}\n'
    write(folder / "examples.jsonl", lines)
    tone, *_ = parsed(folder, PAIRS.replace("pairs: baseline", "pairs: baseline, examples: examples.jsonl")).judged
    assert tone.criterion is not None
    assert tone.criterion.levels == (("answer 1", 1.0), ("tie", 0.0), ("answer 2", -1.0))
    assert "(answer 1) Ann.\n(answer 2) Not Bob.\nreason: clear\nverdict: answer 1\n" in tone.criterion.examples
    assert (tone.lowest, tone.highest) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pairs: baseline", "pairs: others", "10: judge.criteria.Tone.pairs: "),
        (
            "pairs: baseline",
            "pairs: all, scale: 0..3",
            "10: judge.criteria.Tone.scale: would not be used: the verdicts",
        ),
        (
            "pairs: baseline",
            "pairs: all, about: [query]",
            "10: judge.criteria.Tone.about: names texts that pairs cannot use",
        ),
        (
            "pairs: baseline",
            "pairs: all, about: [answer, context]",
            "10: judge.criteria.Tone.about: names texts that pairs cannot use",
        ),
        ("pairs: baseline", "pairs: all, rubrics: {attribute: a}", "10: judge.criteria.Tone.pairs: compares answers"),
        ("gates:", "race: {metric: Tone}\ngates:", "but a race drops some; remove one of the two"),
        ("top_k: 1, generate: {service: reader}", "top_k: 1", "fewer than two have answers"),
        (
            "configurations:",
            "configurations:\n  - {name: found, retriever: {type: bm25}, top_k: 9}",
            "compares with the baseline, but 'found' has no answers; name another one under baseline:",
        ),
    ],
)
def test_mistakes_in_pairs_name_their_line(folder: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(folder, PAIRS.replace(old, new, 1))
    assert problem in str(caught.value)


def test_a_mistake_elsewhere_does_not_make_a_race(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        parsed(folder, PAIRS + "statistics: {seed: x}\n")
    assert str(caught.value).count("\n") == 0
    assert "statistics.seed: must be a whole number" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            '{"query": "a", "verdict": 1, "reason": ""}',
            "examples.jsonl:1: expected an object with query, context",
        ),
        ('{"query": "a", "context": "b", "verdict": 7, "reason": ""}', "verdict '7' is not on the scale"),
        ('{"query": "a", "context": ["b"], "verdict": 1, "reason": ""}', "texts and reasons are strings"),
        ("[]", "expected an object with"),
        ('{"query": "a", "context": "b", "verdict": 1, "reason": null}', "texts and reasons are strings"),
        (
            "\n".join(f'{{"query": "a", "context": "b", "verdict": {grade}, "reason": ""}}' for grade in (1, 2)),
            "examples.jsonl:2: verdict '2' contradicts line 1, which has the same texts",
        ),
    ],
)
def test_what_is_not_an_example_is_refused(folder: Path, line: str, problem: str) -> None:
    write(folder / "examples.jsonl", f"{line}\n")
    with pytest.raises(InputError) as caught:
        parsed(folder, TEXT.replace("scale: 0..3}", "scale: 0..3, examples: examples.jsonl}"))
    assert "10: judge.criteria.Current.examples: " in str(caught.value)
    assert problem in str(caught.value)


def test_a_criterion_that_is_in_no_metric_is_warned_of(folder: Path) -> None:
    experiment = parsed(folder, TEXT.replace('Current@2, "Criterion(Current)"', "AnswerRelevance"))
    (note,) = experiment.evaluation.notes
    assert note.endswith("10: judge.criteria.Current: is not one of the metrics, so it is not judged")


@pytest.mark.parametrize(
    ("question", "end", "problem"),
    [
        ('""', "", "9: judge.criteria.Tone.question: must not be empty, found ''"),
        ('{question: ""}', "", "9: judge.criteria.Tone.question: must not be empty, found ''"),
        ("5", "", "9: judge.criteria.Tone: must be a mapping of keys to values, found 5"),
        ("Is it polite?", "decide_by: [Tone]\n", "14: decide_by: must be a text, found ['Tone']"),
    ],
)
def test_a_mistake_does_not_make_criteria_unknown(folder: Path, question: str, end: str, problem: str) -> None:
    text = TEXT.replace("race: {metric: Tone}\n", "").replace('{question: "Is it polite?"}', question)
    with pytest.raises(InputError) as caught:
        parsed(folder, text + end)
    assert str(caught.value) == f"{folder}/e.yaml:{problem}"


def test_an_invalid_criterion_is_reported_once(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        parsed(folder, TEXT.replace("Is it polite?", "  ").replace("race: {metric: Tone}\n", "").replace(
            "gates: [{metric: Tone, at_least: 0.5}]\n", ""
        ))  # fmt: skip
    assert str(caught.value).endswith("9: judge.criteria.Tone.question: is blank; write the question")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    Tone:", "    tone:", "9: judge.criteria.tone: is not a name; begin with a capital letter"),
        ("    Tone:", "    Faithfulness:", "9: judge.criteria.Faithfulness: is the name of another metric"),
        ("    Tone:", "    NDCG:", "9: judge.criteria.NDCG: is the name of another metric"),
        ('polite?"}', 'polite?", scale: {yes: 1}}', "9: judge.criteria.Tone.scale: a scale needs verdicts"),
        ('polite?"}', 'polite?", scale: 1-5}', "9: judge.criteria.Tone.scale: '1-5' is not a scale; write 0..3, or"),
        ('polite?"}', 'polite?", about: [answer, answer]}', "9: judge.criteria.Tone.about: names a text twice"),
        ('polite?"}', 'polite?", about: [context, contexts]}', "9: judge.criteria.Tone.about: names a text twice"),
        ('polite?"}', 'polite?", about: [reply]}', "9: judge.criteria.Tone.about[0]"),
        ('polite?"}', 'polite?", about: []}', "9: judge.criteria.Tone.about"),
        ('polite?"}', 'polite?", about: [answer, reference]}', "11: metrics[0]: Criterion(Tone,judge=lexical) needs"),
        ('polite?"}', 'polite?", scale: 3}', "9: judge.criteria.Tone.scale: is not a scale; write 0..3"),
        ('polite?"}', 'polite?", abuot: [answer]}', "9: judge.criteria.Tone.abuot: unknown key; did you mean 'about'?"),
        ("current.txt", "absent.txt", "10: judge.criteria.Current.question: "),
        ("current.txt", "empty.txt", "is empty; write the question"),
        ("question: current.txt, ", "", "10: judge.criteria.Current.question"),
        ("metrics: [Tone", "metrics: [Tune", "criteria of judge: Tone, Current"),
        ("    Current:", "    TONE:", "10: judge.criteria.TONE: differs from another criterion only in case"),
        ("metrics: [Tone", "metrics: [Criterion(Tune)", "metrics[0]: Criterion(Tune) is not one of judge.criteria"),
        ("metrics: [Tone", "metrics: [Tone@3", "11: metrics[0]: Criterion(Tone)@3 has a cutoff"),
    ],
)  # fmt: skip
def test_mistakes_name_their_line(folder: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(folder, TEXT.replace(old, new, 1))
    assert problem in str(caught.value)
