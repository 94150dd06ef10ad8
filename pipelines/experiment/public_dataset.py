"""`dataset: {beir: fiqa}` and `dataset: {ir_datasets: beir/fiqa/test}`: the files of a public collection."""

from dataclasses import replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.transforms.clients.public import beir, irds
from rankbeam.transforms.clients.public.kept import Collection
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, Route
from rankbeam.transforms.records.errors import InputError, InputErrors

_DEFAULT_SPLIT = "test"


def with_public_files(located: Located, problems: list[InputError]) -> Located:
    """The experiment, in which the files of a public collection stand in the place of its name."""
    dataset = located.value.get("dataset") if isinstance(located.value, dict) else None
    key = next((each for each in ("beir", "ir_datasets") if isinstance((dataset or {}).get(each), str)), None)
    if not isinstance(dataset, dict) or key is None:
        return located
    try:
        collection = _fetched(key, dataset, located.value)
    except InputError as error:  # nothing else of the experiment can be checked without its dataset
        raise InputErrors([*problems, located.error(("dataset", key), error.problem)]) from error
    named = {"queries": collection.queries, "qrels": collection.qrels, "corpus": collection.corpus}
    files = {name: path for name, path in named.items() if path is not None and name not in dataset}
    own = (key, "split") if key == "beir" else (key,)
    rest = {name: value for name, value in dataset.items() if name not in own}
    return replace(located, value={**located.value, "dataset": {**files, **rest}})


def _fetched(key: str, dataset: dict[str, Any], experiment: dict[str, Any]) -> Collection:
    if key == "beir":
        return beir.fetch(dataset[key], str(dataset.get("split", _DEFAULT_SPLIT)))
    return irds.fetch(dataset[key], with_corpus="corpus" not in dataset and _reads_documents(experiment))


def _reads_documents(experiment: dict[str, Any]) -> bool:
    """Whether anything in the experiment may read documents; they can be millions, and a run needs none."""
    given = experiment.get("configurations")
    for each in given if isinstance(given, list) else []:
        if not isinstance(each, dict) or "generate" in each or "judge" in experiment or "corpora" in experiment:
            return True
        retriever = each.get("retriever")
        kind = retriever.get("type") if isinstance(retriever, dict) else None
        if not isinstance(kind, str) or kind not in RETRIEVERS.types or RETRIEVERS.load(kind).route is Route.OPENED:
            return True
    return False
