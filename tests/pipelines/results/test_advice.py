"""Rules about what to try next, against conditions written out for each pair of metrics."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.pipelines.results.advice import RULES, advice_of
from rankbeam.transforms.records.scores.rows import ConfigurationMetric

MET = ["R@5", "R@10", "R@100", "R(rel=2)@100", "P@5", "P@10", "P(rel=2)@100", "nDCG@10"]
JUDGED = ["ClaimRecall", "ContextRecall", "ContextRecall@2", "ContextRecall@8", "ContextPrecision(claims)"]
NOISE = ["NoiseSensitivity(relevant)", "NoiseSensitivity(irrelevant)"]
OFFLINE = [name.replace(")", ",judge=lexical)") if ")" in name else f"{name}(judge=lexical)" for name in JUDGED[:2]]
NAMES = [*MET, *JUDGED, *NOISE, *OFFLINE, "Faithfulness", "<no metric>"]

HIGH_DEEPER = [("R@5", "R@10"), ("R@5", "R@100"), ("R@10", "R@100"), ("ContextRecall@2", "ContextRecall@8")]
HIGH_DEEPER += [("ContextRecall@2", "ContextRecall"), ("ContextRecall@8", "ContextRecall")]
SAME = [("P@5", "R@5"), ("P@10", "R@10"), ("P(rel=2)@100", "R(rel=2)@100")]
SAME += [("ContextPrecision(claims)", "ContextRecall")]

ends = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.49, 0.5, 0.6, 0.7, 0.9, 1.0])


@st.composite
def rows(draw: st.DrawFn, name: str) -> ConfigurationMetric:
    """A mean with or without an interval, over many or few queries, some of which may have failed."""
    low, high = sorted((draw(ends), draw(ends)))
    has_interval, failed = draw(st.sampled_from([True, True, True, False])), draw(st.sampled_from([0, 0, 3]))
    row = {"config_id": "c", "slice": "all", "metric": name, "mean": (low + high) / 2, "failed": failed}
    row |= {"queries": draw(st.sampled_from([5, 20, 500])), "empty": 0, "missing": 0}
    row |= {"ci_low": low, "ci_high": high} if has_interval else {}
    row |= {"lowest": draw(ends), "highest": draw(st.sampled_from([0.3, 0.6, 1.0]))}
    return ConfigurationMetric.of(row)


means = st.lists(st.sampled_from(NAMES), unique=True).flatmap(lambda names: st.tuples(*map(rows, names)))


def is_low(row: ConfigurationMetric | None) -> bool:
    if row is None or row.ci_high is None or row.queries < 20:
        return False
    return row.ci_high < 0.5 and not (row.failed and (row.highest or 0.0) >= 0.5)


def is_high(row: ConfigurationMetric | None, limit: float = 0.7) -> bool:
    if row is None or row.ci_low is None or row.queries < 20:
        return False
    return row.ci_low >= limit and not (row.failed and (row.lowest or 0.0) < limit)


def expected(by_name: Mapping[str, ConfigurationMetric]) -> set[tuple[str, str | None, str]]:
    """The rules that hold, each with the metrics that it may name."""
    holding = {("rank_higher", low, high) for low, high in HIGH_DEEPER if both(by_name, low, high)}
    holding |= {("narrow", low, high) for low, high in SAME if both(by_name, low, high)}
    if both(by_name, "ClaimRecall", "ContextRecall"):
        holding.add(("answer_better", "ClaimRecall", "ContextRecall"))
    return holding | {("less_noise", None, name) for name in NOISE if is_high(by_name.get(name), 0.1)}


def both(by_name: Mapping[str, ConfigurationMetric], low: str, high: str) -> bool:
    return is_low(by_name.get(low)) and is_high(by_name.get(high))


@pytest.mark.long
@settings(max_examples=examples(500))
@given(means)
def test_a_rule_is_named_if_and_only_if_its_conditions_hold(some: tuple[ConfigurationMetric, ...]) -> None:
    holding = expected({row.metric: row for row in some})
    named = {(one.rule.name, one.low and one.low.metric, one.high.metric) for one in advice_of("c", some)}
    assert named <= holding
    # A rule names one of several pairs of cutoffs, and every family of metrics that it holds for.
    assert {family(*one) for one in named} == {family(*one) for one in holding}
    assert len({family(*one) for one in named}) == len(named)


def family(rule: str, _: str | None, high: str) -> tuple[str, str]:
    return rule, high.partition("@")[0]


def row(metric: str, mean: float) -> ConfigurationMetric:
    values = {"config_id": "c", "metric": metric, "mean": mean, "ci_low": mean - 0.05, "ci_high": mean + 0.05}
    return ConfigurationMetric.of(values | {"queries": 100, "failed": 0})


def test_of_several_cutoffs_the_nearest_pair_is_named() -> None:
    some = [row("R@5", 0.1), row("R@10", 0.2), row("R@50", 0.8), row("R@100", 0.9), row("P@50", 0.1), row("P@100", 0.1)]
    named = {one.rule.name: one.because for one in advice_of("c", some)}
    assert named == {
        "rank_higher": "R@10 is low, and R@50 is high",
        "narrow": "P@50 is low, and R@50 is high",
    }


def test_metrics_of_different_options_are_not_held_together() -> None:
    assert not list(advice_of("c", [row("P(rel=2)@10", 0.1), row("R@10", 0.9), row("ClaimRecall(judge=a)", 0.1)]))
    pair = [row("ClaimRecall(judge=a)", 0.1), row("ContextRecall(judge=b)", 0.9)]
    assert not list(advice_of("c", pair))
    assert [one.rule.name for one in advice_of("c", [pair[0], row("ContextRecall(judge=a)", 0.9)])] == ["answer_better"]


def test_every_rule_pairs_as_many_low_metrics_as_high_ones() -> None:
    assert all(len(rule.low) in (0, len(rule.high)) for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)
