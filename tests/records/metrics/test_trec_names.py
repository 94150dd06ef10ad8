"""trec_eval's names, against what trec_eval and pytrec_eval print."""

import re

import pytest
import pytrec_eval
from hypothesis import given
from support.data import SHARED_DATA, needs_shared_data
from support.strategies import metrics

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import Metric, parse_metric
from rankbeam.transforms.records.metrics.trec_names import parse_metrics, trec_name, trec_names

FAMILIES = ["num_ret", "num_rel", "num_rel_ret", "map", "Rprec", "bpref", "recip_rank", "P", "recall", "infAP"]
FAMILIES += ["gm_map", "iprec_at_recall", "ndcg", "ndcg_cut", "map_cut", "success", "set_P", "set_recall", "set_F"]
FAMILIES += ["relative_P", "set_relative_P", "set_map", "gm_bpref", "Rprec_mult", "11pt_avg", "num_nonrel_judged_ret"]
V10 = ["rbp", "unj"]  # not in pytrec_eval


def names(*words: str) -> list[str]:
    return [str(metric) for metric in parse_metrics(words)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("map", ["AP"]),
        ("gm_map", ["logAP"]),
        ("recip_rank", ["RR"]),
        ("num_rel_ret", ["NumRelRet"]),
        ("set_F", ["SetF"]),
        ("set_F.0.5", ["SetF(beta=0.5)"]),
        ("set_F_2", ["SetF(beta=2)"]),
        ("set_relative_P", ["SetP(relative=True)"]),
        ("set_map", ["SetAP"]),
        ("relative_P_5", ["Rcap@5"]),
        ("set", ["NumRet", "NumRel", "NumRelRet", "SetP", "SetP(relative=True)", "SetR", "SetAP", "SetF"]),
        ("P.5,10", ["P@5", "P@10"]),
        ("P.10,5", ["P@10", "P@5"]),
        ("P_5", ["P@5"]),
        ("ndcg_cut_10", ["nDCG@10"]),
        ("ndcg_cut.3", ["nDCG@3"]),
        ("map_cut_100", ["AP@100"]),
        ("recall_7", ["R@7"]),
        ("iprec_at_recall_0.10", ["IPrec(recall=0.1)"]),
        ("Rprec_mult.0.5,1.0", ["Rprec(multiple=0.5)", "Rprec"]),
        ("gm_bpref", ["logBpref"]),
        ("ndcg.1=3.5,2=9.0", ["nDCG(gains={1:3.5,2:9})"]),
        ("11pt_avg", ["IPrec11"]),
        ("unj_3", ["Unjudged@3"]),
        ("iprec_at_recall.0,0.5", ["IPrec", "IPrec(recall=0.5)"]),
        ("success", ["Success@1", "Success@5", "Success@10"]),
        ("recall", [f"R@{cutoff}" for cutoff in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]),
        ("nDCG(gain=exp)@10", ["nDCG(gain=exp)@10"]),
        ("MAP", ["AP"]),
        ("Recall", ["R"]),
    ],
)
def test_a_word_is_read_in_trec_evals_names_or_in_ours(word: str, expected: list[str]) -> None:
    assert names(word) == expected


def test_a_metric_named_twice_is_there_once_where_it_was_named_first() -> None:
    assert names("nDCG@3", "P.5,10", "map", "P_5", "AP", "ndcg_cut.3,5") == ["nDCG@3", "P@5", "P@10", "AP", "nDCG@5"]


def test_all_trec_gives_what_pytrec_eval_gives() -> None:
    theirs = pytrec_eval.RelevanceEvaluator({"q": {"d": 1}}, FAMILIES).evaluate({"q": {"d": 1.0}})["q"]
    ours = {trec_name(metric) for metric in parse_metrics(["all_trec"])}
    once = set(theirs) - {"Rprec_mult_1.00"}  # which is Rprec
    assert {name for name in ours if not name.startswith(tuple(V10))} == once


@needs_shared_data
@pytest.mark.parametrize(("printed", "word"), [("out.test.a", "all_trec"), ("out.test", "official")])
def test_a_set_has_the_metrics_and_the_order_of_trec_eval(printed: str, word: str) -> None:
    lines = (SHARED_DATA / "trec_eval" / printed).read_text().splitlines()
    ours = re.compile(rf"({'|'.join([*FAMILIES, *V10])})(_[\d.]+)?")
    expected = [name for line in lines if ours.fullmatch(name := line.split()[0]) and name != "Rprec_mult_1.00"]
    assert [trec_name(metric) for metric in parse_metrics([word])] == expected
    assert list(trec_names(reversed(parse_metrics([word]))).values()) == expected


@given(metric=metrics())
def test_trec_evals_name_leads_back_to_the_metric(metric: Metric) -> None:
    name = trec_name(metric)
    if name is not None:
        # The relevance level and "judged only" are options of trec_eval's command line, not part of a name.
        options = tuple(option for option in metric.options if option[0] != "rel")
        assert parse_metrics([name]) == (Metric(metric.name, options, metric.cutoff),)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("nDCG@7", "ndcg_cut_7"),
        ("AP@7", "map_cut_7"),
        ("AP(rel=2)", "map"),
        ("Success(judged_only=True)@1", "success_1"),
        ("SetF", "set_F"),
        ("RBP(graded=True,p=0.9)", "rbp"),
        ("RBP(p=0.9)", None),
        ("SetF(beta=2)", None),
        ("RR@10", None),
        ("IPrec", "iprec_at_recall_0.00"),
        ("IPrec@0.7", "iprec_at_recall_0.70"),
        ("IPrec@0.125", None),
        ("Rprec(multiple=0.2)", "Rprec_mult_0.20"),
        ("Rprec(multiple=0.125)", None),
        ("DCG@10", None),
        ("R", None),
        ("nDCG(gain=exp)@10", None),
        ("Judged@10", None),
        ("chunk_P@5", None),
    ],
)
def test_a_metric_has_trec_evals_name_only_where_both_mean_the_same(metric: str, expected: str | None) -> None:
    assert trec_name(parse_metric(metric)) == expected


def test_metrics_that_trec_eval_lacks_follow_its_own_under_their_names() -> None:
    metrics = parse_metrics(["ERR@5", "ndcg_cut.10,5", "P_10", "RR@3", "map", "P_5", "num_ret"])
    assert list(trec_names(metrics).values()) == [
        "num_ret", "map", "P_5", "P_10", "ndcg_cut_5", "ndcg_cut_10", "ERR@5", "RR@3"
    ]  # fmt: skip


def test_no_two_metrics_have_one_name() -> None:
    metrics = parse_metrics(["P@5", "P(rel=2)@5", "AP(rel=2)", "P(judged_only=True)@10"])
    assert list(trec_names(metrics).values()) == ["map", "P@5", "P(rel=2)@5", "P_10"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("recip_rnak", "did you mean 'recip_rank'?"),
        ("infAPP", "did you mean 'infAP'?"),
        ("oficial", "did you mean 'official'?"),
        ("all_trek", "did you mean 'all_trec'?"),
        ("ndgc_cut_10", "did you mean 'ndcg_cut'?"),
        ("ndgc_cut.10", "did you mean 'ndcg_cut'?"),
        ("recal.5,10", "did you mean 'recall'?"),
        ("Precison@5", "did you mean 'Precision'?"),
        ("map.5", "map takes no parameters here; write AP@5"),
        ("ndcg_10", "ndcg takes no parameters here; write nDCG@10"),
        ("P", "needs a cutoff, such as P@10"),
        ("P.0", "'0' is not a positive whole number"),
        ("P.5,ten", "'ten' is not a positive whole number"),
        ("utility.1,-1,0,0", "no metric 'utility': it is trec_eval's sum of weighted counts, which can be negative"),
        ("11pt_avg.0.2,0.5,0.8", "11pt_avg takes no parameters here; write 11pt_avg"),
        ("Rprec@5", "takes no cutoff: write Rprec"),
    ],
)
def test_what_is_neither_name_is_refused_with_a_hint(word: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_metrics(["map", word])
    assert hint in str(caught.value)


@pytest.mark.parametrize("word", ["P.", "P.5,,10", "P.,5"])
def test_a_missing_cutoff_is_refused_in_the_users_own_words(word: str) -> None:
    with pytest.raises(InputError, match=re.escape(word)):
        parse_metrics([word])
