"""Read people's decisions from our own files, and from annotations in Phoenix and Langfuse."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.labels.items import LabelTask, judgements
from rankbeam.pipelines.labels.tasks import FOLDER as TASKS_FOLDER
from rankbeam.pipelines.labels.tasks import QRELS, indexes, read_index
from rankbeam.pipelines.run.folders import sole_writer
from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.labels import FOLDER, has_labels, read_labels, save_labels
from rankbeam.transforms.clients.formats.syntax.spreadsheets import read_text, table_rows
from rankbeam.transforms.clients.formats.syntax.tables import plain
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean, pluralize, shortened
from rankbeam.transforms.records.labels import ADJUDICATED, LABELS, Label, text_hash

_IDS = ("id", "rankbeam_id", "metadata.rankbeam_id", "attributes.metadata.rankbeam_id", "input.metadata.rankbeam_id")
_DECISIONS = ("decision", "label", "annotation.label", "result.label", "stringValue", "value")
_ANNOTATORS = ("annotator", "annotator_name", "identifier", "user.username", "authorUserId", "annotator_kind", "source")
_KINDS, _MACHINES = ("annotator_kind", "source"), ("LLM", "CODE", "EVAL")  # in Phoenix and Langfuse
_COMMENTS = ("comment", "explanation", "annotation.explanation", "result.explanation")
_TEXTS = ("text", "input.text", "output", "output.value", "attributes.output.value")
_SOMEBODY = "unnamed"


@dataclass(frozen=True)
class AppliedLabels:
    """Summary of a file of decisions."""

    path: str
    items: int  # items with a decision
    queries: int  # queries of these items
    whole: int  # queries with decisions on all items, in this file or earlier ones
    drawn: int  # number of queries that were drawn
    undecided: int  # items without a decision
    unknown: int  # another tool's annotations that belong to no item
    by_machines: int  # another tool's annotations by a model or code
    divided: int  # whole queries without any annotator who decided all items
    judgements: str | None = None  # file of judgements from document labels; None if no query is completely labelled

    def as_text(self) -> str:
        decisions, queries = pluralize(self.items, "decision"), pluralize(self.queries, "query", "queries")
        lines = [f"{self.path}: {decisions} about {queries}"]
        lines.append(f"{self.whole:,} of {self.drawn:,} drawn queries are completely labelled")
        if self.divided:
            means = "no annotator who decided all items, so means by labels leave them out"
            lines.append(f"{self.divided:,} of these have {means}")
        if self.undecided:
            lines.append(f"{pluralize(self.undecided, 'item has', 'items have')} no decision")
        if self.unknown:
            lines.append(f"{pluralize(self.unknown, 'annotation')} of no item of the tasks left out")
        if self.by_machines:
            lines.append(f"{pluralize(self.by_machines, 'annotation')} by models or code left out")
        if self.judgements:
            lines.append(
                f"judgements of all queries whose documents are labelled: dataset: {{qrels: {self.judgements}}}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Row:
    """One row of a file, with its line, or of a table, without."""

    values: Mapping[str, Any]
    line: int | None

    @property
    def is_ours(self) -> bool:
        return "decision" in self.values

    def first(self, names: Sequence[str]) -> str:
        """The first value that is not empty; names with dots lead into mappings."""
        for name in names:
            value: Any = self.values.get(name)
            if value is None and "." in name:
                value = self.values
                for part in name.split("."):
                    value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None and str(value).strip():
                return str(value).strip()
        return ""


def apply(output: str, path: str, annotator: str = "", place: str | None = None) -> AppliedLabels:
    """Save the decisions in a file or a BigQuery table as labels of an output folder, or in `place`.

    `annotator` is the name for rows without one. Every mistake is reported with its line, and then nothing is saved.
    """
    tasks = _tasks_of(output)
    by_text = _by_text(tasks)
    rows = list(_rows_of(path))
    human_rows = [row for row in rows if row.is_ours or row.first(_KINDS).upper() not in _MACHINES]
    problems: list[InputError] = []
    labels: list[Label] = []
    decided: dict[tuple[str, str], tuple[str, int | None]] = {}
    undecided = unknown = 0
    for row in human_rows:
        try:
            item_id = row.first(_IDS)
            if not row.is_ours and item_id not in tasks:
                item_id = by_text.get(text_hash(row.first(_TEXTS)), "")
            if item_id not in tasks:
                if not row.is_ours:
                    unknown += 1
                    continue
                raise InputError(f"there is no item {shortened(item_id)!r} in the tasks of {output}")
            if not (written := row.first(_DECISIONS)):
                undecided += 1
                continue
            who = row.first(_ANNOTATORS) or annotator or _SOMEBODY
            who = ADJUDICATED if who.lower() == ADJUDICATED else who
            decision = _decision(written, tasks[item_id][0].choices)
            known, line = decided.setdefault((item_id, who), (decision, row.line))
            if known != decision:
                where = "another row" if line is None else f"line {line}"
                problem = f"{who!r} decided {decision!r} on item {item_id}, and {known!r} in {where}; keep one"
                raise InputError(problem)
        except InputError as error:
            problems.append(InputError(error.problem, path=path, line=row.line))
            continue
        labels += [_label(task, decision, who, row.first(_COMMENTS)) for task in tasks[item_id]]
    if problems:
        raise InputErrors(problems)
    if not labels:
        raise InputError("has no decision about an item of the tasks; it needs `id` and `decision`", path=path)
    place = place or files.join(output, FOLDER)
    by_machines = len(rows) - len(human_rows)
    with sole_writer(output, "labels", "labels of this folder", "folder"):  # two would lose each other's judgements
        return _save_and_count(output, path, place, list(dict.fromkeys(labels)), undecided, unknown, by_machines)


def _save_and_count(
    output: str, path: str, place: str, labels: list[Label], undecided: int, unknown: int, by_machines: int
) -> AppliedLabels:
    earlier = read_labels(place).rows if has_labels(place) else ()
    known = {(row.item_id, row.annotator): row.decision for row in earlier}
    for row in labels:
        if known.get((row.item_id, row.annotator), row.decision) != row.decision:
            problem = f"{row.annotator!r} decided {row.decision!r} on item {row.item_id}, and before "
            problem += f"{known[row.item_id, row.annotator]!r}; delete the earlier labels in {place} to replace them"
            raise InputError(problem, path=path)
    drawings = [read_index(index) for index in indexes(output)]
    all_tasks = [task for tasks, _ in drawings for task in tasks]
    content = judgements(all_tasks, (*earlier, *labels))
    stored = set(earlier) if is_table(place) else ()
    new = [row for row in labels if row not in stored]
    saved = save_labels(place, new) if new else place
    qrels = files.join(output, TASKS_FOLDER, QRELS) if content else None
    if qrels is not None:
        files.write(qrels, content.encode())
    by_annotator: defaultdict[str, set[str]] = defaultdict(set)
    for row in (*earlier, *labels):
        by_annotator[row.annotator].add(row.item_id)
    items = set().union(*by_annotator.values())
    adjudicated = by_annotator[ADJUDICATED]
    decided = {row.item_id for row in labels}
    ids = grouped(((drawing.metric, task.query_id), task.item_id) for tasks, drawing in drawings for task in tasks)
    all_ids = {key: {*item_ids} for key, item_ids in ids.items()}
    metrics = {metric for (metric, _), item_ids in all_ids.items() if item_ids & decided}
    drawn = [item_ids for (metric, _), item_ids in all_ids.items() if metric in metrics]
    whole = [item_ids for item_ids in drawn if item_ids <= items]
    ranked = {task.item_id for task in all_tasks if task.doc_id is not None}  # these may have several annotators
    judged = [item_ids for item_ids in whole if not item_ids & ranked]
    divided = sum(all(item_ids - own - adjudicated for own in by_annotator.values()) for item_ids in judged)
    queries = len({row.query_id for row in labels})
    return AppliedLabels(
        saved, len(decided), queries, len(whole), len(drawn), undecided, unknown, by_machines, divided, qrels
    )


def _tasks_of(output: str) -> dict[str, list[LabelTask]]:
    result = grouped((task.item_id, task) for index in indexes(output) for task in read_index(index)[0])
    if not result:
        raise InputError("holds no tasks to label; write them with rankbeam label OUT --sample N", path=output)
    return {item_id: list(dict.fromkeys(tasks)) for item_id, tasks in result.items()}


def _by_text(tasks: Mapping[str, Sequence[LabelTask]]) -> dict[str, str]:
    """Items by the hash of their text, for texts of only one item."""
    result = grouped((text_hash(task.right_text), item_id) for item_id, (task, *_) in tasks.items())
    return {name: items[0] for name, items in result.items() if len(items) == 1}


def _decision(written: str, choices: Sequence[str]) -> str:
    """The choice with this spelling, in upper or lower case, with spaces or underscores."""
    matches = [choice for choice in choices if _plain(choice) == _plain(written)]
    if written not in choices and len(matches) != 1:
        hint = did_you_mean(written, choices)
        raise InputError(f"unknown decision {shortened(written)!r}; {hint}; empty means undecided")
    return written if written in choices else matches[0]


def _plain(word: str) -> str:
    return word.lower().replace(" ", "_").removesuffix(".0")


def _label(task: LabelTask, decision: str, annotator: str, comment: str) -> Label:
    values: dict[str, Any] = {"decision": decision, "annotator": annotator, "comment": comment or None}
    return Label(**{name: getattr(task, name) for name in LABELS.names if name not in values}, **values)


def _rows_of(path: str) -> Iterator[_Row]:
    """The rows of a file, each with its line, or of a table."""
    if is_table(path):
        yield from _table_rows(path)
        return
    text = read_text(path)
    if path.lower().endswith(".csv"):
        yield from (_Row(row, line) for line, row in table_rows(path, text))
    elif text.lstrip().startswith("["):
        yield from _list_rows(text, path)
    else:
        for line, content in enumerate(text.split("\n"), 1):
            if content.strip():
                yield _Row(_mapping(content, path, line), line)


def _table_rows(path: str) -> Iterator[_Row]:
    for batch in read.batches(TableSource.parse(path), ()):
        for row in plain(batch):
            yield _Row(row, None)


def _list_rows(text: str, path: str) -> Iterator[_Row]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", path=path) from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError(f"item {number} is not a mapping", path=path)
        yield _Row(row, number)


def _mapping(content: str, path: str, line: int) -> Mapping[str, Any]:
    try:
        row = json.loads(content)
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", path=path, line=line) from error
    if not isinstance(row, dict):
        raise InputError("is not a mapping; every line is one decision", path=path, line=line)
    return row
