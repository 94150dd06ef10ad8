"""Grades that a run's judge gave to retrieved documents, and the grades of people for the same documents."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.results.audit import Pair
from rankbeam.pipelines.results.corpus import corpus_texts
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats import rows, sources
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.labels import text_hash

_STEP = "grade"
_VERDICTS = (
    "step", "query_id", "right_hash", "grade", "sample", "is_sentinel", "is_repeat", "judge", "model_version",
    "prompt_hash",
)  # fmt: skip


@dataclass(frozen=True)
class JudgeGrades:
    """Grades of a judge.

    Attributes:
        by_text: by query and hash of a text, the grade.
        places: by query and hash of a text, the documents of that text that some configuration retrieved.
        judge: its name, the version of its model and the hash of its prompt.
    """

    by_text: Mapping[Pair, int]
    places: Mapping[Pair, set[str]]
    judge: Mapping[str, str | None]

    @property
    def by_pair(self) -> dict[Pair, int]:
        """By query and document, the highest grade of the document's texts."""
        best: dict[Pair, int] = {}
        for (query_id, digest), grade in self.by_text.items():
            for doc_id in self.places.get((query_id, digest), ()):
                best[query_id, doc_id] = max(best.get((query_id, doc_id), 0), grade)
        return best

    @property
    def without_text(self) -> int:
        """The number of graded texts that belong to no document that is still known."""
        return sum(place not in self.places for place in self.by_text)


def human_grades(run: Results) -> tuple[str, dict[Pair, float]]:
    """The path of the dataset's judgements, and their grades.

    Raises:
        InputError: the run has no such file, it cannot be read any more, or it contains grades of a judge.
    """
    path = run.run["versions"].get("dataset.qrels")
    if path is None:
        raise InputError("has no file of judgements with holes to fill; name one in dataset.qrels", path=run.output)
    grades: dict[Pair, float] = {}
    for part in sources.expand(path):
        rows.refuse_judge_lines(part)
        for batch in rows.read_qrels(part):
            columns = (batch[name].to_pylist() for name in ("query_id", "doc_id", "grade"))
            for query_id, doc_id, grade in zip(*columns, strict=True):
                grades[query_id, doc_id] = grade
    return path, grades


def judge_grades(run: Results) -> JudgeGrades:
    """The grades of the run's judge, if there are any; of several samples the median, and of two medians the lower."""
    drawn: defaultdict[Pair, list[int]] = defaultdict(list)
    judge: dict[str, str | None] = {}
    judges: dict[str, None] = {}
    for row in _rows(run, "verdicts", _VERDICTS):
        is_value = row["step"] == _STEP and not row["is_sentinel"] and not row["is_repeat"]
        if is_value and row["grade"] is not None:
            drawn[row["query_id"], row["right_hash"]].append(row["grade"])
            judge = {name: row[name] for name in ("judge", "model_version", "prompt_hash")}
            judges[row["judge"]] = None
    if len(judges) > 1:
        judge = {**judge, "judge": f"median of {', '.join(sorted(judges))}", "model_version": None}
    by_text = {place: sorted(grades)[(len(grades) - 1) // 2] for place, grades in drawn.items()}
    return JudgeGrades(by_text, _documents(run, by_text) if by_text else {}, judge)


def _documents(run: Results, by_text: Mapping[Pair, int]) -> dict[Pair, set[str]]:
    digests = {digest for _, digest in by_text}
    of_document: defaultdict[str, set[str]] = defaultdict(set)
    for doc_id, text in corpus_texts(run):
        if (digest := text_hash(text)) in digests:
            of_document[doc_id].add(digest)
    places: defaultdict[Pair, set[str]] = defaultdict(set)
    for row in _rows(run, "rankings", ("query_id", "documents")):
        for document in row["documents"]:
            text = document.get("text")
            own = of_document.get(document["doc_id"], set()) if text is None else {text_hash(text)}
            for digest in own:
                if (row["query_id"], digest) in by_text:
                    places[row["query_id"], digest].add(document["doc_id"])
    return dict(places)


def _rows(run: Results, name: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for batch in run.batches(name, columns):
        yield from batch.to_pylist()


def scale_of(grades: Mapping[Pair, float], written: str | None) -> tuple[int, ...]:
    """For each grade of the judge, from 0 to 3, the grade on the scale of people.

    Args:
        grades: grades of people by query and document.
        written: four numbers, separated by commas; by default they follow from the highest grade of people.

    >>> scale_of({("q", "d"): 1.0}, None), scale_of({}, "0,1,1,2")
    ((0, 0, 1, 1), (0, 1, 1, 2))
    """
    if written is not None:
        words = [word.strip() for word in written.split(",")]
        numbers = tuple(int(word) for word in words if word.isdecimal())
        if len(numbers) != HIGHEST_GRADE + 1 or len(words) != len(numbers) or list(numbers) != sorted(numbers):
            raise InputError(f"--grades {written!r}: write four whole numbers in ascending order, such as 0,0,1,2")
        return numbers
    if any(not grade.is_integer() for grade in grades.values()):
        raise InputError(
            "people gave grades that are not whole numbers; set the grades for the judge's 0 to 3 with --grades"
        )
    return Holes().scale(max(grades.values(), default=0.0), "--grades")
