"""Draw random queries of a finished run, and list the decisions that people have to make for them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankbeam.pipelines.labels.items import (
    LabelTask,
    compares_answers,
    criterion_tasks,
    ranked_queries,
    ranking_tasks,
    with_criterion_of,
)
from rankbeam.pipelines.results.corpus import stored_texts, texts_of_queries
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric, is_judged, parse_all, parse_defined
from rankbeam.transforms.judge.panel import problem_of_labels
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.judging.criteria import criteria_in, full_metric_name
from rankbeam.transforms.records.labels import item_id_of, text_hash
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.slices import ALL, attributes_of


@dataclass(frozen=True)
class LabelSample:
    """Sample to draw from a run."""

    metric: str
    configurations: tuple[str, ...]  # configurations that need human values; for documents, all by default
    seed: int = 0  # determines the random order of queries
    by: str | None = None  # attribute whose values are separate strata; None for one stratum

    @classmethod
    def of(
        cls, run: Results, metric: str | None, configurations: Sequence[str], seed: int = 0, by: str | None = None
    ) -> "LabelSample":
        """The drawing with defaults: the first metric that people can label, for the baseline and the best."""
        chosen = _metric(run, metric)
        names = [row["name"] for row in run.configurations]
        for name in configurations:
            if name not in names:
                raise InputError(f"no configuration is named {name!r}; {did_you_mean(name, names)}", path=run.output)
        if not configurations:
            configurations = _baseline_and_best(run, chosen) if is_judged(chosen) else names
        known = list(dict.fromkeys(name.partition("=")[0] for name in run.slices if name != ALL))
        if by is not None and (by not in known or attributes_of(by) != [by]):
            problem = f"no slice of the run is {by!r}; {did_you_mean(by, known)}; the experiment names them in slices:"
            raise InputError(problem, path=run.output)
        return cls(chosen, tuple(dict.fromkeys(configurations)), seed, by)


def split_names(text: str, names: Collection[str]) -> list[str]:
    """The names in a list separated by commas; names from a grid may contain commas, too.

    >>> split_names("a, bm25:k1=1,b=2", ["a", "bm25:k1=1,b=2"]), split_names("a,b", ["a"])
    (['a', 'bm25:k1=1,b=2'], ['a', 'b'])
    """
    result, parts = list[str](), text.split(",")
    while parts:
        joined = [",".join(parts[:count]).strip() for count in range(1, len(parts) + 1)]
        count = max((place for place, name in enumerate(joined, 1) if name in names), default=1)
        result += filter(None, [joined[count - 1]])
        parts = parts[count:]
    return result


@dataclass
class _Texts:
    """Hashes of one query's texts under the chosen configurations."""

    answers: set[str] = field(default_factory=set)
    contexts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by answer
    all_contexts: set[str] = field(default_factory=set)
    references: set[str] = field(default_factory=set)

    def is_wanted(self, step: str, owner: str | None, text: str, inputs: Collection[str]) -> bool:
        """Return whether a chosen configuration's value of the metric depends on a verdict."""
        if step == "grade":
            return not self.contexts or text in self.all_contexts
        if step != "support":
            return text in self.answers
        requested = {
            "ac": owner in self.answers and text in self.contexts[owner or ""],
            "ag": owner in self.answers and text in self.references,
            "gc": owner in self.references and (text in self.all_contexts or not self.contexts),
            "ga": owner in self.references and text in self.answers,
        }
        return any(requested.get(name, False) for name in inputs)


def draw(run: Results, drawing: LabelSample, count: int, drawn: Collection[str] = ()) -> list[LabelTask]:
    """The tasks for the next queries in random order; a query's tasks stay together, in an order without meaning.

    Queries with nothing to decide, for example without contexts, are left out: their values are known.
    """
    ids = _ids(run, drawing)
    (metric,) = parse_all([drawing.metric])
    is_by_judge = isinstance(metric, JudgedMetric)
    frame = _frame(run, drawing.metric, ids) if is_by_judge else ranked_queries(run, ids)
    if not frame and not is_by_judge:
        problem = "has no rankings to draw from; evaluate with output: {rankings: true}, which run files need"
        raise InputError(problem, path=run.output)
    ordered = sorted(frame, key=lambda query_id: text_hash(f"{drawing.seed} {query_id}"))
    query_ids, tasks, seen = list[str](), list[LabelTask](), set(drawn)
    while (
        len(query_ids) < count and (following := _next_queries(run, drawing, ordered, count - len(query_ids), seen))[0]
    ):
        queries, probabilities = following
        if isinstance(metric, JudgedMetric):
            new = _judged_tasks(run, metric, ids, queries)
        else:
            new = ranking_tasks(run, metric.cutoff or 0, ids, queries)
        tasks += [
            replace(task, probability=probabilities[task.query_id], drawn_by=drawing.by, drawn_for=drawing.metric)
            for task in new
        ]
        with_tasks = {task.query_id for task in new}
        query_ids += [query_id for query_id in queries if query_id in with_tasks]
        seen.update(queries)
    if not query_ids:
        what = f"a value of {drawing.metric}" if is_by_judge else "a ranking"
        problem = f"no query is left to draw of the {len(frame):,} that have {what}"
        raise InputError(problem, path=run.output)
    return _in_order(tasks, query_ids)


def pick(run: Results, drawing: LabelSample, queries: Sequence[str]) -> list[LabelTask]:
    """The tasks for chosen queries, in their order, without a probability, since these represent no other queries."""
    (metric,) = parse_all([drawing.metric])
    if not isinstance(metric, JudgedMetric):
        problem = (
            f"--queries is for judged metrics: judgements for {metric} are used in means, which need a random sample"
        )
        raise InputError(f"{problem}; use --sample N")
    ids = _ids(run, drawing)
    frame = _frame(run, drawing.metric, ids)
    if missing := [query_id for query_id in queries if query_id not in frame]:
        hint = did_you_mean(missing[0], sorted(frame))
        raise InputError(f"query {missing[0]!r} has no value of {drawing.metric}; {hint}", path=run.output)
    return _in_order(_judged_tasks(run, metric, ids, queries), queries)


def _ids(run: Results, drawing: LabelSample) -> set[str]:
    return {row["config_id"] for row in run.configurations if row["name"] in drawing.configurations}


def _judged_tasks(run: Results, metric: JudgedMetric, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    if metric.is_criterion:
        return criterion_tasks(run, with_criterion_of(run, metric), ids, chosen)
    return _tasks(run, metric, ids, chosen)


def _in_order(tasks: Iterable[LabelTask], chosen: Sequence[str]) -> list[LabelTask]:
    order = {query_id: place for place, query_id in enumerate(chosen)}
    return sorted(
        tasks, key=lambda task: (order[task.query_id], task.item_id, task.owner_hash or "", task.position or 0)
    )


def _next_queries(
    run: Results, drawing: LabelSample, ordered: Sequence[str], count: int, drawn: Collection[str]
) -> tuple[list[str], dict[str, float]]:
    """The next queries, and each one's probability; every stratum gets its share of queries, and at least 5."""
    strata = _strata(run, drawing.by, ordered)
    total = count + sum(query_id in drawn for query_id in ordered)
    chosen: set[str] = set()
    probabilities: dict[str, float] = {}
    for members in strata:
        share = total if len(strata) == 1 else max(_LEAST_OF_STRATUM, round(total * len(members) / len(ordered)))
        before = sum(query_id in drawn for query_id in members)
        new = [query_id for query_id in members if query_id not in drawn][: max(0, share - before)]
        chosen.update(new)
        probabilities |= dict.fromkeys(new, (before + len(new)) / len(members))
    return [query_id for query_id in ordered if query_id in chosen], probabilities


_LEAST_OF_STRATUM = 5


def _strata(run: Results, by: str | None, ordered: Sequence[str]) -> list[list[str]]:
    """The queries of each stratum, in their order; without an attribute, there is one stratum."""
    if by is None:
        return [list(ordered)] if ordered else []
    slices = {row["query_id"]: row["slices"] for row in run.stream("query_metrics", ("query_id", "slices"), ordered)}
    values = {name: {entry["name"]: entry["value"] for entry in entries} for name, entries in slices.items()}
    return list(grouped((values[query_id].get(by, ""), query_id) for query_id in ordered).values())


def _metric(run: Results, name: str | None) -> str:
    requested = None if name is None else parse_all([full_metric_name(name, criteria_in(run.metrics))])[0]
    if isinstance(requested, Metric):
        if requested.cutoff is None:
            raise InputError(
                f"{requested} needs whole rankings, but people grade only the first k documents; write a cutoff @k"
            )
        return str(requested)
    judged = {str(metric): metric for metric in parse_defined(run.metrics) if isinstance(metric, JudgedMetric)}
    labelled = [
        item
        for item, metric in judged.items()
        if not metric.labels and problem_of_labels(metric) is None and not compares_answers(run, metric)
    ]
    if not labelled:
        raise InputError("has no judged metric that people can label", path=run.output)
    if requested is None:
        return labelled[0]
    matches = [item for item, metric in judged.items() if requested.means(metric)]
    if not matches:
        raise InputError(f"has no metric {requested}; {did_you_mean(str(requested), labelled)}", path=run.output)
    chosen = judged[matches[0]]
    if (problem := problem_of_labels(with_criterion_of(run, chosen) if chosen.is_criterion else chosen)) is not None:
        raise InputError(f"{matches[0]} {problem}", path=run.output)
    return matches[0]


def _baseline_and_best(run: Results, metric: str) -> tuple[str, ...]:
    means = {row["name"]: run.means[row["config_id"], ALL, metric].mean for row in run.configurations}
    known = {name: mean for name, mean in means.items() if mean is not None}
    if not known:
        raise InputError(f"{metric} has no mean, so there is nothing to label", path=run.output)
    others = {name: mean for name, mean in known.items() if name != run.baseline}
    best = [max(others, key=lambda name: others[name])] if others else []
    return (*([run.baseline] if run.baseline in known else []), *best)


def _frame(run: Results, metric: str, ids: Collection[str]) -> set[str]:
    """The queries for which a chosen configuration has a value of the metric."""
    return {
        row["query_id"]
        for row in run.stream("query_metrics", ("config_id", "query_id", "metrics"), ids, "config_id")
        if any(cell["metric"] == metric and cell["value"] is not None for cell in row["metrics"])
    }


def _tasks(run: Results, metric: JudgedMetric, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    inputs, steps = metric.definition.inputs, metric.definition.steps
    query_texts = _texts_of(run, ids, chosen, metric.cutoff)
    owners = _owners(run, chosen, query_texts)
    result: dict[tuple[str, str | None, int | None], dict[str, Any]] = {}
    for row in run.stream("verdicts", _VERDICTS, chosen):
        if row["step"] not in steps or row["is_sentinel"] or row["is_repeat"] or row["sample"]:
            continue
        is_claim = row["step"] == "support"
        makers = owners[row["query_id"], row["items_hash"]] if is_claim else [None]
        for owner in makers:
            if query_texts[row["query_id"]].is_wanted(row["step"], owner, row["right_hash"], inputs):
                name = item_id_of(row["step"], row["query_id"], row["left_hash"], row["right_hash"])
                place = row["position"] if is_claim else None
                result[name, owner, place] = {**row, "owner_hash": owner, "position": place}
    hashes = {row[name] for row in result.values() for name in ("left_hash", "right_hash")}
    texts, queries = stored_texts(run, hashes), texts_of_queries(run, chosen)
    return [
        LabelTask(
            name,
            row["step"],
            row["query_id"],
            queries[row["query_id"]] or "",
            row["owner_hash"],
            row["position"],
            row["left_hash"],
            None if row["left_hash"] is None else texts[row["left_hash"]],
            row["right_hash"],
            texts[row["right_hash"]],
            None,
            step_named(row["step"]).people_question,
            step_named(row["step"]).decisions,
            items_hash=row["items_hash"] if row["owner_hash"] is not None else None,
        )
        for (name, _, _), row in result.items()
    ]


_VERDICTS = (
    "step", "query_id", "left_hash", "right_hash", "position", "sample", "is_sentinel", "is_repeat", "items_hash",
)  # fmt: skip


def _texts_of(run: Results, ids: Collection[str], chosen: Sequence[str], cutoff: int | None) -> dict[str, _Texts]:
    result = {query_id: _Texts() for query_id in chosen}
    columns = ("config_id", "query_id", "answer_hash", "reference_hash", "contexts")
    for row in run.stream("answers", columns, chosen):
        if row["config_id"] in ids and row["answer_hash"] is not None:
            texts = result[row["query_id"]]
            texts.answers.add(row["answer_hash"])
            contexts = {context["text_hash"] for context in row["contexts"][:cutoff]}
            texts.contexts[row["answer_hash"]] |= contexts
            texts.all_contexts |= contexts
            texts.references |= {row["reference_hash"]} - {None}
    return result


def _owners(run: Results, chosen: Sequence[str], query_texts: Mapping[str, _Texts]) -> dict[tuple[str, str], list[str]]:
    """The texts with exactly the same claims, by query and hash of the claims; adds references to `query_texts`."""
    result: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in run.stream("claims", ("query_id", "text_hash", "items_hash", "sample", "owner"), chosen):
        if not row["sample"]:
            result[row["query_id"], row["items_hash"]][row["text_hash"]] = None
            if row["owner"] == "reference":
                query_texts[row["query_id"]].references.add(row["text_hash"])
    return defaultdict(list, {key: list(texts) for key, texts in result.items()})
