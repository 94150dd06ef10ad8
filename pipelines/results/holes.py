"""Pairs of configurations that compare otherwise when holes in the judgements are filled, or left out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from rankbeam.pipelines.results.audit import audit_in
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.metrics.names import HOLES, Metric
from rankbeam.transforms.records.scores.rows import Verdict
from rankbeam.transforms.records.slices import ALL

_MOST_NAMED = 10
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class ChangedPair:
    """A pair of configurations whose order or significance differs.

    Attributes:
        metric: name of the metric by people.
        first: name of a configuration.
        second: name of another one.
        people: result of the first against the second, such as "better, significant".
        judged_only: the same without the documents that people did not judge.
        filled: the same with the judge's grades in the holes.
    """

    metric: str
    first: str
    second: str
    people: str
    judged_only: str
    filled: str

    @property
    def sentence(self) -> str:
        parts = f"by people {self.people}; of judged documents only {self.judged_only}; holes filled {self.filled}"
        return f"{self.metric}: {self.first} against {self.second}: {parts}"


def fills_holes(run: Results) -> bool:
    """Return whether a metric of the run fills holes."""
    return any(f"{HOLES}={LLM}" in name for name in run.metrics)


def changed_pairs(run: Results) -> list[ChangedPair]:
    """All such pairs, metric by metric."""
    changed = []
    for filled in [metric for metric in parse_all(run.metrics) if isinstance(metric, Metric) and metric.holes]:
        people = replace(filled, holes=False)
        variants = [str(metric) for metric in (people, replace(people, judged_only=True), filled)]
        for one, other in combinations(run.configurations, 2):
            results = [_result(run, name, one["config_id"], other["config_id"]) for name in variants]
            if len(set(results)) > 1:
                changed.append(ChangedPair(variants[0], one["name"], other["name"], *results))
    return changed


def hole_notes(run: Results) -> Iterator[str]:
    """The audit, and the pairs that compare otherwise, for people."""
    if not fills_holes(run):
        return
    if (audit := audit_in(run)) is not None and (text := audit.as_text()):
        yield f"{HOLES}={LLM} · {text}"
    pairs = changed_pairs(run)
    if pairs:
        more = [f"{len(pairs) - _MOST_NAMED:,} further pairs compare otherwise"] if len(pairs) > _MOST_NAMED else []
        yield "\n".join([*(pair.sentence for pair in pairs[:_MOST_NAMED]), *more])


def _result(run: Results, metric: str, first: str, second: str) -> str:
    """The order of two means, and whether their difference is significant, if it was tested."""
    means = [row.mean if (row := run.means.get((name, ALL, metric))) else None for name in (first, second)]
    if means[0] is None or means[1] is None:
        return _UNKNOWN
    order = "equal" if means[0] == means[1] else "better" if means[0] > means[1] else "worse"
    confidence = run.run["statistics"]["confidence"]
    tested = (row for row in run.comparisons if (row.slice, row.metric) == (ALL, metric))
    pair = next((row for row in tested if {row.config_id, row.baseline} == {first, second}), None)
    is_significant = pair is not None and pair.verdict(confidence) in (Verdict.BETTER, Verdict.WORSE)
    return f"{order}, significant" if is_significant else order
