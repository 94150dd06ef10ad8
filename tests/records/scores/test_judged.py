"""Judged values meet the rankings of their queries."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation
from rankbeam.transforms.records.race import order_of
from rankbeam.transforms.records.scores.judged import NOT_JUDGED, JudgedValues, with_judged
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, Status

IDS = pa.array(["a", "b", "c"])
EVALUATION = Evaluation(
    configurations=(
        Configuration("0", "judged", 0, "", "{}", None, None, judged=frozenset({"Faithfulness"})),
        Configuration("1", "not judged", 0, "", "{}", None, None),
    ),
    metrics=tuple(parse_all(("AP", "Faithfulness"))),
    sources=(),
)


def part(
    ids: list[str], values: list[float | None], configuration: int = 0, metric: str = "Faithfulness"
) -> JudgedValues:
    return JudgedValues(
        configuration,
        metric,
        pa.array(ids, pa.string()),
        np.array([np.nan if value is None else value for value in values]),
        np.array([Status.UNDEFINED if value is None else Status.OK for value in values], np.int8),
        pa.array(["no_claims" if value is None else None for value in values], pa.string()),
    )


def joined(*values: JudgedValues, evaluation: Evaluation = EVALUATION) -> tuple[ScoredConfiguration, ...]:
    rankings = ScoredPanel(np.zeros(3, np.int8), np.ones((3, 1)))
    return with_judged([ScoredConfiguration(place, (rankings,)) for place in (0, 1)], IDS, values, evaluation)


def test_parts_come_in_any_order_and_what_did_not_come_has_failed() -> None:
    first, second = joined(part(["c"], [0.5]), part(["a"], [None]))
    panel = first.panels[1]
    assert panel.status.tolist() == [Status.UNDEFINED, Status.FAILED, Status.OK]
    assert panel.values[:, 0].tolist() == pytest.approx([np.nan, np.nan, 0.5], nan_ok=True)
    assert panel.reasons is not None
    assert panel.reasons.to_pylist() == ["no_claims", NOT_JUDGED, None]
    assert second.panels[1].status.tolist() == [Status.MISSING] * 3
    assert np.isnan(second.panels[1].values).all()


def test_queries_after_a_race_has_dropped_a_configuration_are_not_missing_in_metrics_that_it_lacks() -> None:
    judged, lacking = EVALUATION.configurations
    dropped = replace(EVALUATION, configurations=(judged, replace(lacking, last=int(np.sort(order_of(IDS))[0]))))
    _, second = joined(evaluation=dropped)
    assert sorted(second.panels[1].status.tolist()) == [Status.MISSING, Status.NOT_ASKED, Status.NOT_ASKED]


def test_without_any_judgement_all_have_failed() -> None:
    first, _ = joined()
    assert first.panels[1].status.tolist() == [Status.FAILED] * 3


@pytest.mark.parametrize(
    "values",
    [
        [part(["a"], [0.5], configuration=1)],
        [part(["a"], [0.5], metric="AnswerRelevance")],
        [part(["z"], [0.5])],
        [part(["a"], [0.5]), part(["a"], [0.25])],
    ],
    ids=["of a configuration that is not judged", "of another metric", "of another query", "twice"],
)
def test_values_that_cannot_be_are_refused(values: list[JudgedValues]) -> None:
    with pytest.raises(ValueError, match=r"judged"):
        joined(*values)


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [(0.5, Status.FAILED, "down"), (np.nan, Status.OK, None), (np.nan, Status.FAILED, None), (0.5, Status.OK, "why")],
)
def test_what_has_no_value_says_why(value: float, status: Status, reason: str | None) -> None:
    with pytest.raises(ValueError, match="the queries with"):
        JudgedValues(
            0,
            "Faithfulness",
            pa.array(["a"]),
            np.array([value]),
            np.array([status], np.int8),
            pa.array([reason], pa.string()),
        )
