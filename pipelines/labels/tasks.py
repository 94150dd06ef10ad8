"""Task files for people, as CSV, JSON lines and a page that works offline, with an index of the items."""

import glob
import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files as package_files
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment
from markupsafe import Markup

from rankbeam.pipelines.labels.draw import LabelSample
from rankbeam.pipelines.labels.items import LabelTask
from rankbeam.transforms.clients.formats.syntax.spreadsheets import as_csv
from rankbeam.transforms.clients.storage import files, matching, parquet
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.labels import text_hash

FOLDER, QRELS = "label-tasks", "qrels.tsv"
COLUMNS = ("id", "question", "history", "query", "claim", "text", "decisions", "decision", "comment", "annotator")
_SECONDS_A_DECISION, _LETTERS_A_SECOND = 5.0, 20.0  # 200 words of six letters a minute

_TYPES = {"position": pa.int64(), "probability": pa.float64(), "decisions": pa.list_(pa.string())}
TASKS = pa.schema([(name, _TYPES.get(name, pa.string())) for name in LabelTask.__annotations__])


def minutes(tasks: Sequence[LabelTask]) -> float:
    """Estimated time for labelling: 200 words a minute and five seconds per decision; each text is read once.

    >>> minutes([LabelTask("i", "grade", "q", "q" * 600, None, None, None, None, "h", "t" * 600, 1.0)])
    1.0833333333333333
    """
    read = {text for task in tasks for text in (task.history or "", task.query, task.left_text or "", task.right_text)}
    decisions = len({task.item_id for task in tasks})
    return (sum(map(len, read)) / _LETTERS_A_SECOND + decisions * _SECONDS_A_DECISION) / 60.0


def distinct(tasks: Iterable[LabelTask]) -> list[LabelTask]:
    """One task for each item."""
    return list({task.item_id: task for task in tasks}.values())


def write_tasks(output: str, tasks: Sequence[LabelTask], drawing: LabelSample) -> list[str]:
    """Write the files for some tasks; return the paths of those that people use."""
    folder = files.join(output, FOLDER)
    files.make_writable_folder(folder)
    number = len(indexes(output)) + 1
    index = pa.Table.from_pylist([vars(task) for task in tasks], schema=TASKS)
    facts = {"metric": drawing.metric, "configurations": drawing.configurations, "seed": drawing.seed, "by": drawing.by}
    stored = io.BytesIO()
    pq.write_table(index.replace_schema_metadata({_FACTS: json.dumps(facts)}), stored)
    base = files.join(folder, f"tasks-{number:03}")
    shown = [_task_row(task) for task in distinct(tasks)]
    written = {
        f"{base}.csv": as_csv(COLUMNS, (row | {"decisions": " | ".join(row["decisions"])} for row in shown)),
        f"{base}.jsonl": "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in map(_json_row, shown)),
        f"{base}.html": _as_page(shown, f"tasks-{number:03}"),
    }
    for path, text in written.items():
        files.write(path, text.encode("utf-8", "replace"))
    files.write(f"{base}.parquet", stored.getvalue())
    return list(written)


_FACTS = b"rankbeam.labels"


def indexes(output: str) -> list[str]:
    """The indexes of all task files in an output folder, in order."""
    return sorted(matching.matches(files.join(glob.escape(output), FOLDER, "tasks-*.parquet")))


def read_index(path: str) -> tuple[list[LabelTask], LabelSample]:
    with parquet.open_file(path) as file:
        facts = json.loads((file.schema_arrow.metadata or {})[_FACTS])
        rows = file.read().to_pylist()
    drawing = LabelSample(facts["metric"], tuple(facts["configurations"]), facts["seed"], facts.get("by"))
    return [LabelTask(**row | {"decisions": tuple(row.get("decisions") or ())}) for row in rows], drawing


def _task_row(task: LabelTask) -> dict[str, Any]:
    values = (
        task.item_id,
        task.instruction,
        task.history or "",
        task.query,
        task.left_text or "",
        task.right_text,
        list(task.choices),
        "",
        "",
        "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def _json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of JSON lines. Other tools preserve its metadata, which connect their annotations with the item."""
    columns = {name: value for name, value in row.items() if name not in ("decision", "comment", "annotator")}
    return {**columns, "metadata": {"rankbeam_id": row["id"]}}


def _as_page(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    template = package_files("rankbeam.pipelines.labels").joinpath("templates", "label.html").read_text("utf-8")
    data = json.dumps({"name": name, "key": text_hash("".join(row["id"] for row in rows))[:16], "items": rows})
    safe_data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page: str = (
        Environment(autoescape=True)
        .from_string(template)
        .render(
            data=Markup(safe_data)  # noqa: S704  no letter is left that HTML could mistake
        )
    )
    return page


def drawn_before(output: str, drawing: LabelSample, *, is_first: bool) -> set[str]:
    """The queries drawn earlier for the same metric and configurations; for a first sample, there must be none."""
    result: set[str] = set()
    for index in indexes(output):
        tasks, earlier = read_index(index)
        if (earlier.metric, earlier.configurations) == (drawing.metric, drawing.configurations):
            result |= {task.query_id for task in tasks if task.probability is not None}
    if result and is_first:
        problem = (
            f"holds tasks of {len(result):,} queries for {drawing.metric} already; draw further ones with --more N "
            f"--metric {shlex.quote(drawing.metric)}"
        )
        raise InputError(problem, path=output)
    return result


def chosen_queries(path: str) -> list[str]:
    """The distinct queries in a file: JSON lines with `query_id`, as the report exports them, or one id per line."""
    known: dict[str, None] = {}
    for number, line in enumerate(files.read_all(path).decode("utf-8-sig", "replace").split("\n"), start=1):
        if line.lstrip().startswith("{"):
            known[_query_id(line, path, number)] = None
        elif line.strip():
            known[line.strip()] = None
    if not known:
        raise InputError("names no query; mark queries in the report, and export them", path=path)
    return list(known)


def _query_id(line: str, path: str, number: int) -> str:
    try:
        value = json.loads(line).get("query_id")
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=path, line=number) from error
    if not isinstance(value, str) or not value:
        raise InputError('has no query_id; a line is {"query_id": …} or an id', path=path, line=number)
    return value


def last_drawing(output: str, metric: str | None = None) -> LabelSample:
    """The last random drawing, or the last one for a metric."""
    for index in reversed(indexes(output)):
        tasks, drawing = read_index(index)
        if metric in (None, drawing.metric) and any(task.probability is not None for task in tasks):
            return drawing
    purpose = "" if metric is None else f" for {metric}"
    raise InputError(f"holds no random tasks{purpose} yet; draw the first ones with --sample N", path=output)


def task_summary(output: str, tasks: Sequence[LabelTask], drawing: LabelSample, paths: Sequence[str]) -> str:
    """A summary of the files, and of the work in them."""
    queries, items = len({task.query_id for task in tasks}), distinct(tasks)
    work = f"{pluralize(queries, 'query', 'queries')}, {pluralize(len(items), 'decision')} "
    work += f"({len(items) / queries:.1f} a query), "
    work += "about a minute" if (length := round(minutes(tasks))) <= 1 else f"about {length:,} minutes"
    strata = f", drawn by {drawing.by}" if drawing.by else ""
    title = f"{drawing.metric}{strata} of {', '.join(drawing.configurations)}"
    advice = f"Label in the page or in a table, then read it: rankbeam label {shlex.quote(output)} --apply FILE"
    return "\n".join([f"{title}: {work}", *paths, advice])
