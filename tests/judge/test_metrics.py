"""Names of judged metrics: one per metric, other tools' names accepted, and definitions that say what they need."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.claims import matrices

from rankbeam.transforms.judge.definitions import INPUTS, JUDGED, OTHER_TOOLS, base_names
from rankbeam.transforms.judge.metrics import (
    JudgedMetric,
    notes,
    parse_all,
    parse_judged,
)
from rankbeam.transforms.kernels.judged import AnswerKind, NuggetAssignment, Undefined
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics.definitions import ALIASES, METRICS
from rankbeam.transforms.records.metrics.names import Metric, parse_metric
from rankbeam.transforms.records.metrics.trec_names import parse_metrics


@pytest.mark.parametrize("name", JUDGED)
def test_a_judged_metric_is_read_back_as_it_was_written(name: str) -> None:
    definition = JUDGED[name]
    for cutoff in (None, 5) if definition.takes_cutoff else (None,):
        metric = JudgedMetric(name, cutoff).shown(judge="lexical", embeddings="hashed")
        assert parse_judged(str(metric)) == metric
        assert parse_judged(str(metric).upper().split("(")[0] + str(metric)[len(name.split("(")[0]) :]) == metric
        assert parse_all([str(JudgedMetric(name, cutoff))]) == [JudgedMetric(name, cutoff)]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("faithfulness", "Faithfulness"),
        ("answer_relevancy", "AnswerRelevance"),
        ("context_relevancy@5", "ContextRelevance@5"),
        ("context_recall", "ContextRecall"),
        ("context_precision@3", "ContextAP@3"),
        ("ClaimRecall_answer", "ClaimRecall"),
        ("answer_correctness", "AnswerCorrectness(ragas)"),
        (" Faithfulness ( ragas ) ", "Faithfulness(ragas)"),
        ("faithfulness(ragas)", "Faithfulness(ragas)"),
        ("Faithfulness(judge=lexical)", "Faithfulness(judge=lexical)"),
        ("Faithfulness(judge=lexical,ragas)", "Faithfulness(ragas,judge=lexical)"),
        ("AnswerRelevance(embeddings=e5, ragas, judge=j)", "AnswerRelevance(ragas,judge=j,embeddings=e5)"),
        ("AnswerSimilarity(judge=lexical,embeddings=e5)", "AnswerSimilarity(embeddings=e5)"),
        ("noisesensitivity(relevant)", "NoiseSensitivity(relevant)"),
        ("ContextPrecision(claims)@10", "ContextPrecision(claims)@10"),
    ],
)
def test_a_judged_metric_has_one_name(text: str, canonical: str) -> None:
    assert str(parse_judged(text)) == canonical


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Faithfulnes", "did you mean 'Faithfulness'?"),
        ("NoiseSensitivity", "write NoiseSensitivity(relevant) or NoiseSensitivity(irrelevant)"),
        ("ContextPrecision", "write ContextPrecision(claims); ragas' context_precision is ContextAP"),
        ("AnswerCorrectness", "write AnswerCorrectness(ragas)"),
        ("Faithfulness(raga)", "write Faithfulness or Faithfulness(ragas)"),
        ("NuggetAll(strict,ragas)", "write NuggetAll or NuggetAll(strict)"),
        ("Faithfulness(rel=2)", "unknown option 'rel'; valid are: embeddings, judge"),
        ("Faithfulness(judge=)", "judge= is not the name of a service"),
        ("Faithfulness(ragas,ragas)", "the option 'ragas' is given twice"),
        ("Faithfulness@5", "takes no cutoff: write Faithfulness"),
        ("CitationRecall@5", "takes no cutoff"),
        ("ContextRecall@0", "not a positive whole number"),
    ],
)
def test_what_is_no_judged_metric_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_judged(text)
    assert hint in str(caught.value)


def test_an_unknown_metric_is_answered_with_every_name_once_by_family() -> None:
    with pytest.raises(InputError) as caught:
        parse_all(["xyzzy"])
    first, *lines = str(caught.value).split("\n")
    assert first == "unknown metric 'xyzzy'; valid are:"
    families = dict(line.strip().split(": ", 1) for line in lines)
    names = [name for listed in families.values() for name in listed.split(", ")]
    assert len(set(names)) == len(names)
    assert {*METRICS, *ALIASES, *(name.partition("(")[0] for name in JUDGED)} <= {*names, "RPrec", "BPref"}
    assert families["answers, without a judge"] == "BLEU, Consistency, ExactMatch, ROUGE-L, TokenF1, chrF"
    assert {"Faithfulness", "ContextRecall"} <= {*families["answers and contexts, judged"].split(", ")}


def test_names_of_retrieval_metrics_mean_what_they_did() -> None:
    assert not {name.lower() for name in (*METRICS, *ALIASES)} & {
        name.lower() for name in (*base_names(), *OTHER_TOOLS)
    }
    for text in ("nDCG@10", "P(rel=2)@5", "AP(judged_only=True)", "MRR@10"):
        assert parse_all([text]) == [parse_metric(text)]
        assert isinstance(parse_all([text])[0], Metric)
    assert [str(metric) for metric in parse_metrics(["map", "P.5,10", "ndcg_cut_10"])] == [
        "AP",
        "P@5",
        "P@10",
        "nDCG@10",
    ]
    with pytest.raises(InputError, match="did you mean 'ContextRecall'"):
        parse_all(["ContextRecal@3"])


def test_a_name_that_another_tool_defines_otherwise_is_said() -> None:
    messages = notes(
        ["context_precision@5", "context_precision@3", "faithfulness", "ContextUtilization", "nDCG@10", "AP"]
    )
    assert [line.split(" here: ")[0] for line in messages] == [
        "context_precision is ContextAP",
        "faithfulness is Faithfulness",
        "ContextUtilization is ContextUtilization",
    ]
    assert not notes(["Faithfulness", "ContextRecall@5"])
    for name, meant in OTHER_TOOLS.items():
        assert JUDGED[meant].note or meant.startswith(("Answer", "ClaimRecall", "ExactMatch", "TokenF1", "ROUGE")), name


def test_definitions_say_which_steps_and_files_they_need() -> None:
    assert JUDGED["NoiseSensitivity(relevant)"].steps == ("claims", "support")
    assert JUDGED["ContextRelevance"].steps == ("grade",)
    assert JUDGED["ContextRelevance"].needs == {Need.CONTEXTS}
    assert JUDGED["ContextRecall"].needs == {Need.CONTEXTS, Need.REFERENCE}
    assert JUDGED["AnswerRelevance(ragas)"].needs == {Need.ANSWER, Need.EMBEDDINGS}
    assert tuple(JUDGED["ClaimF1"].inputs) == ("ag", "ga")
    assert JUDGED["ClaimF1"].inputs_without_claims.keys() == {"kind", "answerable"}
    assert {name for name, definition in JUDGED.items() if definition.takes_cutoff} == {
        name
        for name in JUDGED
        if name.startswith("Context") and name not in ("ContextAP(answer)", "ContextUtilization")
    }


def test_a_cutoff_looks_at_the_first_contexts_only() -> None:
    gc = np.array([[False, False, True]])
    inputs = {"gc": gc, "grades": np.array([0, 3, 3])}
    assert parse_judged("ContextRecall").value(inputs) == 1.0
    assert parse_judged("ContextRecall@2").value(inputs) == 0.0
    assert parse_judged("ContextRecall@9").value(inputs) == 1.0
    assert parse_judged("ContextRelevance@2").value(inputs) == 0.5


calls = st.lists(st.tuples(st.sampled_from("ab"), st.dictionaries(st.sampled_from("xy"), st.just("1"))), max_size=3)


def unknown(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def judged_inputs(draw: st.DrawFn) -> dict[str, Any]:
    """All inputs of one query."""
    m = draw(matrices())
    flags = lambda size: np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)  # noqa: E731
    cosines = st.one_of(st.floats(-1, 1), st.just(Undefined.NO_DIRECTION))
    assigned = draw(st.lists(st.sampled_from(NuggetAssignment), max_size=3))
    return {
        "ac": m.ac, "gc": m.gc, "ag": m.ag, "ga": m.ga,
        "cited": flags(m.contexts), "invented": draw(st.integers(0, 2)),
        "grades": np.array(draw(st.lists(st.integers(0, 3), min_size=m.contexts, max_size=m.contexts)), np.int64),
        "kind": draw(st.sampled_from(AnswerKind)), "relevance": draw(st.integers(0, 3)),
        "answerable": draw(st.sampled_from([True, False, None])), "assigned": assigned, "vital": flags(len(assigned)),
        "answer": draw(st.text()), "reference": draw(st.text()),
        "samples": draw(st.lists(st.text(), min_size=1, max_size=3)),
        "statements": flags(draw(st.integers(0, 3))), "extracted": flags(draw(st.integers(0, 3))),
        "attributed": flags(draw(st.integers(0, 3))), "similarity": draw(cosines),
        "calls": draw(calls), "expected_calls": draw(calls), "retrieving_calls": draw(st.integers(0, 3)),
        "input_tokens": draw(unknown(st.integers(0, 9))), "output_tokens": draw(unknown(st.integers(0, 9))),
        "cost": draw(unknown(st.floats(0, 9))), "seconds": draw(unknown(st.floats(0, 9))),
        "cosines": draw(st.lists(cosines, min_size=3, max_size=3)), "noncommittal": flags(3),
    }  # fmt: skip


@given(inputs=judged_inputs())
def test_a_value_lies_in_its_range_or_has_a_reason_that_the_definition_names(inputs: dict[str, Any]) -> None:
    assert set(inputs) == set(INPUTS)
    known = {name: value for name, value in inputs.items() if name != "answerable" or value is not None}
    for name, definition in JUDGED.items():
        value = JudgedMetric(name).value(known if "answerable" in definition.inputs_without_claims else inputs)
        if isinstance(value, Undefined):
            assert value in definition.undefined
        else:
            assert definition.lowest <= value <= (math.inf if definition.highest is None else definition.highest)
