"""Gates that the noise of a judge can decide."""

from types import SimpleNamespace
from typing import Any

from rankbeam.pipelines.gates.checks import noise_warnings
from rankbeam.pipelines.gates.gates import Gate


def run(detectable: float, within_sd: float | None, samples: int = 1) -> Any:
    """A run whose gated comparison is over 50 queries; others detect all. Its judge asks about claims."""
    others = [("AP", "all", 1e-9), ("Faithfulness", "kind=a", 1e-9), ("Faithfulness", "all", None)]
    rows = [
        SimpleNamespace(metric=metric, slice=name, queries=50, detectable=least)
        for metric, name, least in (*others, ("Faithfulness", "all", detectable))
    ]
    quality = [{"step": "support", "within_sd": within_sd}, {"step": "grade", "within_sd": 0.9}]
    return SimpleNamespace(
        comparisons=rows, judge_quality=quality, slices=["all", "kind=a"], judge_settings={"samples": samples}
    )


def test_a_gate_whose_metric_detects_less_than_the_judges_noise_is_warned_of() -> None:
    gates = [Gate("Faithfulness", "difference_low", -0.01, at_least=True), Gate("AP", "mean", 0.1, at_least=True)]
    # 1.96 · 0.15 · sqrt(2 / 50) = 0.0588
    (warning,) = noise_warnings(run(0.05, 0.15), gates, 0.95)
    difference = "the gate on Faithfulness can detect a difference of 0.0500"
    expected = f"{difference}, but repeating the judge's verdicts may cause one of 0.0588"
    assert warning.startswith(expected)
    assert not list(noise_warnings(run(0.06, 0.15), gates, 0.95))
    assert not list(noise_warnings(run(0.05, 0.15, samples=2), gates, 0.95))
    assert not list(noise_warnings(run(0.05, None), gates, 0.95))
    assert not list(noise_warnings(run(0.05, 0.15), gates[1:], 0.95))
