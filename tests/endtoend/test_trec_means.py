"""Means of `--format trec` to the last digit that trec_eval prints: it adds doubles, query by query in order of ids."""

import gzip
import math
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
import pytrec_eval
from support.data import SHARED_DATA, needs_shared_data
from support.inputs import trec_qrels, trec_run, write
from support.runs import rankbeam

from rankbeam.transforms.records.metrics.trec_names import parse_metrics, trec_name

ROBUST = SHARED_DATA / "robust03"
MEASURES = {"map", "map_cut", "Rprec", "bpref", "recip_rank", "P", "recall", "infAP", "ndcg", "ndcg_cut", "success"}
MEASURES |= {"set_P", "set_recall", "set_F", "set_map", "set_relative_P", "relative_P"}
MEASURES |= {"gm_map", "gm_bpref", "Rprec_mult"}
COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret", "runid")


def mean(values: Iterable[float]) -> float:
    """As trec_eval makes it: one rounding for each addition, and one for the division."""
    total, count = 0.0, 0
    for value in values:
        total, count = total + value, count + 1
    return total / count


def means(stdout: str) -> list[dict[str, str]]:
    """The lines of all queries, without the counts, by run."""
    runs: list[dict[str, str]] = []
    for line in stdout.splitlines():
        name, query, value = (part.strip() for part in line.split("\t"))
        assert query == "all"
        if name == "runid":
            runs.append({})
        if name not in COUNTS:
            runs[-1][name] = value
    return runs


def test_metrics_without_a_name_of_their_own_in_trec_eval_are_printed_under_ours(tmp_path: Path) -> None:
    qrels, run = write(tmp_path / "qrels", "q 0 d 1\n"), write(tmp_path / "run", "q Q0 d 1 1.0 t\n")
    words = ("RR@3", "P@1", "P(rel=2)@1", "AP(rel=2)", "rbp")
    outcome = rankbeam("score", qrels, run, *(f"-m{word}" for word in words), "--format", "trec", "--replicates", "0")
    expected = {"map": "0.0000", "P@1": "1.0000", "P(rel=2)@1": "0.0000", "rbp": "0.1000", "RR@3": "1.0000"}
    assert list(means(outcome.stdout)[0].items()) == list(expected.items())


def test_a_mean_in_the_middle_between_two_printed_ones(tmp_path: Path) -> None:
    draw = random.Random(1)
    hits = {
        f"q{n:02}": draw.randrange(6) for n in range(32)
    }  # P_5 of 0, 0.2, …, whose mean is 0.43125 but for rounding
    judged = [(query, f"d{n}", float(n < count)) for query, count in hits.items() for n in range(5)]
    ranked = [(query, f"d{n}", float(-n)) for query in reversed(hits) for n in range(5)]
    qrels, run = write(tmp_path / "qrels", trec_qrels(judged)), write(tmp_path / "run", trec_run(ranked))
    outcome = rankbeam("score", qrels, run, "-m", "P.5", "--format", "trec")
    expected = mean(hits[query] / 5 for query in sorted(hits, key=str.encode))
    assert f"{expected:6.4f}" == "0.4312"
    assert means(outcome.stdout) == [{"P_5": "0.4312"}]


@pytest.mark.long
@needs_shared_data
def test_means_of_real_runs_are_those_of_trec_evals_code() -> None:
    paths = sorted((ROBUST / "runs").iterdir())[:3]
    with gzip.open(ROBUST / "qrels.txt.gz", "rt") as file:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(file), MEASURES)
    command = ["score", ROBUST / "qrels.txt.gz", *paths, "-m", "all_trec", "--format", "trec", "--replicates", "0"]
    printed = means(rankbeam(*command, "--dialect", "pytrec_eval").stdout)
    # trec_eval 9, which pytrec_eval wraps, rounds levels of recall otherwise than trec_eval 10, and has no rbp and unj.
    lacking = ("IPrec", "IPrec11", "RBP", "Unjudged")
    compared = [metric for metric in parse_metrics(["all_trec"]) if metric.name not in lacking]
    names = [name for metric in compared if (name := trec_name(metric)) not in (None, *COUNTS)]
    for path, printed_means in zip(paths, printed, strict=True):
        with gzip.open(path, "rt") as file:
            values = evaluator.evaluate(pytrec_eval.parse_run(file))
        in_order = [values[query] for query in sorted(values, key=str.encode)]
        shown = {name: value for name, value in printed_means.items() if name in names}
        expected = {name: mean(row[name] for row in in_order) for name in names}
        expected |= {name: math.exp(expected[name]) for name in ("gm_map", "gm_bpref")}  # of logarithms
        assert shown == {name: f"{value:6.4f}" for name, value in expected.items()}
