"""Names that people bring from other tools are read as the same metric, or refused with the nearest one."""

import pytest

from rankbeam.transforms.judge.definitions import OTHER_TOOLS, base_names
from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics import other_tools
from rankbeam.transforms.records.metrics.definitions import ALIASES, METRICS, SPAN_METRICS, SUBTOPIC_METRICS
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.metrics.other_tools import FOREIGN, SAME, plain


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("hit_rate@10", "Success@10"),
        ("Hit-Rate@10", "Success@10"),
        ("accuracy@1", "Success@1"),
        ("Accuracy_at_1", "Success@1"),
        ("hits", "NumRelRet"),
        ("R_cap@100", "Rcap@100"),
        ("recall_cap@100", "Rcap@100"),
        ("r-precision", "Rprec"),
        ("RPrecision", "Rprec"),
        ("NDCG_cut_10", "nDCG@10"),
        ("NDCG_cut.10", "nDCG@10"),
        ("Map_Cut.100", "AP@100"),
        ("ndcg_at_10", "nDCG@10"),
        ("GMAP(rel=2)", "logAP(rel=2)"),
        ("map_at_100", "AP@100"),
        ("recall_at_5", "R@5"),
        ("mrr_at_10", "RR@10"),
        ("ndcg_burges@5", "nDCG(gain=exp)@5"),
        ("dcg_burges@5", "DCG(gain=exp)@5"),
        ("dcg@5", "DCG@5"),
        ("IPrec(rel=2)@0.1", "IPrec(recall=0.1,rel=2)"),
        ("IPrec@0.0", "IPrec"),
        ("rbp.95", "RBP(p=0.95)"),
        ("rbp", "RBP(graded=True,p=0.9)"),
        ("rbp.p=0.5", "RBP(graded=True,p=0.5)"),
        ("precision(rel=2)@5", "P(rel=2)@5"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp)@10"),
        ('nDCG(dcg="log2",judged_only=True)@10', "nDCG(judged_only=True)@10"),
        ("SetRelP", "SetP(relative=True)"),
        ("α_nDCG(alpha=0.3)@10", "alpha_nDCG(alpha=0.3)@10"),
        ("top_k_accuracy@3", "Success@3"),
    ],
)
def test_other_names_of_our_metrics(written: str, canonical: str) -> None:
    assert [str(metric) for metric in parse_all([written])] == [canonical]


@pytest.mark.parametrize("written", ["Accuracy@1", "Accuracy(rel=2)@10", "Accuracy"])
def test_accuracy_so_written_is_that_of_ir_measures_and_refused(written: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_all([written])
    assert "no metric 'Accuracy': it is ir_measures' share of pairs" in str(refused.value)
    assert "accuracy@k, in lower case, is Success@k" in str(refused.value)


def test_a_note_says_that_a_geometric_mean_is_beside_its_logarithmic_scale() -> None:
    notes = list(other_tools.notes(["gm_map", "logAP", "GMAP(rel=2)", "gm_bpref"]))
    logs = [("gm_map", "logAP"), ("GMAP(rel=2)", "logAP"), ("gm_bpref", "logBpref")]
    assert [tuple(note.split(",")[0].split(" is the metric ")) for note in notes] == logs


def test_a_note_says_which_grade_is_the_full_gain() -> None:
    notes = list(other_tools.notes(["INST", "INST(max_rel=3)", "BPM(T=2)@10", "nerr8(min_rel=1)@5", "ERR"]))
    assert [note.partition(" counts grade 4 as the full gain")[0] for note in notes] == [
        "INST", "BPM(T=2)@10", "nerr8(min_rel=1)@5"
    ]  # fmt: skip


def test_notes_say_whose_rbp_it_is() -> None:
    notes = list(other_tools.notes(["rbp", "RBP@10", "RBP(rel=2)", "RBP(graded=True,p=0.8)", "rbp.95", "nDCG@10"]))
    assert [note.partition(" ")[0] for note in notes] == ["rbp", "RBP@10"]
    assert "as in trec_eval" in notes[0]
    assert "ir_measures' RBP without rel= multiplies by the grade" in notes[1]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_metric_that_is_not_here_is_named_with_the_nearest(name: str) -> None:
    what, nearest = FOREIGN[name]
    with pytest.raises(InputError) as refused:
        parse_all([f"{name}@10"])
    assert str(refused.value) == f"rankbeam has no metric {name!r}: it is {what}; the nearest one is {nearest}"
    ours = [*METRICS, *SPAN_METRICS, *SUBTOPIC_METRICS, *base_names()]
    assert nearest.partition("(")[0] in ours
    assert parse_all([f"{nearest}@10" if nearest in ("Success", "Unjudged") else nearest])


def test_no_name_means_two_things() -> None:
    ours = {plain(name) for name in (*METRICS, *SPAN_METRICS, *SUBTOPIC_METRICS, *ALIASES)}
    judged = {plain(name) for name in (*base_names(), *OTHER_TOOLS)}
    same, foreign = {plain(name) for name in SAME}, {plain(name) for name in FOREIGN}
    assert not same & foreign
    assert not (same | foreign) & (ours | judged)
    assert not ours & judged


def test_options_of_the_meant_metric_may_be_added_to() -> None:
    assert str(parse_metric("ndcg_burges(judged_only=True)@5")) == "nDCG(gain=exp,judged_only=True)@5"
