"""Files of a dataset that is named as a whole.

They are public collections (`beir:`, `ir_datasets:`), benchmarks (`goldens:`) and files of other tools (`file:`).
"""

import glob
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import YamlDocument, list_in, mapping_in
from rankbeam.pipelines.experiment.file.models import SPAN
from rankbeam.pipelines.experiment.file.traces import with_traces
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats.cases.roles import REFERENCE, survey_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.cases.tools import checked_columns
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.public import (
    PublicCollection,
    beir_folder,
    fetch_beir,
    fetch_irds,
    refuse_unknown_split,
)
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, Route
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError, did_you_mean

_DEFAULT_SPLIT = "test"
_COLLECTIONS = ("goldens", "beir", "ir_datasets")


def with_dataset(located: YamlDocument, output: str | None) -> YamlDocument:
    """Replace whatever the dataset names as a whole by its files; the output must not be among its documents."""
    located = with_traces(located)
    located = _with_cases(located)
    named = [key for key in _COLLECTIONS if key in mapping_in(located.value, "dataset")]
    if len(named) > 1:
        raise located.refusal(("dataset", named[1]), f"is a second dataset beside {named[0]}; keep one")
    located = _with_public_files(_with_goldens(located))
    return _with_documents(located, output)


def _with_public_files(located: YamlDocument) -> YamlDocument:
    """Replace the name of a public collection in the experiment by the collection's files."""
    dataset = mapping_in(located.value, "dataset")
    key = next((entry for entry in ("beir", "ir_datasets") if isinstance(dataset.get(entry), str)), None)
    if key is None:
        return located
    try:
        collection = _fetch_collection(located, key, dataset)
    except InputError as error:  # nothing else of the experiment can be checked without its dataset
        raise located.refusal(("dataset", key), error.problem) from error
    named = {"queries": collection.queries, "qrels": collection.qrels, "corpus": collection.corpus}
    files = {name: path for name, path in named.items() if path is not None and name not in dataset}
    return _replace_keys(located, (key, "split") if key == "beir" else (key,), files)


def _replace_keys(located: YamlDocument, keys: Sequence[str], section: Mapping[str, Any]) -> YamlDocument:
    """The experiment with a section of its dataset instead of some keys."""
    rest = {name: value for name, value in mapping_in(located.value, "dataset").items() if name not in keys}
    return replace(located, value={**located.value, "dataset": {**section, **rest}})


def _fetch_collection(located: YamlDocument, key: str, dataset: dict[str, Any]) -> PublicCollection:
    if key == "beir":
        name, split = dataset[key], str(dataset.get("split", _DEFAULT_SPLIT))
        if not name.startswith((".", "/")) and "://" not in name:
            return fetch_beir(name, split)
        qrels = files.join(glob.escape(located.below(name)), "qrels", "*.tsv")
        refuse_unknown_split(name, matching.matches(qrels), split)
        return beir_folder(name, split)
    return fetch_irds(dataset[key], with_corpus="corpus" not in dataset and _reads_documents(located.value))


def _reads_documents(experiment: dict[str, Any]) -> bool:
    """Return whether anything in the experiment may read documents; they can be millions, and a run needs none."""
    for entry in list_in(experiment, "configurations"):
        if not isinstance(entry, dict) or "generate" in entry or "judge" in experiment or "corpora" in experiment:
            return True
        kind = mapping_in(entry, "retriever").get("type")
        if not isinstance(kind, str) or kind not in RETRIEVERS.types or RETRIEVERS.load(kind).route is Route.OPENED:
            return True
    return False


def _with_cases(located: YamlDocument) -> YamlDocument:
    """Replace a file of questions and answers by its content: queries, judgements, references and answers."""
    dataset = mapping_in(located.value, "dataset")
    if not isinstance(dataset.get("file"), str):
        return located
    named, columns, groups = dataset["file"], dataset.get("columns") or {}, dataset.get("groups")
    if groups not in (None, "flatten"):
        located.report(("dataset", "groups"), "must be 'flatten', or left out")
    place = "columns"
    try:
        source = CaseSource(located.below(named), checked_columns(columns), groups == "flatten")
        place = "file"
        survey = survey_of(source)
    except (InputError, ValueError) as error:  # nothing else can be checked without the dataset
        raise located.refusal(("dataset", place), str(error)) from error
    located.notes.extend(f"{named}: {note}" for note in survey.notes())
    section: dict[str, Any] = {"queries": source.text}
    section |= {"qrels": source.text} if survey.judged and "qrels" not in dataset and "evidence" not in dataset else {}
    section |= {"answers": REFERENCE} if survey.references and "answers" not in dataset else {}
    section |= {"conversations": True} if survey.in_conversations and survey.layout.tool.name == "ADK" else {}
    for name in ("queries", "goldens", "beir", "ir_datasets"):
        if name in dataset:
            located.report(("dataset", name), "is given twice: the file has its own; keep one")
    items = located.value.get("configurations")
    answered = [_with_replay_path(entry, named, columns) for entry in items] if isinstance(items, list) else items
    located = _replace_keys(located, ("file", "columns", "groups"), section)
    return replace(located, value={**located.value, "configurations": answered})


def _with_replay_path(item: Any, named: str, columns: Mapping[str, str]) -> Any:
    """A configuration, which replays the answers in the dataset's file if it names no path."""
    answers = mapping_in(item, "answers")
    if answers.get("type") != "replay" or "path" in answers:
        return item
    return {**item, "answers": {"path": named, **({"columns": dict(columns)} if columns else {}), **answers}}


def _with_documents(located: YamlDocument, output: str | None) -> YamlDocument:
    """Replace a folder of documents, `corpus: docs` or `{folder, glob}`, by the corpus that its files make."""
    corpus = mapping_in(located.value, "dataset").get("corpus")
    is_folder = isinstance(corpus, dict) and "folder" in corpus
    if not (is_folder or _is_plain_folder(located, corpus)):
        return located
    from rankbeam.transforms.clients.formats.documents.files import (
        EVERYTHING,
        FolderSource,
        extract,  # few datasets are folders
        refuse_output,
    )

    named: dict[str, Any] = corpus if isinstance(corpus, dict) else {"folder": corpus}
    wrong = next((str(key) for key in named if key not in ("folder", "glob")), None)
    problem = "" if wrong is None else f"a folder has no {wrong!r}; {did_you_mean(wrong, ['folder', 'glob'])}"
    place, glob = named["folder"], named.get("glob", EVERYTHING)
    if problem or not all(isinstance(value, str) and value for value in (place, glob)):
        problem = problem or "is a mapping with folder and, optionally, glob, which are texts"
        raise located.refusal(("dataset", "corpus"), problem)
    source, path = FolderSource(located.below(place), glob), mapping_in(located.value, "output").get("path")
    try:
        if output is not None or isinstance(path, str):
            refuse_output(source, located.below(str(path)) if output is None else output)
        extracted = extract(source)
    except InputError as error:  # nothing else of the experiment can be checked without its documents
        raise located.refusal(("dataset", "corpus"), str(error)) from error
    located.notes.extend([] if extracted.note is None else [f"{place}: {extracted.note}"])
    return _replace_keys(located, ("corpus",), {"corpus": extracted.corpus})


def _is_plain_folder(located: YamlDocument, place: Any) -> bool:
    """Return whether a path is a folder of documents; a folder with Parquet files is a corpus instead."""
    if not isinstance(place, str) or not place or is_table(place):
        return False
    from rankbeam.transforms.clients.formats.documents.files import holds_documents

    where = located.below(place)
    return holds_documents(where) and not matching.has_tables(where)


def _with_goldens(located: YamlDocument) -> YamlDocument:
    dataset = mapping_in(located.value, "dataset")
    if not isinstance(dataset.get("goldens"), str):
        return located
    place, split = dataset["goldens"], dataset.get("split", _DEFAULT_SPLIT)
    problem = _problem(located.below(place), split)
    if problem is not None:  # nothing else of the experiment can be checked without its dataset
        raise located.refusal(("dataset", problem[0]), problem[1])
    section = _files(place, str(split), dataset.get("unit"))
    for name in sorted(section.keys() & dataset.keys()):
        located.report(("dataset", name), "is given twice: the benchmark has its own; keep one")
    return _replace_keys(located, ("goldens", "split"), section)


def _files(place: str, split: str, unit: Any) -> dict[str, Any]:
    split_folder = files.join(place, "splits", split)
    judgements = {"qrels": files.join(place, "qrels", f"{split}.tsv")}
    return {
        **({"evidence": files.join(split_folder, "evidence.jsonl")} if unit == SPAN else judgements),
        "queries": files.join(split_folder, "queries.jsonl"),
        "corpus": files.join(place, "corpus.jsonl"),
        "answers": {"path": files.join(split_folder, "nuggets.jsonl")},
    }


def _problem(folder: str, split: object) -> tuple[str, str] | None:
    """The wrong key and its problem; None if there is no problem."""
    path = files.join(folder, "manifest.json")
    if not files.exists(path):
        return "goldens", f"{folder} contains no finished benchmark; `rankbeam goldens FILE.yaml` makes one"
    splits = json_lines.parse_object(path, 1, files.read_all(path).decode("utf-8", "replace")).get("splits")
    if splits is None:
        return "goldens", f"{folder} is published in part; run `rankbeam goldens FILE.yaml` or `apply` again"
    if not isinstance(split, str) or split not in splits:
        key = "goldens" if split == _DEFAULT_SPLIT else "split"
        return key, f"the benchmark has no split {split!r}; {did_you_mean(str(split), splits)}"
    return None
