"""Rows of the table `agreement`: between people, between judges, and between judges and people; audits of holes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.statistics import raters
from rankbeam.transforms.kernels.statistics.agreement import wilson_interval
from rankbeam.transforms.kernels.statistics.raters import MISSING
from rankbeam.transforms.records import holes, tables
from rankbeam.transforms.records.answer_tables import AGREEMENT
from rankbeam.transforms.records.judging.answers import LabelledVerdict, Votes
from rankbeam.transforms.records.labels import ADJUDICATED, Labels, Place, agreed_decision, text_hash

PEOPLE, JUDGES = "people", "judges"
AUDIT = "qrels_holes"
"""The name of an audit's row. Its grades are on the people's scale, not on the 0 to 3 of the judge's step `grade`."""

Formula = Callable[[raters.Counts], float | None]


@dataclass(frozen=True)
class Scale:
    """The verdicts of a step and their scores, lowest first; `name` is the step's name in tables."""

    name: str
    words: tuple[str, ...]
    scores: tuple[float, ...]
    is_ordered: bool

    @classmethod
    def of(cls, name: str, levels: Mapping[str, float] | None = None, words: Collection[str] = ()) -> "Scale":
        """The scale of a step: decisions, the levels of a criterion, or for a step without any the words in use."""
        step = step_named(name)
        if levels is None and not step.decisions:
            in_use = tuple(sorted(words))
            return cls(name, in_use, (0.0,) * len(in_use), is_ordered=False)
        if levels is None:
            scores = (float(step.verdicts(step.decided([word]))[0].score) for word in step.decisions)
            return cls(name, step.decisions, tuple(scores), step.is_ordered)
        ranked = tuple(sorted(levels, key=levels.__getitem__))
        return cls(name, ranked, tuple(levels[word] for word in ranked), is_ordered=len(ranked) > 2)


@dataclass(frozen=True)
class AgreementRows:
    """Makes rows, without the common columns, from verdicts on what people labelled and all votes of judges."""

    labels: Labels
    judges: Mapping[str | None, str]
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    confidence: float = 0.95
    seed: int = 0

    def table(self, verdicts: Sequence[LabelledVerdict | Votes]) -> pa.Table:
        judge_verdicts = {(one.judge, one.place): one.verdict for one in verdicts if isinstance(one, LabelledVerdict)}
        by_step = grouped((place[0], place) for place in self.labels.decisions)
        ordered = {step: sorted(by_step[step], key=str) for step in sorted(by_step)}
        rows = [row for step, places in ordered.items() for row in self._step_rows(step, places, judge_verdicts)]
        rows += self._of_votes([one for one in verdicts if isinstance(one, Votes)])
        return pa.Table.from_pylist(rows, tables.own_columns(AGREEMENT))

    def _of_votes(self, votes: Sequence[Votes]) -> Iterator[dict[str, Any]]:
        by_step = grouped((one.step, one) for one in sorted(votes, key=lambda one: (one.step, one.query_id)))
        names = [name for service, name in self.judges.items() if service is not None]
        for step, step_votes in by_step.items():
            rows = [row for one in step_votes for row in one.rows]
            in_use = {word for row in rows for word in row if word is not None}
            scale = Scale.of(step, self.levels.get(step), in_use)
            columns = [_column(scale, column) for column in zip(*rows, strict=True)]
            queries = _numbers([one.query_id for one in step_votes for _ in one.rows])
            for (one, first), (other, second) in combinations(enumerate(names), 2):
                pair = np.column_stack([columns[one], columns[other]])
                unmatched = int((pair < 0).any(axis=1).sum())
                yield self._row(scale, first, second, pair, queries) | {"unmatched": unmatched, "undecided": 0}
            if len(names) > 2:
                yield _together(scale, JUDGES, columns)

    def _step_rows(
        self, name: str, places: Sequence[Place], verdicts: Mapping[tuple[str | None, Place], str]
    ) -> Iterator[dict[str, Any]]:
        decisions = [self.labels.decisions[place] for place in places]
        in_use = {word for labels in decisions for word in labels.values()}
        step = Scale.of(name, self.levels.get(name), in_use)
        people = sorted({annotator for labels in decisions for annotator in labels} - {ADJUDICATED})
        columns = {annotator: _column(step, [labels.get(annotator) for labels in decisions]) for annotator in people}
        queries = _numbers([place[1] for place in places])
        for one, other in combinations(people, 2):
            pair = np.column_stack([columns[one], columns[other]])
            yield self._row(step, one, other, pair, queries) | {"unmatched": 0, "undecided": 0}
        if len(people) > 1:
            yield _together(step, PEOPLE, list(columns.values()))
        consensus = [agreed_decision(labels) for labels in decisions]
        for service, judge in self.judges.items():
            judged = [verdicts.get((service, place)) for place in places]
            pair = np.column_stack([_column(step, consensus), _column(step, judged)])
            row = self._row(step, PEOPLE, judge, pair, queries)
            yield row | {"unmatched": judged.count(None), "undecided": consensus.count(None)}

    def _row(self, step: Scale, first: str, second: str, pair: IntArray, queries: IntArray) -> dict[str, Any]:
        size = len(step.words)
        both = (pair >= 0).all(axis=1)
        pair, queries = pair[both], queries[both]
        counts = raters.confusion(pair[:, 0], pair[:, 1], size)
        drawn = raters.resampled_confusions(pair[:, 0], pair[:, 1], queries, size, seed=self.seed)
        return {
            "step": step.name,
            "first": first,
            "second": second,
            "items": len(pair),
            "queries": len(np.unique(queries)),
            "weights": _weights(step),
            "confusion": _cells(step.words, counts),
            **_estimates(_formulas(np.array(step.scores), is_ordered=step.is_ordered), counts, drawn, self.confidence),
        }


def _together(step: Scale, who: str, columns: Sequence[IntArray]) -> dict[str, Any]:
    every, size = np.column_stack(columns), len(step.words)
    return {
        "step": step.name,
        "first": who,
        "second": who,
        "items": int(((every >= 0).sum(axis=1) > 1).sum()),
        "weights": _weights(step),
        "alpha": raters.krippendorff(every, size, is_ordered=step.is_ordered),
        "ac": raters.gwet(every, size, is_ordered=step.is_ordered),
        "confusion": [],
    }


def _weights(step: Scale) -> str:
    return "quadratic" if step.is_ordered else "none"


def _column(step: Scale, words: Sequence[str | None]) -> IntArray:
    """Places on the scale; a label of an earlier scale has none, and no verdict is about it."""
    place: dict[str | None, int] = {word: number for number, word in enumerate(step.words)}
    return np.array([place.get(word, MISSING) for word in words], np.int64)


def _numbers(names: Sequence[str]) -> IntArray:
    numbers: IntArray = np.unique(np.array(names, object), return_inverse=True)[1].astype(np.int64)
    return numbers


def _cells(words: Sequence[str], counts: IntArray) -> list[dict[str, Any]]:
    return [
        {"first": words[one], "second": words[other], "items": int(count)}
        for (one, other), count in np.ndenumerate(counts)
        if count
    ]


def _formulas(scores: FloatArray, *, is_ordered: bool) -> dict[str, Formula]:
    """Agreement coefficients of a confusion matrix; the bias is the second rater's mean score minus the first's."""

    def bias(matrix: raters.Counts) -> float | None:
        total = float(matrix.sum())
        return float((matrix * (scores[None, :] - scores[:, None])).sum()) / total if total else None

    return {
        "agreement": raters.observed_agreement,
        "kappa": partial(raters.cohen, is_ordered=is_ordered),
        "ac": partial(raters.gwet_of, is_ordered=is_ordered),
        "bias": bias,
    }


def _estimates(
    formulas: Mapping[str, Formula], matrix: raters.Counts, drawn: Sequence[raters.Counts], confidence: float
) -> dict[str, float | None]:
    """The value of each formula, and the percentiles of its values over the bootstrap's matrices."""
    tails = (50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence))
    row: dict[str, float | None] = {}
    for name, formula in formulas.items():
        known = [value for replicate in drawn if (value := formula(replicate)) is not None]
        low, high = np.percentile(known, tails).tolist() if known else (None, None)
        row |= {name: formula(matrix), f"{name}_low": low, f"{name}_high": high}
    return row


def audit_table(
    parts: Sequence[pa.RecordBatch], judge: str, confidence: float = 0.95, most: int = holes.MOST_AUDITED
) -> pa.Table:
    """The audit of a judge that fills holes: one row of `answer_tables.AGREEMENT`, from batches of `holes.AUDITED`.

    `unmatched` are documents that the judge alone graded.
    At most `most` documents are compared, about equally many of each grade of the judge, in the order of a hash. Shares
    and coefficients weigh them, so that they are estimates of those of all documents that both graded.
    """
    table = pa.Table.from_batches(parts, holes.AUDITED).combine_chunks()
    graded = table.filter(table["human"].is_valid())
    drawn, weight = stratified_sample(graded["judge"].to_numpy(), _order(graded), most)
    both, weight = graded.filter(pa.array(drawn)), weight[drawn]
    first = np.round(both["human"].to_numpy()).astype(np.int64)
    second = both["judge"].to_numpy()
    queries = _numbers(both["query_id"].to_pylist())
    size = max(1, int(first.max(initial=0)), int(second.max(initial=0))) + 1
    counts = raters.confusion(first, second, size)
    weighted = np.zeros((size, size))
    np.add.at(weighted, (first, second), weight)
    replicates = raters.resampled_confusions(first, second, queries, size, weight=weight)
    row: dict[str, Any] = {
        "step": AUDIT,
        "first": PEOPLE,
        "second": judge,
        "items": len(first),
        "queries": len(np.unique(queries)),
        "unmatched": table.num_rows - graded.num_rows,
        "weights": "quadratic",
        "sampled_from": graded.num_rows,
        "confusion": _cells(list(map(str, range(size))), counts),
    }
    if len(first):
        formulas = {**_formulas(np.arange(size, dtype=float), is_ordered=True), "overrating": _overrating}
        row |= _estimates(formulas, weighted, replicates, confidence)
    if row.get("overrating") is not None:
        row |= _overrating_interval(row, weight[first == 0], confidence)
    return pa.Table.from_pylist([row], tables.own_columns(AGREEMENT))


def _overrating_interval(row: Mapping[str, Any], weight: FloatArray, confidence: float) -> dict[str, float]:
    """The interval of the overrating: Wilson's, for the effective number of documents, or the wider bootstrap.

    Where all decisions are equal, the bootstrap has no width. Documents of equal weights are Wilson's alone.
    """
    effective = float(weight.sum() ** 2 / (weight**2).sum())
    low, high = wilson_interval(row["overrating"] * effective, effective, confidence)
    if np.ptp(weight) and row["overrating_low"] is not None:
        low, high = min(low, row["overrating_low"]), max(high, row["overrating_high"])
    return {"overrating_low": low, "overrating_high": high}


def stratified_sample(stratum: IntArray, order: IntArray, most: int) -> tuple[BoolArray, FloatArray]:
    """Draw about equally many items of each stratum, with weights so that they represent all items.

    Args:
        stratum: int64[n].
        order: int64[n], random ranks; the lowest of each stratum are drawn.
        most: number of items to draw in all. What a small stratum lacks, larger ones have more.

    Returns:
        bool[n], the drawn items; float64[n], their weights: items of the stratum by drawn ones, 0 for the others.

    >>> drawn, weight = stratified_sample(np.array([0, 0, 0, 1]), np.array([2, 0, 1, 3]), 3)
    >>> drawn.tolist(), weight.tolist()
    ([False, True, True, True], [0.0, 1.5, 1.5, 1.0])
    """
    drawn, weight = np.zeros(len(stratum), bool), np.zeros(len(stratum))
    values, sizes = np.unique(stratum, return_counts=True)
    left = most
    for done, place in enumerate(np.argsort(sizes, kind="stable")):
        count = min(int(sizes[place]), left // (len(values) - done))
        left -= count
        members = np.flatnonzero(stratum == values[place])
        chosen = members[np.argsort(order[members], kind="stable")[:count]]
        drawn[chosen] = True
        weight[chosen] = sizes[place] / max(1, count)
    return drawn, weight


def _order(graded: pa.Table) -> IntArray:
    """Random ranks of pairs of query and document, which depend on these alone."""
    pairs = zip(graded["query_id"].to_pylist(), graded["doc_id"].to_pylist(), strict=True)
    digests = np.array([text_hash("\0".join(pair)) for pair in pairs], str)
    return np.argsort(np.argsort(digests, kind="stable"), kind="stable").astype(np.int64)


def _overrating(matrix: raters.Counts) -> float | None:
    """The share of the documents without relevance, by people, to which the judge gives more."""
    total = float(matrix[0].sum())
    return float(matrix[0, 1:].sum()) / total if total else None
