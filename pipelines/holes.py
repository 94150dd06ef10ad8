"""Fill a finished run's holes: a file of judgements by people and judge, an audit, and the effects on means."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from rankbeam.pipelines.results.audit import Audit, Pair, audit_of
from rankbeam.pipelines.results.corpus import corpus_texts
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.clients.formats.rows import read_qrels, refuse_judge_lines
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements
from rankbeam.transforms.kernels.ranking.rankings import Assessment, RankedRows, assess
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.raters import decisive_vote
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.holes import HUMAN, LLM, MOST_AUDITED, Holes
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.metrics.dialects import parse_dialect
from rankbeam.transforms.records.metrics.names import Metric, parse_metric, split_name
from rankbeam.transforms.records.scores.scored import Status

_ROWS = 1 << 12
ByQuery = Mapping[str, Mapping[str, float]]
FOLDER = "holes"
_MOST_NAMED = 10
_STEP = "grade"
_VALUELESS = (Status.FAILED.label, Status.MISSING.label)
_VERDICTS = (
    "step", "query_id", "right_hash", "grade", "sample", "is_sentinel", "is_repeat", "judge", "model_version",
    "prompt_hash",
)  # fmt: skip


@dataclass(frozen=True)
class Effect:
    """One configuration's means of a metric over the queries that people judged."""

    metric: str
    configuration: str
    human: float  # by people's judgements
    judged_only: float  # the same without documents that people did not judge
    filled: float  # with the judge's grades in the holes


def effects_of(run: Results, human: Mapping[Pair, float], filled: Mapping[Pair, float]) -> list[Effect]:
    """The means of every ranking metric and every configuration whose rankings the run wrote.

    As in the run's own means, queries without a value do not count, such as those whose call failed. Metrics that a
    dialect replaces by metrics of chunks are left out.
    """
    metrics = [parse_metric(name) for name in run.metrics if not run.is_judged(name)]
    metrics = [
        metric for metric in metrics if metric.name in METRICS and not metric.definition.chunks and not metric.holes
    ]
    names = {row["config_id"]: row["name"] for row in run.configurations}
    dialects = dict(zip(names, map(parse_dialect, run.dialects), strict=True))
    by_people, by_both = _by_query(human), _by_query({**human, **filled})
    statuses = run.stream("query_metrics", ("config_id", "query_id", "status"), pa.array(_VALUELESS), "status")
    valueless = {(row["config_id"], row["query_id"]) for row in statuses}
    moments: defaultdict[str, Moments] = defaultdict(lambda: Moments.zero(3 * len(metrics)))
    for batch in run.batches("rankings", ["config_id", "query_id", "documents"], _ROWS):
        judged = [row for row in batch.to_pylist() if row["query_id"] in by_people]
        scored = [row for row in judged if (row["config_id"], row["query_id"]) not in valueless]
        for config_id, rows in grouped((row["config_id"], row) for row in scored).items():
            rankings = [[document["doc_id"] for document in row["documents"]] for row in rows]
            pools = [[pools[row["query_id"]] for row in rows] for pools in (by_people, by_both)]
            moments[config_id] = moments[config_id].merge(Moments.of(_values(metrics, rankings, *pools)))
    means = {config_id: state.means() for config_id, state in moments.items()}
    return [
        Effect(str(metric), names[config_id], *means[config_id][3 * place : 3 * place + 3])
        for place, metric in enumerate(metrics)
        for config_id in names
        if config_id in means and dialects[config_id].metric(metric) == metric
    ]


def _by_query(grades: Mapping[Pair, float]) -> ByQuery:
    result: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (query_id, doc_id), grade in grades.items():
        result[query_id][doc_id] = grade
    return dict(result)


def _values(
    metrics: Sequence[Metric],
    rankings: Sequence[Sequence[str]],
    human: Sequence[Mapping[str, float]],
    filled: Sequence[Mapping[str, float]],
) -> FloatArray:
    """float64[n, 3 m]: for each metric the values of n queries, for the columns of `Effect`."""
    by_people, by_both = assessment_of(rankings, human), assessment_of(rankings, filled)
    columns = [
        (metric.values(by_people), replace(metric, judged_only=True).values(by_people), metric.values(by_both))
        for metric in metrics
    ]
    return np.array(columns).reshape(3 * len(metrics), len(rankings)).T


def assessment_of(rankings: Sequence[Sequence[str]], pools: Sequence[Mapping[str, float]]) -> Assessment:
    """The rankings of n queries, best first, joined with the grades of each query's documents."""
    query = np.repeat(np.arange(len(rankings)), [len(ranking) for ranking in rankings])
    doc_id = pa.array([doc_id for ranking in rankings for doc_id in ranking], pa.string())
    pool = Pool(
        queries=len(rankings),
        query=np.repeat(np.arange(len(pools)), [len(pool) for pool in pools]),
        doc_id=pa.array([doc_id for pool in pools for doc_id in pool], pa.string()),
        grade=np.array([grade for pool in pools for grade in pool.values()], np.float64),
    )
    ranked = RankedRows.of(np.arange(len(query)), query, doc_id, len(rankings)).deduplicated(len(rankings))
    return assess(ranked, find_judgements(query, doc_id, pool), pool)


def reversed_pairs(effects: Sequence[Effect]) -> Iterator[tuple[str, str, str]]:
    """For each metric, pairs whose first configuration is better by people, but worse with the judge's grades."""
    for metric in dict.fromkeys(effect.metric for effect in effects):
        compared = [effect for effect in effects if effect.metric == metric]
        for one, other in combinations(compared, 2):
            better, worse = (one, other) if one.human > other.human else (other, one)
            if better.human > worse.human and better.filled < worse.filled:
                yield metric, better.configuration, worse.configuration


@dataclass(frozen=True)
class FilledJudgements:
    """Summary of the filled judgements."""

    path: str
    human: int  # number of judgements by people
    filled: int  # number of judgements by the judge
    without_text: int  # number of graded texts whose document is no longer known
    judge: Mapping[str, str | None]  # name, model version and prompt hash
    scale: Sequence[int]  # the written grade for each of the judge's grades
    audit: Audit
    effects: Sequence[Effect]

    @property
    def warnings(self) -> list[str]:
        warnings = list(self.audit.warnings)
        if self.without_text:
            texts = pluralize(self.without_text, "graded text is", "graded texts are")
            warnings.append(f"{texts} of documents that neither the corpus nor the rankings have")
        pairs = list(reversed_pairs(self.effects))
        for metric, better, worse in pairs[:_MOST_NAMED]:
            warnings.append(f"{metric}: {better} is better than {worse} by people, and worse with the judge's grades")
        if len(pairs) > _MOST_NAMED:
            warnings.append(f"further pairs that change their order: {len(pairs) - _MOST_NAMED:,}")
        return warnings

    def as_text(self, screen: Screen = WHOLE) -> str:
        audit = self.audit
        by_people = f"{pluralize(self.human, 'judgement')} by people"
        lines = [f"{self.path}: {by_people}, {self.filled:,} by {self.judge['judge']}", ""]
        heading = ["metric", "configuration", "people", "judged only", "holes filled"]
        means = [
            [row.metric, row.configuration, *(f"{value:.4f}" for value in (row.human, row.judged_only, row.filled))]
            for row in self.effects
        ]
        if means:
            lines += [screen.table(Table(heading, means, left=2)), ""]
        if audit.pairs:
            lines.append(audit.as_text())
            columns = ["people", *(f"judge {grade}" for grade in audit.grades)]
            counts = [
                [str(grade), *map(str, row)] for grade, row in zip(audit.grades, audit.counts, strict=True) if any(row)
            ]
            lines += ["", screen.table(Table(columns, counts))]
        return "\n".join(lines).rstrip()


def fill(run: Results, grades: str | None = None, audit: int = MOST_AUDITED) -> FilledJudgements:
    """Write people's judgements, and the judge's grades of documents that people did not judge.

    `grades` is described at `scale_of`; at most `audit` documents that both graded audit the judge.
    """
    if is_table(run.output):
        raise InputError("holes are filled for runs in folders only", path=run.output)
    path, human = human_grades(run)
    scale = scale_of(human, grades)
    graded = judge_grades(run)
    if not graded.by_text:
        advice = "add ContextRelevance@10 to the metrics, so that the judge grades the first 10 documents"
        raise InputError(f"has no grades of documents by a judge; {advice}", path=run.output)
    if graded.without_text and (unranked := _unranked(run)):
        problem = f"the run wrote no rankings of {', '.join(unranked)}, so the graded documents are not known"
        advice = "set output: {rankings: true} and run the experiment again; the ledger has the grades"
        raise InputError(f"{problem}; {advice}", path=run.output)
    on_scale = {pair: scale[grade] for pair, grade in graded.by_pair.items()}
    by_people = {query_id for query_id, _ in human}  # other queries have no holes, because they are in no mean
    filled = {
        pair: float(grade) for pair, grade in on_scale.items() if human.get(pair, -1.0) < 0 and pair[0] in by_people
    }
    unchanged = {pair: grade for pair, grade in human.items() if pair not in filled}
    folder = files.join(run.output, FOLDER)
    files.make_writable_folder(folder)
    target = files.join(folder, f"{run.run_id}.tsv")
    result = FilledJudgements(
        target,
        len(unchanged),
        len(filled),
        graded.without_text,
        graded.judge,
        scale,
        audit_of(human, on_scale, audit),
        effects_of(run, human, filled),
    )
    files.write(target, _lines(unchanged, filled).encode())
    facts = {**run.identity(), "qrels": path, **asdict(result)}
    facts["audit"] |= {"grades": list(result.audit.grades), "warnings": result.audit.warnings}
    files.write(files.join(folder, f"{run.run_id}.json"), json.dumps(facts, ensure_ascii=False, indent=1).encode())
    return result


def _unranked(run: Results) -> list[str]:
    """Names of the configurations whose rankings the run did not write."""
    ranked = {row["config_id"] for row in run.stream("rankings", ("config_id",))}
    return [row["name"] for row in run.configurations if row["config_id"] not in ranked]


def _lines(human: Mapping[Pair, float], filled: Mapping[Pair, float]) -> str:
    rows = [(*pair, f"{grade:.15g}", HUMAN) for pair, grade in sorted(human.items())]
    rows += [(*pair, f"{grade:.15g}", LLM) for pair, grade in sorted(filled.items())]
    wrong = next((row[0] for row in rows if any(mark in name for name in row[:2] for mark in "\t\r\n")), None)
    if wrong is not None:
        raise InputError(f"query {wrong!r}: an id with a tab or a line end cannot be written to a file of judgements")
    return "".join("\t".join(row) + "\n" for row in (QRELS_HEADER, *rows))


@dataclass(frozen=True)
class JudgeGrades:
    """Grades of a judge."""

    by_text: Mapping[Pair, int]  # by query and text hash
    places: Mapping[Pair, set[str]]  # retrieved documents with a text, by query and text hash
    judge: Mapping[str, str | None]  # name, model version and prompt hash

    @property
    def by_pair(self) -> dict[Pair, int]:
        """The highest grade of a document's texts, by query and document."""
        best: dict[Pair, int] = {}
        for (query_id, digest), grade in self.by_text.items():
            for doc_id in self.places.get((query_id, digest), ()):
                best[query_id, doc_id] = max(best.get((query_id, doc_id), 0), grade)
        return best

    @property
    def without_text(self) -> int:
        """The number of graded texts whose document is no longer known."""
        return sum(place not in self.places for place in self.by_text)


def human_grades(run: Results) -> tuple[str, dict[Pair, float]]:
    """The path of the dataset's judgements, and their grades; a file with a judge's grades is refused."""
    path = run.run["versions"].get("dataset.qrels")
    if path is None:
        raise InputError("has no file of judgements with holes to fill; name one in dataset.qrels", path=run.output)
    grades: dict[Pair, float] = {}
    for part in sources.expand(path):
        refuse_judge_lines(part)
        for batch in read_qrels(part):
            columns = (batch[name].to_pylist() for name in ("query_id", "doc_id", "grade"))
            for query_id, doc_id, grade in zip(*columns, strict=True):
                grades[query_id, doc_id] = max(grade, grades.get((query_id, doc_id), grade))  # of several subtopics
    return path, grades


def judge_grades(run: Results) -> JudgeGrades:
    """The grades of the run's judge, if there are any: the lower median of samples and judges, as `document_grades`."""
    drawn: defaultdict[Pair, list[int]] = defaultdict(list)
    judge: dict[str, str | None] = {}
    judges, samples, judged_by = {row["judge"] for row in run.rows("judge_quality") if row["step"] == _STEP}, {0}, set()
    for row in run.stream("verdicts", _VERDICTS):
        is_value = row["step"] == _STEP and not row["is_sentinel"] and not row["is_repeat"]
        if is_value and row["grade"] is not None:
            drawn[row["query_id"], row["right_hash"]].append(row["grade"])
            judge = {name: row[name] for name in ("judge", "model_version", "prompt_hash")}
            samples.add(row["sample"])
            judged_by.add(row["judge"])
    judges = judges or judged_by  # an earlier version wrote the run
    if len(judges) > 1:
        judge = {**judge, "judge": f"median of {', '.join(sorted(judges))}", "model_version": None}
    votes = {place: decisive_vote(grades, len(judges) * len(samples)) for place, grades in drawn.items()}
    by_text = {place: drawn[place][vote] for place, vote in votes.items() if vote is not None}
    return JudgeGrades(by_text, _documents(run, by_text) if by_text else {}, judge)


def _documents(run: Results, by_text: Mapping[Pair, int]) -> dict[Pair, set[str]]:
    digests = {digest for _, digest in by_text}
    depth = max((split_name(name).cutoff or 0 for name in run.metrics if run.is_judged(name)), default=0) or None
    document_hashes: defaultdict[str, set[str]] = defaultdict(set)
    for doc_id, text in corpus_texts(run):
        if (digest := text_hash(text)) in digests:
            document_hashes[doc_id].add(digest)
    places: defaultdict[Pair, set[str]] = defaultdict(set)
    for row in run.stream("rankings", ("query_id", "documents")):
        for document in row["documents"][:depth]:  # as in the run: others with an equal text stay holes
            text = document.get("text")
            hashes = document_hashes.get(document["doc_id"], set()) if text is None else {text_hash(text)}
            for digest in hashes:
                if (row["query_id"], digest) in by_text:
                    places[row["query_id"], digest].add(document["doc_id"])
    return dict(places)


def scale_of(grades: Mapping[Pair, float], written: str | None) -> tuple[int, ...]:
    """The grade on people's scale for each of the judge's grades 0 to 3: `written`, or else by people's highest grade.

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
