"""The audit of a judge by documents that people also judged, and pairs that compare differently with holes filled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.agreement import AUDIT, audit_table
from rankbeam.transforms.judge.metrics import parse_defined
from rankbeam.transforms.kernels.statistics.agreement import wilson_interval
from rankbeam.transforms.kernels.statistics.raters import observed_agreement
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.holes import AUDITED, LEAST_AUDITED, LLM, MOST_AUDITED
from rankbeam.transforms.records.metrics.names import HOLES, Metric
from rankbeam.transforms.records.scores.rows import Verdict
from rankbeam.transforms.records.slices import ALL

Pair = tuple[str, str]  # a query and a document

_LEAST_KAPPA, _MOST_OVERRATED = 0.4, 0.1
_MOST_NAMED = 10
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Audit:
    """Comparison of the judge's grades with people's, on people's scale."""

    grades: Sequence[int]  # grades that occur, lowest first
    counts: Sequence[Sequence[int]]  # pairs of query and document, by people's grade (row) and the judge's (column)
    kappa: float | None  # quadratic kappa; None if it is not defined
    interval: tuple[float, float] | None  # its 95% bootstrap interval, over queries
    overrated: int  # documents that people found not relevant and the judge found relevant
    not_relevant: int  # documents that people found not relevant
    population: int = 0  # documents that both graded; `pairs` of them were drawn, balanced by the judge's grade
    estimates: Mapping[str, float] = field(default_factory=dict)  # for the population; empty in older runs

    @property
    def pairs(self) -> int:
        return sum(map(sum, self.counts))

    @property
    def agreement(self) -> float | None:
        counted = observed_agreement(np.array(self.counts, np.int64)) if self.pairs else None
        return self.estimates.get("agreement", counted)

    @property
    def is_sample(self) -> bool:
        """Return whether only some of the documents that both graded were compared."""
        return self.population > self.pairs

    @property
    def overrating(self) -> tuple[float, float, float] | None:
        """The probability that the judge finds a document relevant although people do not, and its 95% interval."""
        if not self.not_relevant:
            return None
        share, (low, high) = self.overrated / self.not_relevant, wilson_interval(self.overrated, self.not_relevant)
        known = self.estimates
        return known.get("overrating", share), known.get("overrating_low", low), known.get("overrating_high", high)

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust the filled grades."""
        warnings = []
        if self.pairs < LEAST_AUDITED:
            graded = pluralize(self.pairs, "document")
            warnings.append(f"people and judge both graded {graded}; {LEAST_AUDITED} are needed")
        if self.overrating is not None and self.overrating[0] > _MOST_OVERRATED:
            warnings.append(
                f"the judge finds {self.overrating[0]:.0%} of the documents relevant that people found not relevant"
            )
        return [*warnings, *filter(None, [self.doubt])]

    @property
    def doubt(self) -> str:
        """The reason against gates on filled means; "" if the judge agrees with people well enough."""
        if self.interval is not None and self.interval[0] >= _LEAST_KAPPA:
            return ""
        low = "unknown" if self.interval is None else f"{self.interval[0]:.2f}"
        return f"the lower end of quadratic kappa is {low}; below {_LEAST_KAPPA}, put no gates on such means"

    def as_text(self) -> str:
        """The audit as text; "" if people and judge have no graded documents in common."""
        if not self.pairs:
            return ""
        low, high = self.interval or (float("nan"), float("nan"))
        kappa = "undefined" if self.kappa is None else f"{self.kappa:.2f} ({low:.2f} to {high:.2f})"
        equal = f"{self.documents} · {self.agreement:.0%} equal"
        lines = [f"audit: {equal} · quadratic kappa {kappa}"]
        if self.overrating is not None:
            share, *interval = self.overrating
            ends = " to ".join(f"{end:.0%}" for end in interval)
            lines.append(f"relevant by the judge where people said 0: {share:.0%} ({ends})")
        return "\n".join(lines)

    @property
    def documents(self) -> str:
        if not self.is_sample:
            return f"{pluralize(self.pairs, 'document')} graded by both"
        return (
            f"{self.pairs:,} of {self.population:,} documents graded by both, drawn by the judge's grade and weighted"
        )

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Audit":
        cells = {(int(cell["first"]), int(cell["second"])): cell["items"] for cell in row["confusion"]}
        size = max([1, *(max(cell) for cell in cells)]) + 1
        counts = [[cells.get((one, other), 0) for other in range(size)] for one in range(size)]
        low, high = row.get("kappa_low"), row.get("kappa_high")
        interval = None if low is None or high is None else (low, high)
        first, *_ = counts
        names = ("agreement", "overrating", "overrating_low", "overrating_high")
        estimates = {name: row[name] for name in names if row.get(name) is not None}
        population = row.get("sampled_from") or 0
        return cls(range(size), counts, row.get("kappa"), interval, sum(first[1:]), sum(first), population, estimates)


def audit_of(human: Mapping[Pair, float], judge: Mapping[Pair, int], most: int = MOST_AUDITED) -> Audit:
    """The audit over at most `most` pairs that both graded; people's grades below 0 do not count.

    >>> audit_of({("q", "a"): 1.0, ("q", "b"): 0.0, ("r", "a"): 0.0}, {("q", "a"): 1, ("q", "b"): 1}).counts
    [[0, 1], [0, 1]]
    """
    pairs = sorted(pair for pair in judge if human.get(pair, -1.0) >= 0)
    rows = [
        {"query_id": query_id, "doc_id": doc_id, "human": human[query_id, doc_id], "judge": judge[query_id, doc_id]}
        for query_id, doc_id in pairs
    ]
    return Audit.of(*audit_table([pa.RecordBatch.from_pylist(rows, AUDITED)], "", most=most).to_pylist())


def audit_in(run: Results) -> Audit | None:
    """The audit of a run's judge; None if it filled no holes."""
    return next((Audit.of(row) for row in run.rows("agreement") if row["step"] == AUDIT), None)


def problem_of_gate(run: Results, metric: str) -> str:
    """The reason in the judge's audit against a gate on a metric; "" if there is none."""
    if f"{HOLES}={LLM}" not in metric:
        return ""
    audit = audit_in(run)
    return "the judge that fills holes was not audited" if audit is None else audit.doubt


@dataclass(frozen=True)
class ChangedPair:
    """A pair of configurations whose order or significance differs."""

    metric: str
    first: str
    second: str
    people: str  # result of the first against the second, for example "better, significant"
    judged_only: str  # the same without the documents that people did not judge
    filled: str  # the same with the judge's grades in the holes

    @property
    def sentence(self) -> str:
        parts = f"by people {self.people}; of judged documents only {self.judged_only}; holes filled {self.filled}"
        return f"{self.metric}: {self.first} against {self.second}: {parts}"


def fills_holes(run: Results) -> bool:
    return any(f"{HOLES}={LLM}" in name for name in run.metrics)


def changed_pairs(run: Results) -> list[ChangedPair]:
    """All changed pairs, metric by metric."""
    changed = []
    confidence = run.run["statistics"]["confidence"]
    significant = {
        (row.metric, frozenset((row.config_id, row.baseline)))
        for row in run.comparisons
        if row.slice == ALL and row.verdict(confidence) in (Verdict.BETTER, Verdict.WORSE)
    }
    for filled in [metric for metric in parse_defined(run.metrics) if isinstance(metric, Metric) and metric.holes]:
        people = replace(filled, holes=False)
        variants = [str(metric) for metric in (people, replace(people, judged_only=True), filled)]
        for one, other in combinations(run.configurations, 2):
            pair = one["config_id"], other["config_id"]
            results = [_compare_means(run, name, *pair, (name, frozenset(pair)) in significant) for name in variants]
            if len(set(results)) > 1:
                changed.append(ChangedPair(variants[0], one["name"], other["name"], *results))
    return changed


def hole_notes(run: Results) -> Iterator[str]:
    """Notes on the audit, and on pairs that compare differently."""
    if not fills_holes(run):
        return
    if (audit := audit_in(run)) is not None and (text := audit.as_text()):
        yield f"{HOLES}={LLM} · {text}"
    pairs = changed_pairs(run)
    if pairs:
        more = [f"further pairs that compare differently: {len(pairs) - _MOST_NAMED:,}"] if pairs[_MOST_NAMED:] else []
        yield "\n".join([*(pair.sentence for pair in pairs[:_MOST_NAMED]), *more])


def _compare_means(run: Results, metric: str, first: str, second: str, is_significant: bool) -> str:
    """The order of two means, and whether their difference is significant."""
    means = [row.mean if (row := run.means.get((name, ALL, metric))) else None for name in (first, second)]
    if means[0] is None or means[1] is None:
        return _UNKNOWN
    order = "equal" if means[0] == means[1] else "better" if means[0] > means[1] else "worse"
    return f"{order}, significant" if is_significant else order
