"""Geometric means of AP and Bpref, against pytrec_eval."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from support.assessments import Run, assessment_of, rows_of
from support.strategies import collections

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.geometric import geometric_mean, log_average_precision, log_bpref


@pytest.mark.parametrize(("measure", "kernel"), [("gm_map", log_average_precision), ("gm_bpref", log_bpref)])
@pytest.mark.parametrize("level", [1, 2])
@given(collection=collections())
def test_the_mean_on_the_logarithmic_scale_is_the_geometric_mean_of_pytrec_eval(
    collection: tuple[dict[str, dict[str, int]], Run], level: int, measure: str, kernel: Callable[..., FloatArray]
) -> None:
    qrels, run = collection
    theirs = pytrec_eval.RelevanceEvaluator(qrels, [measure], relevance_level=level).evaluate(run)
    logarithms = [theirs[query][measure] if query in theirs else math.log(0.00001) for query in qrels]
    values = kernel(assessment_of(qrels, rows_of(run)), rel=level)
    assert np.all((values >= 0.0) & (values <= 1.0))
    assert [math.log(geometric_mean(value)) for value in values] == pytest.approx(logarithms, rel=0, abs=1e-12)
    expected = pytrec_eval.compute_aggregated_measure(measure, logarithms)
    assert geometric_mean(float(values.mean())) == pytest.approx(float(expected), rel=1e-12)


def test_an_interval_of_the_geometric_mean_is_the_one_of_its_logarithms() -> None:
    precisions = np.array([1.0, 0.5, 0.25, 0.0])
    scale = 1.0 - np.log(np.maximum(precisions, 0.00001)) / math.log(0.00001)
    assert [geometric_mean(value) for value in scale] == pytest.approx([1.0, 0.5, 0.25, 0.00001])
    assert geometric_mean(0.5 + 0.0602) / geometric_mean(0.5) == pytest.approx(2.0, abs=1e-3)
