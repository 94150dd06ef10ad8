"""A first experiment: for existing judgements and runs, from a template, or one of the examples.

New files are written either all or not at all, and never overwrite existing ones.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

import yaml

from rankbeam.pipelines.run.score import DEFAULT_METRICS, are_spans, names_of
from rankbeam.pipelines.start import cases
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.metrics.values import DEFAULT_METRICS as SPAN_DEFAULTS

_HELPDESK = "helpdesk"
_ENDINGS = (".md", ".csv", ".jsonl", ".json", ".yaml", ".tsv", ".run", ".py", ".ipynb")
"""File name endings of the examples, as in pyproject.toml. A checkout's folder may also contain results."""
_RESULTS = ("out", "__pycache__")
SCHEMA = "rankbeam.schema.json"  # the file with the JSON Schema, in the experiment's folder

_SCHEMA_LINE = f"# yaml-language-server: $schema={SCHEMA}"
_NEEDED = {
    "bm25": ("queries", "qrels", "corpus"),
    "rag_engine": ("queries", "qrels"),
    "http": ("queries", "qrels"),
    "application": ("queries",),
    "judge": ("queries", "corpus"),
    "gemini": ("queries", "corpus"),
    "openai": ("queries", "corpus"),
}
_WITH_ANSWERS = ("application", "judge", "gemini", "openai")
_USUAL = {
    "queries": ("queries.jsonl",),
    "qrels": ("qrels/test.tsv", "qrels.tsv"),
    "corpus": ("corpus.jsonl",),
}
"""BEIR's file names, in the experiment's folder; the example uses the first of each."""

_MEANING = {
    "queries": "JSON lines with _id and text, TREC topics or Parquet",
    "qrels": "judgements: TREC, BEIR or Parquet",
    "corpus": "documents: JSON lines with _id, title and text",
    "evidence": "judgements: passages of documents, as JSON lines",
}
_PLAIN = re.compile(r"[\w./-]+")


@dataclass(frozen=True)
class Example:
    """An example: its folders, and the commands that run it in their parent folder."""

    folders: tuple[str, ...]
    commands: tuple[str, ...]


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        _HELPDESK: Example((_HELPDESK,), ("rankbeam evaluate {}/answers.yaml",)),
        "chunking": Example((_HELPDESK,), ("rankbeam evaluate {}/helpdesk/chunking.yaml",)),
        "answers": Example(("answers",), ("rankbeam evaluate {}/answers/experiment.yaml",)),
        "runs": Example(("trec_runs", _HELPDESK), ("rankbeam evaluate {}/trec_runs/experiment.yaml",)),
        "goldens": Example(("goldens", _HELPDESK), ("rankbeam goldens {}/goldens/helpdesk.yaml",)),
        "notebook": Example(("notebook", "trec_runs", _HELPDESK), ("jupyter lab {}/notebook/first_results.ipynb",)),
        "app": Example(("app", _HELPDESK), ("python {}/app/app.py &", "rankbeam evaluate {}/app/experiment.yaml")),
    }
)
"""The examples, by the names on the command line."""


def part(name: str) -> bytes:
    """The content of one of the helpdesk collection's files."""
    return _folder(_HELPDESK).joinpath(name).read_bytes()


def example(name: str = _HELPDESK) -> dict[str, bytes]:
    """The content of every file, by path; paths of the helpdesk collection alone start in its folder."""
    folders = (
        {"": _folder(_HELPDESK)}
        if name == _HELPDESK
        else {f"{folder}/": _folder(folder) for folder in EXAMPLES[name].folders}
    )
    return {
        f"{prefix}{path}": content for prefix, folder in folders.items() for path, content in sorted(_files(folder))
    }


def _files(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _RESULTS:
            yield from ((f"{path.name}/{inside}", content) for inside, content in _files(path))
        elif path.name.endswith(_ENDINGS):
            yield path.name, path.read_bytes()


def _folder(name: str) -> Traversable:
    return resources("rankbeam") / "examples" / name


@contextmanager
def write_files(contents: Mapping[Path, bytes]) -> Iterator[None]:
    """Write files, and delete them again if the block fails or is interrupted: the next call overwrites none."""
    problem = "exists already, and is never overwritten; choose another path"
    if wrong := [InputError(problem, path=str(path)) for path in contents if path.exists()]:
        raise InputErrors(wrong)
    paths: list[Path] = []
    try:
        for path, content in contents.items():
            with files.translate_errors(str(path), "cannot be written"):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    paths.append(path)
                    file.write(content)
        yield
    except (Exception, KeyboardInterrupt):
        for path in paths:
            path.unlink()
        raise


@dataclass(frozen=True)
class FirstExperiment:
    """A first experiment."""

    text: str
    sample: Mapping[Path, bytes]


def from_runs(path: Path, arguments: Sequence[str], queries: str | None) -> FirstExperiment:
    if len(arguments) < 2:
        raise InputError("--from needs judgements and at least one run: --from QRELS RUN [RUN …]")
    _refuse_missing(arguments if queries is None else (*arguments, queries))
    qrels, *runs = arguments
    spans = are_spans(qrels)
    dataset = {"queries": queries, "evidence" if spans else "qrels": qrels}
    lines = [
        _SCHEMA_LINE,
        "# Which of these runs ranks best? The same without a file: rankbeam score QRELS RUN [RUN …].",
        f"name: {_word(path.stem)}",
        *_dataset(path, {role: file for role, file in dataset.items() if file is not None}),
        *(["  unit: span"] if spans else []),
        "configurations:                   # the first is what the others are compared with",
    ]
    for name, run in zip(names_of(runs), runs, strict=True):
        lines += [f"  - name: {_word(name)}", f"    retriever: {{type: run_file, path: {_word(_below(path, run))}}}"]
    metrics = SPAN_DEFAULTS if spans else DEFAULT_METRICS
    lines += [
        f"metrics: [{', '.join(map(str, metrics))}]",
        "# slices: [difficulty]           # attributes of the queries, to average by",
        "output:",
        "  path: out                       # tables, results.duckdb and report.html",
    ]
    return FirstExperiment("\n".join(lines) + "\n", {})


def from_cases(path: Path, file: str, columns: Mapping[str, str]) -> FirstExperiment:
    _refuse_missing([file])
    if not is_table(file) and _is_qrels(file):
        raise InputError("--from needs judgements and at least one run: --from QRELS RUN [RUN …]")
    return FirstExperiment(f"{_SCHEMA_LINE}\n{cases.text_of(path, file, _below(path, file), columns)}", {})


def _is_qrels(file: str) -> bool:
    """Return whether a file looks like judgements, and not like answers in JSON."""
    try:
        return recognise(file, "qrels") not in (Format.NESTED, Format.PARQUET, Format.ARROW)
    except InputError:
        return are_spans(file)


def from_template(path: Path, template: str, values: Mapping[str, str]) -> FirstExperiment:
    """The experiment of a template.

    Files that are not named are files with BEIR's names in the experiment's folder. If there are none, the example's
    files are written instead, so that the experiment can be checked and run at once.
    """
    _refuse_missing([file for role, file in values.items() if role in _USUAL])
    usual = {role: file for role in _USUAL if (file := _usual_file(path.parent, role)) is not None}
    known = {role: file for role in _USUAL if (file := values.get(role, usual.get(role))) is not None}
    missing = [role for role in _NEEDED[template] if role not in known]
    if known and missing:
        options = " and ".join(f"--{role} FILE" for role in missing)
        raise InputError(f"the template {template} also needs {options}; there is {' and '.join(known.values())}")
    sample = {path.parent / _USUAL[role][0]: part(_USUAL[role][0]) for role in missing}
    dataset = known or {role: str(path.parent / _USUAL[role][0]) for role in missing}
    text = (resources("rankbeam") / "pipelines" / "start" / "templates" / f"{template}.yaml").read_text("utf-8")
    lines = _dataset(path, dataset)
    if template in _WITH_ANSWERS:
        answers = f"  answers: {_word(values.get('answers', 'answer'))}"
        lines.append(f"{answers:<33} # the attribute of the queries that holds reference answers")
    return FirstExperiment(f"{_SCHEMA_LINE}\n" + text.replace("dataset: files", "\n".join(lines)), sample)


def _dataset(path: Path, inputs: Mapping[str, str]) -> list[str]:
    lines = [f"  {role}: {_word(_below(path, file))}" for role, file in inputs.items()]
    meanings = [_MEANING[role] for role in inputs]
    return ["dataset:", *(f"{line:<33} # {meaning}" for line, meaning in zip(lines, meanings, strict=True))]


def _below(path: Path, file: str) -> str:
    """A file as the experiment names it, relative to the experiment's folder."""
    if not files.is_local(file) or Path(file).is_absolute():
        return file
    return Path(os.path.relpath(file, path.parent)).as_posix()


def _word(text: str) -> str:
    """A text as a YAML value, in quotes if it needs them."""
    is_plain = _PLAIN.fullmatch(text) and yaml.safe_load(text) == text
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _usual_file(folder: Path, role: str) -> str | None:
    return next((str(folder / name) for name in _USUAL[role] if (folder / name).is_file()), None)


def _refuse_missing(paths: Sequence[str]) -> None:
    for path in paths:
        if files.is_local(path) and not Path(path).exists() and not set(path) & set("*?["):
            raise InputError("does not exist", path=path)
