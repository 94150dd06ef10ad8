"""Compare decisions about pairs of configurations by the judge alone with decisions by labels and judge together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.agreement import AUDIT, PEOPLE
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_defined
from rankbeam.transforms.kernels.statistics.raters import DecisionAgreement, decision_agreement, kendall_tau_b, tau_ap
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import Comparison, Verdict
from rankbeam.transforms.records.slices import ALL

_FEWEST_FOR_TAU = 5
_SIGNS = {Verdict.BETTER: 1, Verdict.WORSE: -1, Verdict.UNDECIDED: 0, Verdict.EQUAL: 0}


@dataclass(frozen=True)
class JudgeDecisions:
    """Agreement between decisions by a judged metric and decisions by the same metric with labels."""

    metric: str
    agreement: DecisionAgreement  # pairs of configurations by decision: better, worse, or not significant
    tau_b: float | None = None  # Kendall's coefficient of the two rankings of configurations; None for fewer than five
    tau_ap: float | None = None  # the same coefficient with more weight on the best configurations

    @property
    def warning(self) -> str:
        """A warning that the judge contradicts people; "" if it never does."""
        if not self.agreement.opposite:
            return ""
        pairs = f"{self.agreement.opposite} of {pluralize(self.agreement.pairs, 'pair')} of configurations"
        return (
            f"{self.metric}: in {pairs}, the judge finds a significant difference, and people find a significant "
            "difference in the opposite direction"
        )


def judge_decisions(results: Results) -> list[JudgeDecisions]:
    """The decisions by every metric that a run has both with and without labels."""
    decisions = []
    for name in results.metrics:
        for metric in parse_defined([name]) if "labels=" in name else ():
            judged = str(replace(metric, labels=False)) if isinstance(metric, JudgedMetric) else name
            if judged in results.metrics and judged != name:
                decisions.append(_decisions(results, judged, name))
    return decisions


def _decisions(results: Results, judged: str, labelled: str) -> JudgeDecisions:
    confidence = results.run["statistics"]["confidence"]
    agreement = agreement_of(results.comparisons, judged, labelled, confidence)
    means = [
        [results.means[row["config_id"], ALL, name].mean for name in (labelled, judged)]
        for row in results.configurations
    ]
    sign = results.sign_of(judged)
    known = [(sign * human, sign * judge) for human, judge in means if human is not None and judge is not None]
    if len(known) < _FEWEST_FOR_TAU:
        return JudgeDecisions(judged, agreement)
    by_people, by_judge = zip(*known, strict=True)
    return JudgeDecisions(judged, agreement, kendall_tau_b(by_people, by_judge), tau_ap(by_people, by_judge))


def agreement_of(comparisons: Sequence[Comparison], judged: str, labelled: str, confidence: float) -> DecisionAgreement:
    """The agreement on the pairs for which both metrics could be tested, over all queries."""
    by_judge, by_people = (_signs(comparisons, name, confidence) for name in (judged, labelled))
    pairs = [pair for pair in by_people if pair in by_judge]
    return decision_agreement([by_people[pair] for pair in pairs], [by_judge[pair] for pair in pairs])


def _signs(comparisons: Sequence[Comparison], metric: str, confidence: float) -> dict[tuple[str, str], int]:
    rows = [row for row in comparisons if (row.metric, row.slice) == (metric, ALL)]
    signs = {(row.config_id, row.baseline): _SIGNS.get(row.verdict(confidence)) for row in rows}
    return {pair: sign for pair, sign in signs.items() if sign is not None}


def unmatched_labels(results: Results) -> Iterator[str]:
    """A warning for each step with labels of texts that the run does not judge."""
    for row in results.rows("agreement"):
        if row["first"] == PEOPLE and row["unmatched"] and row["step"] != AUDIT:
            count = (
                f"{row['unmatched']:,} labels of the step {row['step']} are of texts that {row['second']} did not judge"
            )
            yield f"{count} in this run: of another metric or dataset, or of texts that have changed; they are left out"


def agreement_with_people(results: Results) -> Iterator[str]:
    """A line for each judge and step that people labelled."""
    for row in results.rows("agreement"):
        if row["first"] == PEOPLE and row["step"] != AUDIT and row["second"] and row["agreement"] is not None:
            share = f"{row['second']} agrees with people in {row['agreement']:.1%} of {row['items']:,} decisions"
            kappa = "kappa" if row["weights"] == "none" else f"{row['weights']} kappa"
            ends = "" if row["kappa_low"] is None else f" ({row['kappa_low']:.2f} to {row['kappa_high']:.2f})"
            yield f"{share} ({row['step']})" + ("" if row["kappa"] is None else f" · {kappa} {row['kappa']:.2f}{ends}")
