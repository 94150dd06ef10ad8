"""The columns that the bootstrap sums up: which is where, and in what units."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.kernels.statistics.moments import ClusterTotals
from rankbeam.transforms.kernels.statistics.randomisation import Blocks
from rankbeam.transforms.records.metrics import names
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation
from rankbeam.transforms.records.scores.means import (
    SumLayout,
    cluster_moments,
)
from rankbeam.transforms.records.scores.scored import ScoredPanel, Status

EVALUATION = Evaluation(
    configurations=tuple(Configuration(str(i), str(i), 0, "", "{}", None, None) for i in range(2)),
    metrics=tuple(parse_all(["RR", "AnswerRelevance(ragas)", "NumRet", "chunk_nDCG@5"])),
    sources=(),
)
LAYOUT = SumLayout.of(EVALUATION)
LAYOUT_OF_RR = SumLayout.of(replace(EVALUATION, metrics=EVALUATION.metrics[:1]))
OK, FAILED, UNDEFINED = (np.int8(status) for status in (Status.OK, Status.FAILED, Status.UNDEFINED))
FIRST = (
    ScoredPanel(np.array([OK, FAILED]), np.array([[0.5, 3.0, 1.5], [np.nan] * 3])),
    ScoredPanel(np.array([OK, OK]), np.array([[-1.0], [0.25]])),
)
SECOND = (
    ScoredPanel(np.array([OK, OK]), np.array([[0.25, 1.0, 0.5], [1.0, 2.0, 0.0]])),
    ScoredPanel(np.array([UNDEFINED, OK]), np.array([[np.nan], [0.75]])),
)
BITS, FEWER = 1 << 32, 1 << 20


def columns() -> np.ndarray:
    return LAYOUT.columns(
        [[LAYOUT.part(place, panel) for place, panel in enumerate(panels)] for panels in (FIRST, SECOND)]
    )


def test_every_panel_has_its_metrics_and_then_its_queries() -> None:
    assert columns().tolist() == [
        [
            *(BITS // 2, 3 * FEWER, 3 * FEWER // 2, 1, -BITS, 1),
            *(BITS // 4, FEWER, FEWER // 2, 1, 0, 0),
            *(-BITS // 4, -2 * FEWER, -FEWER, 1, 0, 0),
        ],
        [
            *(0, 0, 0, 0, BITS // 4, 1),
            *(BITS, 2 * FEWER, 0, 1, 3 * BITS // 4, 1),
            *(0, 0, 0, 0, BITS // 2, 1),
        ],
    ]


@np.errstate(all="raise")  # a replicate without weight divides nothing by zero
def test_means_and_differences_are_read_from_the_sums() -> None:
    weights = np.array([[1, 2, 0], [3, 0, 1]])  # of two queries in three replicates
    totals = columns().T @ weights
    assert LAYOUT.replicates(totals, 0, 0).tolist() == [
        [0.5, 0.5, pytest.approx(np.nan, nan_ok=True)],
        [3.0, 3.0, pytest.approx(np.nan, nan_ok=True)],
        [1.5, 1.5, pytest.approx(np.nan, nan_ok=True)],
    ]
    assert LAYOUT.replicates(totals, 1, 0).tolist() == [[0.8125, 0.25, 1.0], [1.75, 1.0, 2.0], [0.125, 0.5, 0.0]]
    assert LAYOUT.replicates(totals, 0, 1).tolist() == [[-0.0625, -1.0, 0.25]]
    assert LAYOUT.replicates(totals, 1, 1).tolist() == [[0.75, pytest.approx(np.nan, nan_ok=True), 0.75]]
    assert LAYOUT.replicates(totals, (1, 0), 1).tolist() == [[0.5, pytest.approx(np.nan, nan_ok=True), 0.5]]
    assert LAYOUT.replicates(totals, (1, 0), 0)[0, :2].tolist() == [-0.25, -0.25]


def test_the_unit_of_a_bounded_metric_is_a_share_of_its_highest_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "definition_named", {**METRICS, "RR": replace(METRICS["RR"], highest=5.0)}.__getitem__)
    units, _ = LAYOUT_OF_RR.part(0, ScoredPanel(np.array([OK]), np.array([[5.0]])))
    assert units.tolist() == [[5 * BITS // 8]]  # a power of two


def test_every_pair_has_its_own_columns() -> None:
    panel = SumLayout.of(EVALUATION).panels[1]
    layout = SumLayout((panel,), 3, ((1, 0), (2, 0), (2, 1)))
    values = [0.5, 0.25, -0.75]
    parts = [[layout.part(0, ScoredPanel(np.array([OK]), np.array([[value]])))] for value in values]
    totals = layout.columns(parts).T
    assert [layout.replicates(totals, number, 0).tolist() for number in range(3)] == [[[value]] for value in values]
    assert [layout.replicates(totals, pair, 0).tolist() for pair in layout.pairs] == [[[-0.25]], [[-1.25]], [[-1.0]]]


def test_clusters_of_one_query_have_the_standard_errors_of_queries() -> None:
    random, widths = np.random.default_rng(4), [len(panel.metrics) for panel in EVALUATION.panels]
    # Whole numbers, as NumRet counts documents.
    values = [[random.integers(0, 5, (12, width)) * 1.0 for width in widths] for _ in EVALUATION.configurations]
    parts = [
        [LAYOUT.part(place, ScoredPanel(np.full(12, OK), panel)) for place, panel in enumerate(panels)]
        for panels in values
    ]
    totals = ClusterTotals.of(np.arange(12, dtype=np.uint64), LAYOUT.columns(parts))
    moments = cluster_moments(totals, EVALUATION)
    for panel in range(len(widths)):
        one, other = (by_panel[panel] for by_panel in values)
        by_cluster = {
            "one": (LAYOUT.by_cluster(moments, 0, panel), one),
            "other": (LAYOUT.by_cluster(moments, 1, panel), other),
            "pair": (LAYOUT.by_cluster(moments, (1, 0), panel), other - one),
        }
        for actual, expected in by_cluster.values():
            assert [by.standard_error for by in actual] == pytest.approx(stats.sem(expected).tolist())
            assert [by.count for by in actual] == pytest.approx([12.0] * widths[panel])


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("NumRelRet", 0, 3), ("Steps", 1, 4), ("OutputTokens", 0, 3), ("InputTokens", 900, 2e6), ("Cost", 0, 2e-5),
        ("Seconds", 0.5, 30), ("DCG@3", 0, 8),
    ],
)  # fmt: skip
def test_values_without_an_upper_bound_have_the_exact_p_value_whatever_their_size(
    name: str, least: float, most: float
) -> None:
    evaluation = replace(EVALUATION, metrics=tuple(parse_all([name])))
    layout, random = SumLayout.of(evaluation), np.random.default_rng(5)
    values = random.uniform(least, most, (2, 12)) + np.array([[0.0], [0.2 * most]])
    values = np.rint(values) if most == int(most) and least == int(least) else values
    place = len(evaluation.panels) - 1
    (units, _), (others, _) = (layout.part(place, ScoredPanel(np.full(12, OK), own[:, None])) for own in values)
    actual = Blocks.of(np.arange(12, dtype=np.uint64), units - others).test(0).p_values
    expected = stats.permutation_test((values[0] - values[1],), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert actual.tolist() == pytest.approx([expected.pvalue], abs=2**-10)
