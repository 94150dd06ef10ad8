"""Rows of the table `agreement`: people with each other, judges with people and with each other, step by step."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.statistics import raters
from rankbeam.transforms.kernels.statistics.raters import MISSING, Level
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.answer_tables import AGREEMENT
from rankbeam.transforms.records.judging.evaluated import LabelledVerdict, Votes
from rankbeam.transforms.records.labels import ADJUDICATED, Labels, Place, agreed

PEOPLE, JUDGES = "people", "judges"
_QUADRATIC = 2


@dataclass(frozen=True)
class Scale:
    """The verdicts of a step, the lowest first.

    Attributes:
        name: name of the step in tables.
        words: the verdicts.
        scores: their values.
        is_ordered: distances count.
    """

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
        return cls(name, ranked, tuple(levels[word] for word in ranked), is_ordered=len(ranked) > _QUADRATIC)


@dataclass(frozen=True)
class AgreementRows:
    """Makes rows, without the common columns.

    Attributes:
        labels: decisions of people.
        judges: names by service, and that of the majority by None.
        levels: by step of a criterion, the value of each verdict.
        confidence: level of the intervals.
        seed: random seed of the bootstrap.
    """

    labels: Labels
    judges: Mapping[str | None, str]
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    confidence: float = 0.95
    seed: int = 0

    def table(self, verdicts: Sequence[LabelledVerdict | Votes]) -> pa.Table:
        """Rows of `answer_tables.AGREEMENT`."""
        of_judge = {(one.judge, one.place): one.verdict for one in verdicts if isinstance(one, LabelledVerdict)}
        by_step: defaultdict[str, list[Place]] = defaultdict(list)
        for place in self.labels.decisions:
            by_step[place[0]].append(place)
        ordered = {step: sorted(by_step[step], key=str) for step in sorted(by_step)}
        rows = [row for step, places in ordered.items() for row in self._of_step(step, places, of_judge)]
        rows += self._of_votes([one for one in verdicts if isinstance(one, Votes)])
        return pa.Table.from_pylist(rows, tables.own_columns(AGREEMENT))

    def _of_votes(self, votes: Sequence[Votes]) -> Iterator[dict[str, Any]]:
        """The agreement between judges, two by two and all together."""
        by_step: defaultdict[str, list[Votes]] = defaultdict(list)
        for of_query in sorted(votes, key=lambda one: (one.step, one.query_id)):
            by_step[of_query.step].append(of_query)
        names = [name for service, name in self.judges.items() if service is not None]
        for step, of_step in by_step.items():
            rows = [row for one in of_step for row in one.rows]
            in_use = {word for row in rows for word in row if word is not None}
            scale = Scale.of(step, self.levels.get(step), in_use)
            columns = [_column(scale, column) for column in zip(*rows, strict=True)]
            queries = _numbers([one.query_id for one in of_step for _ in one.rows])
            for (one, first), (other, second) in combinations(enumerate(names), 2):
                pair = np.column_stack([columns[one], columns[other]])
                unmatched = int((pair < 0).any(axis=1).sum())
                yield self._row(scale, first, second, pair, queries) | {"unmatched": unmatched, "undecided": 0}
            if len(names) > 2:
                yield _together(scale, JUDGES, columns)

    def _of_step(
        self, name: str, places: Sequence[Place], verdicts: Mapping[tuple[str | None, Place], str]
    ) -> Iterator[dict[str, Any]]:
        decisions = [self.labels.decisions[place] for place in places]
        in_use = {word for of_item in decisions for word in of_item.values()}
        step = Scale.of(name, self.levels.get(name), in_use)
        people = sorted({annotator for of_item in decisions for annotator in of_item} - {ADJUDICATED})
        columns = {annotator: _column(step, [of_item.get(annotator) for of_item in decisions]) for annotator in people}
        queries = _numbers([place[1] for place in places])
        for one, other in combinations(people, 2):
            pair = np.column_stack([columns[one], columns[other]])
            yield self._row(step, one, other, pair, queries) | {"unmatched": 0, "undecided": 0}
        if len(people) > 1:
            yield _together(step, PEOPLE, list(columns.values()))
        consensus = [agreed(of_item) for of_item in decisions]
        for service, judge in self.judges.items():
            judged = [verdicts.get((service, place)) for place in places]
            pair = np.column_stack([_column(step, consensus), _column(step, judged)])
            row = self._row(step, PEOPLE, judge, pair, queries)
            yield row | {"unmatched": judged.count(None), "undecided": consensus.count(None)}

    def _row(self, step: Scale, first: str, second: str, pair: IntArray, queries: IntArray) -> dict[str, Any]:
        size, power = len(step.words), _power(step)
        both = (pair >= 0).all(axis=1)
        pair, queries = pair[both], queries[both]
        counts = raters.confusion(pair[:, 0], pair[:, 1], size)
        scores = np.array(step.scores)
        drawn = raters.resampled_confusions(pair[:, 0], pair[:, 1], queries, size, seed=self.seed)

        def bias(matrix: IntArray) -> float | None:
            total = int(matrix.sum())
            return float((matrix * (scores[None, :] - scores[:, None])).sum()) / total if total else None

        formulas = {
            "agreement": raters.observed_agreement,
            "kappa": lambda matrix: raters.cohen(matrix, power),
            "ac": lambda matrix: raters.gwet_of(matrix, power),
            "bias": bias,
        }
        row: dict[str, Any] = {
            "step": step.name,
            "first": first,
            "second": second,
            "items": len(pair),
            "queries": len(np.unique(queries)),
            "weights": _weights(step),
            "confusion": _cells(step, counts),
        }
        tails = (50.0 * (1.0 - self.confidence), 50.0 * (1.0 + self.confidence))
        for column, formula in formulas.items():
            values = [value for matrix in drawn if (value := formula(matrix)) is not None]
            low, high = np.percentile(values, tails).tolist() if values else (None, None)
            row |= {column: formula(counts), f"{column}_low": low, f"{column}_high": high}
        return row


def _together(step: Scale, who: str, columns: Sequence[IntArray]) -> dict[str, Any]:
    """The agreement of all people, or of all judges."""
    every, size = np.column_stack(columns), len(step.words)
    return {
        "step": step.name,
        "first": who,
        "second": who,
        "items": int(((every >= 0).sum(axis=1) > 1).sum()),
        "weights": _weights(step),
        "alpha": raters.krippendorff(every, size, Level.ORDINAL if step.is_ordered else Level.NOMINAL),
        "ac": raters.gwet(every, size, _power(step)),
        "confusion": [],
    }


def _power(step: Scale) -> int:
    return _QUADRATIC if step.is_ordered else 0


def _weights(step: Scale) -> str:
    return "quadratic" if step.is_ordered else "none"


def _column(step: Scale, words: Sequence[str | None]) -> IntArray:
    """Places on the scale; a label of an earlier scale has none, and no verdict is about it."""
    place: dict[str | None, int] = {word: number for number, word in enumerate(step.words)}
    return np.array([place.get(word, MISSING) for word in words], np.int64)


def _numbers(names: Sequence[str]) -> IntArray:
    numbers: IntArray = np.unique(np.array(names, object), return_inverse=True)[1].astype(np.int64)
    return numbers


def _cells(step: Scale, counts: IntArray) -> list[dict[str, Any]]:
    words = step.words
    return [
        {"first": words[one], "second": words[other], "items": int(count)}
        for (one, other), count in np.ndenumerate(counts)
        if count
    ]


def agreement_table(verdicts: Sequence[LabelledVerdict | Votes], rows: AgreementRows) -> pa.Table:
    """Rows of `answer_tables.AGREEMENT`, from all verdicts on what people labelled, and all votes of judges."""
    return rows.table(verdicts)
