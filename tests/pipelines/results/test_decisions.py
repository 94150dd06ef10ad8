"""Decisions of the judge beside those of people, over pairs of configurations."""

import json
from itertools import product

import pyarrow as pa
import pytest

from rankbeam.pipelines.results.decisions import JudgeDecisions, agreement_of, judge_decisions
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.kernels.statistics.raters import DecisionAgreement, tau_ap
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.scores.rows import Comparison
from rankbeam.transforms.records.slices import ALL

OUTCOMES = {"better": (0.2, 0.01), "worse": (-0.2, 0.01), "undecided": (0.1, 0.5), "untested": (0.1, None)}


def row(config_id: str, metric: str, outcome: str, slice_: str = ALL) -> Comparison:
    difference, p_value = OUTCOMES[outcome]
    return Comparison.of(
        {
            "config_id": config_id, "baseline": "base", "metric": metric, "slice": slice_, "queries": 50, "wins": 30,
            "losses": 20, "ties": 0, "unpaired": 0, "difference": difference, "p_value": p_value,
        }
    )  # fmt: skip


def test_every_pair_of_outcomes_is_counted_once() -> None:
    outcomes = list(product(OUTCOMES, OUTCOMES))
    rows = [
        row(str(number), metric, outcome)
        for number, pair in enumerate(outcomes)
        for metric, outcome in zip(("people", "judge"), pair, strict=True)
    ]
    others = [row("0", "judge", "worse", "intent=a"), row("99", "judge", "better"), row("98", "people", "better")]
    agreement = agreement_of([*rows, *others], "judge", "people", 0.95)
    tested = [pair for pair in outcomes if "untested" not in pair]
    assert agreement == DecisionAgreement(
        pairs=len(tested),
        equal=sum(people == judge for people, judge in tested),
        opposite=sum({people, judge} == {"better", "worse"} for people, judge in tested),
    )


def test_a_decision_is_one_at_the_confidence_of_the_run() -> None:
    rows = [row("a", "judge", "better"), row("a", "people", "worse")]
    assert agreement_of(rows, "judge", "people", 0.95).opposite == 1
    assert agreement_of(rows, "judge", "people", 0.999).opposite == 0


@pytest.mark.parametrize(("opposite", "is_warned"), [(0, False), (1, True)])
def test_opposite_decisions_are_a_warning(opposite: int, is_warned: bool) -> None:
    decisions = JudgeDecisions("Faithfulness", DecisionAgreement(3, 2, opposite))
    assert bool(decisions.warning) == is_warned
    if is_warned:
        assert decisions.warning.startswith("Faithfulness: in 1 of 3 pairs of configurations, the judge finds")


@pytest.mark.parametrize("lower", [False, True])
def test_the_top_of_an_order_is_its_lowest_value_if_lower_is_better(lower: bool) -> None:
    people, judge = (0.1, 0.2, 0.3, 0.4, 0.5), (0.2, 0.1, 0.3, 0.4, 0.5)
    names = ("Hallucination(labels=True,judge=lexical)", "Hallucination(judge=lexical)")
    means = [
        {"config_id": str(number), "slice": ALL, "metric": name, "mean": mean, "lower_is_better": lower}
        for name, values in zip(names, (people, judge), strict=True)
        for number, mean in enumerate(values)
    ]
    rows = {
        "runs": [{"statistics": json.dumps({"confidence": 0.95}), "dataset": "{}", "versions": "{}"}],
        "configurations": [{"config_id": str(number), "position": number} for number in range(len(people))],
        "configuration_metrics": means,
    }
    known = {name: pa.Table.from_pylist(of_table) for name, of_table in rows.items()}
    run = Results("", "run", InMemory({**known, "comparisons": tables.COMPARISONS.empty_table()}))
    (decisions,) = judge_decisions(run)
    sign = -1 if lower else 1
    assert decisions.tau_ap == tau_ap([sign * mean for mean in people], [sign * mean for mean in judge])
    assert (decisions.tau_ap == tau_ap(people, judge)) is not lower
