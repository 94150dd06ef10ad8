"""Warnings of gates that the judge's own noise can decide."""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from rankbeam.pipelines.compare.compare import slices_matching
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_all


def noise_warnings(run: Results, gates: Sequence[Gate], confidence: float) -> Iterator[str]:
    """That a gated metric detects smaller differences than the judge, asked again, may make.

    Two means over N queries, each judged k times with a standard deviation s within an item, differ by up to
    z · s · sqrt(2 / (N · k)). It is an upper bound: configurations share verdicts, and values average several.
    """
    spread: dict[str, float] = {}
    for of_step in run.judge_quality:
        spread[of_step["step"]] = max(spread.get(of_step["step"], 0.0), of_step["within_sd"] or 0.0)
    if not any(spread.values()):
        return
    samples = run.judge_settings.get("samples", 1)
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    for metric in dict.fromkeys(gate.metric for gate in gates if gate.metric):
        slices = {name for gate in gates if gate.metric == metric for name in slices_matching(gate.slice, run.slices)}
        deviation = max((spread.get(step, 0.0) for step in steps_of(metric)), default=0.0)
        for row in run.comparisons:
            if row.metric != metric or row.slice not in slices or row.detectable is None:
                continue
            noise = z * deviation * math.sqrt(2.0 / (row.queries * samples))
            if row.detectable < noise:
                detects = f"the gate on {metric} can detect a difference of {row.detectable:.4f}"
                yield f"{detects}, but repeating the judge's verdicts may cause one of {noise:.4f}; raise judge.samples"
                break


def steps_of(name: str) -> tuple[str, ...]:
    """The steps of a judged metric; none of another."""
    from rankbeam.transforms.judge.ask_known import known_steps  # few runs have a judge

    return known_steps(metric for metric in parse_all([name]) if isinstance(metric, JudgedMetric))
