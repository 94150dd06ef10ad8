"""Rows of the table `agreement`: people with each other, and the judge with people, step by step."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from rankbeam.transforms.records.judging.evaluated import LabelledVerdict
from rankbeam.transforms.records.judging.steps import JudgeStep
from rankbeam.transforms.records.labels import ADJUDICATED, Labels, Place, agreed

PEOPLE = "people"
_QUADRATIC = 2


@dataclass(frozen=True)
class AgreementRows:
    """Makes rows, without the common columns."""

    labels: Labels
    judge: str
    confidence: float = 0.95
    seed: int = 0

    def table(self, verdicts: Sequence[LabelledVerdict]) -> pa.Table:
        """Rows of `answer_tables.AGREEMENT`."""
        of_judge = {verdict.place: verdict.verdict for verdict in verdicts}
        by_step: defaultdict[str, list[Place]] = defaultdict(list)
        for place in self.labels.decisions:
            by_step[place[0]].append(place)
        ordered = {step: sorted(by_step[step], key=str) for step in sorted(by_step)}
        rows = [row for step, places in ordered.items() for row in self._of_step(step, places, of_judge)]
        return pa.Table.from_pylist(rows, tables.own_columns(AGREEMENT))

    def _of_step(self, name: str, places: Sequence[Place], verdicts: Mapping[Place, str]) -> Iterator[dict[str, Any]]:
        step = step_named(name)
        decisions = [self.labels.decisions[place] for place in places]
        people = sorted({annotator for of_item in decisions for annotator in of_item} - {ADJUDICATED})
        columns = {annotator: _column(step, [of_item.get(annotator) for of_item in decisions]) for annotator in people}
        queries = _numbers([place[1] for place in places])
        for one, other in combinations(people, 2):
            pair = np.column_stack([columns[one], columns[other]])
            yield self._row(step, one, other, pair, queries) | {"unmatched": 0, "undecided": 0}
        if len(people) > 1:
            every = np.column_stack(list(columns.values()))
            level = Level.ORDINAL if step.is_ordered else Level.NOMINAL
            size = len(step.decisions)
            yield {
                "step": name,
                "first": PEOPLE,
                "second": PEOPLE,
                "items": int(((every >= 0).sum(axis=1) > 1).sum()),
                "weights": _weights(step),
                "alpha": raters.krippendorff(every, size, level),
                "ac": raters.gwet(every, size, _power(step)),
                "confusion": [],
            }
        consensus = [agreed(of_item) for of_item in decisions]
        judged = [verdicts.get(place) for place in places]
        pair = np.column_stack([_column(step, consensus), _column(step, judged)])
        row = self._row(step, PEOPLE, self.judge, pair, queries)
        yield row | {"unmatched": judged.count(None), "undecided": consensus.count(None)}

    def _row(self, step: JudgeStep, first: str, second: str, pair: IntArray, queries: IntArray) -> dict[str, Any]:
        size, power = len(step.decisions), _power(step)
        both = (pair >= 0).all(axis=1)
        pair, queries = pair[both], queries[both]
        counts = raters.confusion(pair[:, 0], pair[:, 1], size)
        scores = np.array([float(step.verdicts(step.decided([word]))[0].score) for word in step.decisions])
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


def _power(step: JudgeStep) -> int:
    return _QUADRATIC if step.is_ordered else 0


def _weights(step: JudgeStep) -> str:
    return "quadratic" if step.is_ordered else "none"


def _column(step: JudgeStep, words: Sequence[str | None]) -> IntArray:
    place = {word: number for number, word in enumerate(step.decisions)}
    return np.array([MISSING if word is None else place[word] for word in words], np.int64)


def _numbers(names: Sequence[str]) -> IntArray:
    numbers: IntArray = np.unique(np.array(names, object), return_inverse=True)[1].astype(np.int64)
    return numbers


def _cells(step: JudgeStep, counts: IntArray) -> list[dict[str, Any]]:
    words = step.decisions
    return [
        {"first": words[one], "second": words[other], "items": int(count)}
        for (one, other), count in np.ndenumerate(counts)
        if count
    ]


def agreement_table(verdicts: Sequence[LabelledVerdict], rows: AgreementRows) -> pa.Table:
    """Rows of `answer_tables.AGREEMENT`, from all verdicts on what people labelled."""
    return rows.table(verdicts)
