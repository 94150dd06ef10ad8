"""Names: one per metric, read back as written, and a hint for every slip of the pen."""

from collections.abc import Iterator

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from support.assessments import assessment_of
from support.campaigns import examples
from support.strategies import metrics

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.definitions import ALIASES, METRICS, SUBTOPIC_METRICS
from rankbeam.transforms.records.metrics.names import Metric, parse_metric
from rankbeam.transforms.records.metrics.other_tools import FOREIGN, SAME, plain
from rankbeam.transforms.records.metrics.values import metric_values

NAMES = (*METRICS, *ALIASES)


def with_cutoff(name: str) -> str:
    """The name as it must be written: with a cutoff unless the metric takes none."""
    return name if METRICS[ALIASES.get(name, name)].cutoff == "refused" else f"{name}@10"


@settings(max_examples=examples(500))
@given(metric=metrics())
def test_a_metric_is_read_back_as_it_was_written(metric: Metric) -> None:
    assert parse_metric(str(metric)) == metric


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("  nDCG ( gain = exp ) @ 10 ", "nDCG(gain=exp)@10"),
        ("nDCG(gain='exp')@10", "nDCG(gain=exp)@10"),
        ("nDCG(gain=linear)", "nDCG"),
        ("chunk_nDCG(gain=exp)@5", "chunk_nDCG@5"),
        ("P(rel=1)@5", "P@5"),
        ("P(rel=2.0)@5", "P(rel=2)@5"),
        ("P(rel=0.5)@5", "P(rel=0.5)@5"),
        ("P()@05", "P@5"),
        ("AP(judged_only=true, rel=2)", "AP(rel=2,judged_only=True)"),
        ("AP(judged_only=False)", "AP"),
        ("SetF(rel=2,beta=0.5)", "SetF(beta=0.5,rel=2)"),
        ("RBP(p=0.8)@20", "RBP@20"),
        ("RBP(p=0.9, graded=true)", "RBP(graded=True,p=0.9)"),
        ("RBP(graded=False,rel=2)", "RBP(rel=2)"),
        ("ERR(max_rel=3)@20", "ERR(max_rel=3)@20"),
        ("MRR@10", "RR@10"),
        ("NumRet(rel=1)", "NumRelRet"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("nDCG(gains={2: 7, 1:5.0})@10", "nDCG(gains={1:5,2:7})@10"),
        ("INST(T=1.0,max_rel=3)", "INST(max_rel=3)"),
        ("BPM(T=2,min_rel=1,max_rel=4)@10", "BPM(T=2,min_rel=1)@10"),
        ("Compat(p=0.8,normalize=False)", "Compat(normalize=False,p=0.8)"),
        ("MAP_IA(rel=2)", "AP_IA(rel=2)"),
        ("hit(rel=2)@3", "Success(rel=2)@3"),
    ],
)
def test_a_metric_has_one_name(text: str, canonical: str) -> None:
    metric = parse_metric(text)
    assert str(metric) == canonical
    assert metric == parse_metric(canonical)
    assert hash(metric) == hash(parse_metric(canonical))


@pytest.mark.parametrize("name", NAMES)
def test_case_does_not_matter_and_an_alias_stands_for_its_metric(name: str) -> None:
    expected = parse_metric(with_cutoff(ALIASES.get(name, name)))
    assert expected.name == ALIASES.get(name, name)
    for spelling in (name, name.lower(), name.upper()):
        assert parse_metric(with_cutoff(name).replace(name, spelling)) == expected


@pytest.mark.parametrize("name", ["nDCG@10", "P(rel=2)@5", "AP", "R@100", "RR@10", "Success(rel=2)@5", "Judged@10"])
def test_ir_measures_reads_and_writes_the_same_name(name: str) -> None:
    assert str(ir_measures.parse_measure(name)) == str(parse_metric(name)) == name


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "write it as nDCG@10, AP or P(rel=2)@5"),
        ("@10", "write it as nDCG@10, AP or P(rel=2)@5"),
        ("nDCG@10 and more", "write it as nDCG@10, AP or P(rel=2)@5"),
        ("P(rel=2@5", "write it as nDCG@10, AP or P(rel=2)@5"),
        ("unheard_of", "unknown metric 'unheard_of'; valid are:\n  rankings: AP, BPM, Bpref, Compat, DCG, "),
        ("P", "needs a cutoff, such as P@10"),
        ("chunk_nDCG(gain=exp)", "needs a cutoff, such as chunk_nDCG@10"),
        ("Rprec@5", "takes no cutoff: write Rprec"),
        ("IPrec@1.5", "recall=1.5 is not a number from 0 to 1"),
        ("IPrec(recall=0.1)@0.2", "the option 'recall' is given twice; keep one"),
        ("P@0", "'0' is not a positive whole number"),
        ("P@-1", "'-1' is not a positive whole number"),
        ("P@1.5", "'1.5' is not a positive whole number"),
        ("P@²", "'²' is not a positive whole number"),
        ("P@ten", "'ten' is not a positive whole number"),
        ("P@" + "9" * 5000, "the cutoff"),
        ("P(rell=2)@5", "unknown option 'rell'; did you mean 'rel'?"),
        ("AP(judgedonly=True)", "unknown option 'judgedonly'; did you mean 'judged_only'?"),
        ("nDCG(rel=2)@5", "unknown option 'rel'; valid are: gain, gains, judged_only"),
        ("nDCG(gain=expo)", "unknown gain 'expo'; valid are: linear, exp"),
        ("P(rel=-1)@5", "rel=-1 is not a number from 0 to 1e+09"),
        ("P(rel=nan)@5", "rel=nan is not a number from 0 to 1e+09"),
        ("P(rel)@5", "rel= is not a number from 0 to 1e+09"),
        ("RBP(p=1.5)", "p=1.5 is not a number from 0 to 1"),
        ("RBP(graded=True,rel=2)", "with graded=True grades count themselves, and rel has no effect; remove it"),
        ("RBP(graded=yes)", "graded=yes is neither True nor False"),
        ("nDCG(gain=exp,dcg='log2')@10", "the option 'gain' is given twice; keep one"),
        ("ndcg_burges(gain=linear)@10", "the option 'gain' is given twice; keep one"),
        ("nDCG(dcg='log3')@10", "unknown gain 'log3'; valid are: linear, exp"),
        ("nDCG(gains={1:2,1:5})@10", "gains={1:2,1:5} are not gains of at least 0; write gains={1:5,2:7}"),
        ("nDCG(gains={1:-2})@10", "gains={1:-2} are not gains of at least 0"),
        ("nDCG(gains=5)@10", "gains=5 are not gains of at least 0"),
        ("nDCG(gains={1:2},gain=exp)", "gain and gains exclude each other"),
        ("BPM(min_rel=3,max_rel=3)@10", "min_rel=3 is not below max_rel=3"),
        ("INST(min_rel=4)", "min_rel=4 is not below max_rel=4"),
        ("INST(T=0.2)", "T=0.2 is not a number from 0.5 to"),
        ("NRBP(beta=2)", "beta=2 is not a number from 0 to 1"),
        ("ERR(max_rel=0)", "max_rel=0 is not a number from 1 to 60"),
        ("AP(judged_only=yes)", "judged_only=yes is neither True nor False"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_metric_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_metric(text)
    assert text[:20] in str(caught.value)
    assert hint in str(caught.value)


def slips(word: str) -> Iterator[str]:
    """The word with one letter left out, or two neighbours exchanged."""
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]
        yield word[:place] + word[place : place + 2][::-1] + word[place + 2 :]


def misspellings(name: str) -> set[str]:
    doubled = {name[: place + 1] + name[place:] for place in range(len(name))}
    valid = {plain(known) for known in (*NAMES, *SAME, *FOREIGN)}
    return {word for word in {*slips(name), *doubled} if word and not word[0].isdigit() and plain(word) not in valid}


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_name_is_answered_with_a_name_one_slip_away(name: str) -> None:
    for word in misspellings(name):
        low = word.lower()
        others = {valid: plain(valid) for valid in SUBTOPIC_METRICS}  # the same letters may be near to these, too
        names = {valid: valid.lower() for valid in NAMES} | others
        near = [valid for valid, word in names.items() if low in slips(word) or word in slips(low)]
        with pytest.raises(InputError) as caught:
            parse_metric(f"{word}@10")
        answers = [f"unknown metric {word!r}; did you mean {valid!r}?" for valid in near]
        assert str(caught.value) in answers


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="rel"):
        parse_metric("P(rel=1,rel=2)@5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P@5", "P(rel=2)@5"),
        ("P(rel=3)@5", "P(rel=3)@5"),
        ("nDCG@5", "nDCG@5"),
        ("NumRet", "NumRet"),
        ("RBP(graded=True)", "RBP(graded=True)"),
    ],
)
def test_a_default_is_set_where_the_option_exists_and_was_left_open(text: str, expected: str) -> None:
    metric = parse_metric(text).with_default("rel", 2.0)
    assert metric == parse_metric(expected)
    assert metric.with_default("rel", 2.0) == metric


def test_options_and_the_cutoff_reach_the_formula() -> None:
    qrels = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}
    assessment = assessment_of(qrels, [("q1", "b", 3.0), ("q1", "x", 2.0), ("q1", "a", 1.0), ("q2", "x", 1.0)])
    expected = {
        "P@2": [0.5, 0.0],
        "P(rel=2)@3": [1 / 3, 0.0],
        "RR(rel=2)": [1 / 3, 0.0],
        "RR(rel=2)@2": [0.0, 0.0],
        "RR(judged_only=True,rel=2)@2": [0.5, 0.0],
        "RBP(p=0.5)@1": [0.5, 0.0],
        "NumRet": [3.0, 1.0],
        "NumRet(judged_only=True)": [2.0, 0.0],
    }
    values = metric_values(map(parse_metric, expected), assessment, None)
    np.testing.assert_allclose(values.T, list(expected.values()), rtol=1e-15)


def test_only_chunk_metrics_see_every_chunk() -> None:
    qrels, rows = {"q": {"a": 1.0, "b": 1.0}}, [("q", "a", 3.0), ("q", "a", 2.0), ("q", "b", 1.0)]
    documents, chunks = assessment_of(qrels, rows), assessment_of(qrels, rows, chunks=True)
    metrics = [parse_metric(name) for name in ("P@3", "chunk_P@3", "R@2", "chunk_R@2")]
    np.testing.assert_array_equal(metric_values(metrics, documents, chunks), [[2 / 3, 1.0, 1.0, 0.5]])
    with pytest.raises(ValueError, match="chunk_P@3"):
        metric_values(metrics, documents, None)


def test_no_metrics_make_a_table_without_columns() -> None:
    assert metric_values([], assessment_of({"q1": {}, "q2": {}}, []), None).shape == (2, 0)


def test_a_cutoff_beyond_every_ranking_sees_all_of_it() -> None:
    assessment = assessment_of({"q": {"a": 1.0, "b": 2.0}}, [("q", "b", 2.0), ("q", "x", 1.0)])
    for name, definition in METRICS.items():
        if definition.cutoff == "optional":
            everything, far = Metric(name).values(assessment), Metric(name, cutoff=2**62).values(assessment)
            np.testing.assert_array_equal(far, everything, err_msg=name)


def test_blanks_within_a_name_are_read_once() -> None:  # trying each way to divide them would take hours
    with pytest.raises(InputError, match="is not a metric"):
        parse_metric(f"nDCG{' ' * 100_000}\0")


@pytest.mark.parametrize(
    "text", ["P(" + "a," * 200_000 + ")@5", "AP" + " " * 200_000 + ")", "P(" + "{" * 200_000 + ")"]
)
def test_a_huge_name_is_refused_at_once(text: str) -> None:
    with pytest.raises(InputError):
        parse_metric(text)
