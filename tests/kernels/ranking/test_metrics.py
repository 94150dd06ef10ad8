"""Every metric against independent tools, against plain Python, and against the laws of metrics."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from math import isnan
from typing import Any

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from support import plain_metrics as plain
from support.assessments import Qrels, Row, Run, assessment_of, rows_of
from support.campaigns import examples
from support.data import SHARED_DATA, needs_shared_data
from support.strategies import EACH_METRIC, collections, judged_rows, large_collection

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking import incomplete, user_models
from rankbeam.transforms.kernels.ranking import metrics as kernels
from rankbeam.transforms.kernels.ranking.curves import mean_interpolated_precision
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.similarity import compatibility
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.metrics.trec_names import parse_metrics
from rankbeam.transforms.records.metrics.values import metric_values

Kernel = Callable[..., FloatArray]
WholeGrades = Mapping[str, Mapping[str, int]]
"""Qrels as trec_eval knows them."""

CUTOFFS = (1, 2, 3, 5, 10, 30)
LEVEL_ENDS = (0.0, 1.0)  # between them, trec_eval 9, which pytrec_eval wraps, rounds otherwise than trec_eval 10
IPREC = f"iprec_at_recall.{','.join(map(str, LEVEL_ENDS))}"
WHOLE: Mapping[str, Kernel] = {
    "map": kernels.average_precision,
    "Rprec": kernels.r_precision,
    "bpref": incomplete.bpref,
    "infAP": incomplete.inferred_ap,
    "recip_rank": kernels.reciprocal_rank,
    "set_P": kernels.set_precision,
    "set_relative_P": partial(kernels.set_precision, relative=True),
    "set_recall": kernels.set_recall,
    "set_map": kernels.set_average_precision,
    "set_F": kernels.set_f,
    "num_rel": kernels.num_relevant,
    "num_rel_ret": kernels.num_relevant_retrieved,
}
AT_CUTOFF: Mapping[str, Kernel] = {
    "map_cut": kernels.average_precision,
    "P": kernels.precision,
    "recall": kernels.recall,
    "relative_P": kernels.capped_recall,
    "success": kernels.success,
}


def ours(a: Assessment, level: int) -> dict[str, FloatArray]:
    """The measures of pytrec_eval, by our kernels."""
    values = {name: kernel(a, rel=level) for name, kernel in WHOLE.items()}
    values |= {"num_ret": kernels.num_retrieved(a), "ndcg": kernels.ndcg(a)}
    for cutoff in CUTOFFS:
        values |= {f"{name}_{cutoff}": kernel(a, cutoff=cutoff, rel=level) for name, kernel in AT_CUTOFF.items()}
        values[f"ndcg_cut_{cutoff}"] = kernels.ndcg(a, cutoff=cutoff)
    for recall in LEVEL_ENDS:
        values[f"iprec_at_recall_{recall:.2f}"] = kernels.interpolated_precision(a, recall=recall, rel=level)
    return values


def assert_as_pytrec_eval(qrels: WholeGrades, run: Run, level: int, judged_only: bool) -> None:
    assessment = assessment_of(qrels, rows_of(run))
    values = ours(assessment.judged_only() if judged_only else assessment, level)
    cutoffs = ",".join(map(str, CUTOFFS))
    measures = [*WHOLE, "num_ret", "ndcg", IPREC, *(f"{name}.{cutoffs}" for name in (*AT_CUTOFF, "ndcg_cut"))]
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, measures, relevance_level=level, judged_docs_only_flag=judged_only
    ).evaluate(run)
    for place, (query, pool) in enumerate(qrels.items()):
        # pytrec_eval leaves out a query without results; its relevant documents are there all the same.
        without_results = dict.fromkeys(values, 0.0) | {"num_rel": sum(grade >= level for grade in pool.values())}
        # It divides by 0 where no document is left.
        expected = {name: 0.0 if isnan(value) else value for name, value in theirs.get(query, without_results).items()}
        assert {name: column[place] for name, column in values.items()} == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True], ids=["all", "judged only"])
@settings(max_examples=examples(200))
@given(collection=collections())
def test_small_collections_score_as_in_pytrec_eval(
    collection: tuple[WholeGrades, Run], level: int, judged_only: bool
) -> None:
    assert_as_pytrec_eval(*collection, level, judged_only)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True], ids=["all", "judged only"])
def test_a_large_collection_scores_as_in_pytrec_eval(level: int, judged_only: bool) -> None:
    qrels, run = large_collection(1, grades=[-1, 0, 0, 0, 1, 2, 3], ties=True)
    assert_as_pytrec_eval(qrels, run, level, judged_only)


@pytest.mark.parametrize("beta", [0.5, 2.0])
@given(collection=collections())
def test_set_f_weighs_recall_as_trec_eval_does(collection: tuple[WholeGrades, Run], beta: float) -> None:
    qrels, run = collection
    theirs = pytrec_eval.RelevanceEvaluator(qrels, [f"set_F.{beta}"]).evaluate(run)
    values = kernels.set_f(assessment_of(qrels, rows_of(run)), beta=beta)
    expected = [theirs.get(query, {"set_F": 0.0})["set_F"] for query in qrels]
    assert values.tolist() == pytest.approx(expected, rel=0, abs=1e-12)


OF_COMPAT = ("Compat", "Compat(p=0.8)", "Compat(p=0.8,normalize=False)")
OF_CWL_EVAL = (
    *("INSQ(max_rel=4)", "INSQ(T=3.0,max_rel=2)", "INST(max_rel=4)", "INST(T=2.5,max_rel=3)", "INST(T=0.5,max_rel=4)"),
    *("INST(min_rel=1,max_rel=3)", "BPM(max_rel=4)@10", "BPM(T=2.5,min_rel=1,max_rel=2)@20", "SDCG(max_rel=4)@10"),
    *("SDCG(min_rel=1,max_rel=2)@5000", "NERR8(max_rel=4)@10", "NERR8(max_rel=2)@2000", "NERR9(max_rel=4)@10"),
    *("NERR9(max_rel=2)@2000", "NERR10(max_rel=4)", "NERR10(p=0.5,max_rel=3)", "NERR11(max_rel=4)"),
    *("NERR11(T=2.0,min_rel=1,max_rel=3)", "P(rel=2)@10", "RBP(rel=2)", "RR"),
)


# ir_measures breaks ties the other way and takes any grade for a judgement: no ties, no negative grades here.
@pytest.mark.parametrize(
    ("provider", "measure", "metric", "tolerance"),
    [
        (ir_measures.judged, ir_measures.Judged, "Judged", 1e-12),
        (ir_measures.judged, ir_measures.Judged @ 7, "Judged@7", 1e-12),
        (ir_measures.msmarco, ir_measures.RR @ 5, "RR@5", 1e-12),
        (ir_measures.msmarco, ir_measures.RR(rel=3) @ 10, "RR(rel=3)@10", 1e-12),
        (ir_measures.pytrec_eval, ir_measures.nDCG(gains={2: 3, 3: 7, 4: 15}) @ 20, "nDCG(gain=exp)@20", 1e-12),
        (ir_measures.pytrec_eval, ir_measures.nDCG(gains={2: 3, 3: 7, 4: 15}), "nDCG(gain=exp)", 1e-12),
        (ir_measures.pytrec_eval, ir_measures.nDCG(gains={1: 5, 2: 0, 4: 2}) @ 9, "nDCG(gains={1:5,2:0,4:2})@9", 1e-12),
        (ir_measures.pytrec_eval, ir_measures.IPrec @ 0, "IPrec@0", 1e-12),
        (ir_measures.pytrec_eval, ir_measures.IPrec(rel=2) @ 1, "IPrec(rel=2)@1", 1e-12),
        (ir_measures.gdeval, ir_measures.nDCG(dcg="exp-log2") @ 20, "nDCG(gain=exp)@20", 6e-6),
        (ir_measures.gdeval, ir_measures.ERR @ 20, "ERR@20", 6e-6),
        *[
            (provider, ir_measures.parse_measure(name), name, 1e-12)
            for provider, names in ((ir_measures.compat, OF_COMPAT), (ir_measures.cwl_eval, OF_CWL_EVAL))
            for name in names
        ],
    ],
    ids=lambda value: None if isinstance(value, float | str) else getattr(value, "NAME", None),
)
def test_a_large_collection_scores_as_in_ir_measures(
    provider: Any, measure: Any, metric: str, tolerance: float
) -> None:
    if not provider.is_available():
        pytest.skip(f"{provider.NAME} cannot run here: {provider.install_instructions()}")
    qrels, run = large_collection(2, grades=[0, 0, 0, 1, 2, 3, 4], ties=False)
    expected = {score.query_id: score.value for score in provider.iter_calc([measure], qrels, run)}
    values = parse_metric(metric).values(assessment_of(qrels, rows_of(run)))
    assert dict(zip(qrels, values, strict=True)) == pytest.approx(expected, rel=0, abs=tolerance)


CUTOFF, CUTOFF_OR_ALL = st.integers(1, 12), st.none() | st.integers(1, 12)
REL, GAIN = st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from(["linear", "exp"])
FROM_PAPERS: tuple[tuple[Kernel, Callable[..., float], dict[str, st.SearchStrategy[Any]]], ...] = (
    (kernels.capped_recall, plain.capped_recall, {"cutoff": CUTOFF, "rel": REL}),
    (kernels.f1, plain.f1, {"cutoff": CUTOFF, "rel": REL}),
    (kernels.reciprocal_rank, plain.reciprocal_rank, {"cutoff": CUTOFF_OR_ALL, "rel": REL}),
    (incomplete.judged, plain.judged, {"cutoff": CUTOFF_OR_ALL}),
    (
        kernels.rank_biased_precision,
        plain.rank_biased_precision,
        {
            "cutoff": CUTOFF_OR_ALL,
            "rel": REL,
            "p": st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0]),
            "graded": st.booleans(),
        },
    ),
    (
        kernels.expected_reciprocal_rank,
        plain.expected_reciprocal_rank,
        {"cutoff": CUTOFF_OR_ALL, "max_rel": st.sampled_from([1.0, 2.0, 3.0, 4.0])},
    ),
    (kernels.ndcg, plain.ndcg, {"cutoff": CUTOFF_OR_ALL, "gain": GAIN}),
    (kernels.dcg, plain.dcg, {"cutoff": CUTOFF_OR_ALL, "gain": GAIN}),
    (
        kernels.interpolated_precision,
        plain.interpolated_precision,
        {"recall": st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]), "rel": REL},
    ),
)
SCALE = {"min_rel": st.sampled_from([0.0, 0.5]), "max_rel": st.sampled_from([1.0, 3.0, 4.0])}
GOAL = SCALE | {"T": st.sampled_from([0.5, 1.0, 2.5])}
FROM_PAPERS += (
    (mean_interpolated_precision, plain.mean_interpolated_precision, {"rel": REL}),
    (kernels.r_precision, plain.r_precision, {"rel": REL, "multiple": st.sampled_from([0.0, 0.2, 1.0, 1.6])}),
    (incomplete.unjudged, plain.unjudged, {"cutoff": CUTOFF}),
    (incomplete.num_non_relevant_retrieved, plain.num_non_relevant_retrieved, {"rel": REL}),
    (
        compatibility,
        plain.compatibility,
        {"p": st.sampled_from([0.0, 0.5, 0.95, 1.0]), "normalize": st.booleans()},
    ),
    (user_models.insq, plain.insq, GOAL),
    (user_models.inst, plain.inst, GOAL),
    (user_models.bejeweled_player, plain.bejeweled_player, {"cutoff": CUTOFF, **GOAL}),
    (user_models.scaled_dcg, plain.scaled_dcg, {"cutoff": CUTOFF, **SCALE}),
    (user_models.nearly_err_8, plain.nearly_err_8, {"cutoff": CUTOFF, **SCALE}),
    (user_models.nearly_err_9, plain.nearly_err_9, {"cutoff": CUTOFF, **SCALE}),
    (user_models.nearly_err_10, plain.nearly_err_10, {"p": st.sampled_from([0.0, 0.5, 0.9, 1.0]), **SCALE}),
    (user_models.nearly_err_11, plain.nearly_err_11, GOAL),
)
FROM_NOTEBOOK = (
    (kernels.chunk_precision, plain.chunk_precision, {"cutoff": CUTOFF, "rel": REL}),
    (kernels.chunk_ndcg, plain.ndcg, {"cutoff": CUTOFF, "gain": GAIN}),
)


def rankings_of(qrels: Qrels, rows: list[Row]) -> list[list[str]]:
    """The documents of every query, best first, in plain Python."""
    ordered = sorted(sorted(rows, key=lambda row: row[1].encode(), reverse=True), key=lambda row: -row[2])
    return [[doc for query, doc, _ in ordered if query == query_id] for query_id in qrels]


@pytest.mark.parametrize("judged_only", [False, True], ids=["all", "judged only"])
@pytest.mark.parametrize(("kernel", "oracle", "options"), FROM_PAPERS, ids=[case[0].__name__ for case in FROM_PAPERS])
@settings(max_examples=examples(60))
@given(collection=judged_rows(), data=st.data())
def test_metrics_follow_their_papers(
    kernel: Kernel,
    oracle: Callable[..., float],
    options: dict[str, st.SearchStrategy[Any]],
    judged_only: bool,
    collection: tuple[Qrels, list[Row]],
    data: st.DataObject,
) -> None:
    qrels, rows = collection
    chosen = data.draw(st.fixed_dictionaries(options))
    assessment = assessment_of(qrels, rows)
    values = kernel(assessment.judged_only() if judged_only else assessment, **chosen)
    expected = []
    for pool, ranking in zip(qrels.values(), rankings_of(qrels, rows), strict=True):
        grades = [pool.get(doc) for doc in dict.fromkeys(ranking)]
        if judged_only:
            grades = [grade for grade in grades if grade is not None and grade >= 0]
        expected.append(oracle(plain.Judged(grades, list(pool.values())), **chosen))
    assert values.tolist() == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "oracle", "options"), FROM_NOTEBOOK, ids=[case[0].__name__ for case in FROM_NOTEBOOK]
)
@given(collection=judged_rows(), data=st.data())
def test_every_chunk_counts_in_the_notebooks_metrics(
    kernel: Kernel,
    oracle: Callable[..., float],
    options: dict[str, st.SearchStrategy[Any]],
    collection: tuple[Qrels, list[Row]],
    data: st.DataObject,
) -> None:
    qrels, rows = collection
    chosen = data.draw(st.fixed_dictionaries(options))
    values = kernel(assessment_of(qrels, rows, chunks=True), **chosen)
    expected = []
    for pool, ranking in zip(qrels.values(), rankings_of(qrels, rows), strict=True):
        expected.append(oracle(plain.Judged([pool.get(doc) for doc in ranking], list(pool.values())), **chosen))
    assert values.tolist() == pytest.approx(expected, rel=0, abs=1e-12)


@given(collection=judged_rows(), cutoff=CUTOFF, rel=REL)
def test_chunk_recall_counts_a_document_once(collection: tuple[Qrels, list[Row]], cutoff: int, rel: float) -> None:
    qrels, rows = collection
    values = kernels.chunk_recall(assessment_of(qrels, rows, chunks=True), cutoff=cutoff, rel=rel)
    expected = []
    for pool, ranking in zip(qrels.values(), rankings_of(qrels, rows), strict=True):
        relevant = {doc for doc, grade in pool.items() if grade >= rel}
        expected.append(len(relevant & set(ranking[:cutoff])) / len(relevant) if relevant else 0.0)
    assert values.tolist() == expected


def test_dcg_of_a_published_example() -> None:
    """The worked example of Wikipedia's article: DCG@6 is 6.861, and 8.740 for the ideal order."""
    pool = {f"d{place}": grade for place, grade in enumerate([3, 2, 3, 0, 1, 2, 3, 2])}
    rankings = [("ranked", f"d{place}", -float(place)) for place in range(6)]
    rankings += [("ideal", doc, float(grade)) for doc, grade in pool.items()]
    assessment = assessment_of({"ranked": pool, "ideal": pool}, rankings)
    assert kernels.dcg(assessment, cutoff=6).tolist() == pytest.approx([6.861, 8.740], abs=5e-4)


def each_metric(qrels: Qrels, rows: list[Row]) -> FloatArray:
    """float64[queries, metrics]: every metric of every query."""
    return metric_values(EACH_METRIC, assessment_of(qrels, rows), assessment_of(qrels, rows, chunks=True))


@given(collection=judged_rows())
def test_bounded_metrics_lie_between_0_and_1_and_none_is_unknown(collection: tuple[Qrels, list[Row]]) -> None:
    values = each_metric(*collection)
    highest = np.array([np.inf if m.definition.highest is None else m.definition.highest for m in EACH_METRIC])
    assert np.isfinite(values).all()
    assert ((values >= 0) & (values <= highest)).all()


@settings(max_examples=examples(200))
@given(
    grades=st.lists(st.sampled_from([-1, 0, 1, 2, 3]), min_size=2, max_size=12),
    places=st.tuples(st.integers(0, 11), st.integers(0, 11)),
)
def test_moving_the_better_document_up_never_costs(grades: list[int], places: tuple[int, int]) -> None:
    upper, lower = sorted(place % len(grades) for place in places)
    worse, better = sorted((grades[upper], grades[lower]))
    before, after = grades.copy(), grades.copy()
    before[upper], before[lower] = worse, better
    after[upper], after[lower] = better, worse
    rankings = {"before": before, "after": after}
    qrels = {query: {f"d{rank}": grade for rank, grade in enumerate(ranked)} for query, ranked in rankings.items()}
    rows = [(query, f"d{rank}", -float(rank)) for query in rankings for rank in range(len(grades))]
    assessment = assessment_of(qrels, rows)
    for metric in parse_metrics(["nDCG", "nDCG@3", "nDCG(gain=exp)@5", "AP", "AP(rel=2)@4", "RR", "RR(rel=2)@3"]):
        value_before, value_after = metric.values(assessment)
        assert value_after >= value_before, metric


@given(collection=judged_rows())
def test_a_query_scores_alone_as_among_others(collection: tuple[Qrels, list[Row]]) -> None:
    qrels, rows = collection
    alone = [each_metric({query: pool}, rows) for query, pool in qrels.items()]
    np.testing.assert_array_equal(np.concatenate(alone), each_metric(qrels, rows), strict=True)


def test_a_query_scores_alone_as_among_many_others() -> None:
    # Long enough that NumPy's vector loops and their remainders both take part.
    qrels, run = large_collection(3, grades=[-1, 0, 0, 0, 1, 2, 3], ties=True)
    alone = [each_metric({query: pool}, rows_of({query: run[query]})) for query, pool in qrels.items()]
    np.testing.assert_array_equal(np.concatenate(alone), each_metric(qrels, rows_of(run)), strict=True)


@given(collection=judged_rows(), data=st.data())
def test_the_order_of_rows_and_judgements_does_not_matter(
    collection: tuple[Qrels, list[Row]], data: st.DataObject
) -> None:
    qrels, rows = collection
    shuffled_rows = data.draw(st.permutations(rows))
    shuffled_qrels = {query: dict(data.draw(st.permutations(sorted(pool.items())))) for query, pool in qrels.items()}
    np.testing.assert_array_equal(each_metric(shuffled_qrels, shuffled_rows), each_metric(qrels, rows), strict=True)


# The fixture's names that trec_eval does not have. 2^grade - 1 is what gains in both; ranx's "Burges" differs from
# nDCG(gain=exp)@3 in nothing, a grade below 0 gaining nothing there either.
FIXTURE_NAMES = {"ndcg_exp_gain_full": "nDCG(gain=exp)", "ranx_ndcg_burges@3": "nDCG(gain=exp)@3"}


@needs_shared_data
@pytest.mark.parametrize(
    ("expectations", "level", "judged_only"),
    [("expect", 1.0, False), ("expect_l2", 2.0, False), ("expect_judged_only", 1.0, True)],
)
def test_the_edge_case_scores_as_measured_elsewhere(expectations: str, level: float, judged_only: bool) -> None:
    text = (SHARED_DATA / "fixtures" / "edge_case.json").read_text()
    case = json.loads(text)
    assessment = assessment_of(case["qrels"], rows_of(case["run"]))
    # As decimals the values show with how many digits they were written down.
    for name, expected in json.loads(text, parse_float=Decimal)[expectations].items():
        (metric,) = parse_metrics([FIXTURE_NAMES.get(name, name)])
        metric = replace(metric.with_default("rel", level), judged_only=judged_only)
        rounded = isinstance(expected, Decimal) and expected.as_tuple().exponent == -4
        tolerance = 5e-5 if rounded else 1e-12
        assert metric.values(assessment).tolist() == pytest.approx([float(expected)], rel=0, abs=tolerance), name
