"""`dataset: {goldens: FOLDER, split: test}`: the files of a benchmark that `rankbeam goldens` made."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.suggestions import did_you_mean

_OWN = ("goldens", "split")
_DEFAULT_SPLIT = "test"


def with_files(located: Located, folder: str, problems: list[InputError]) -> Located:
    """The experiment, in which the files of a benchmark stand in the place of its folder."""
    dataset = located.value.get("dataset") if isinstance(located.value, dict) else None
    if not isinstance(dataset, dict) or not isinstance(dataset.get("goldens"), str):
        return located
    place, split = dataset["goldens"], dataset.get("split", _DEFAULT_SPLIT)
    problem = _problem(files.below(folder, place), split)
    if problem is not None:  # nothing else of the experiment can be checked without its dataset
        raise InputErrors([*problems, located.error(("dataset", problem[0]), problem[1])])
    given = _files(place, str(split), dataset.get("unit"))
    twice = "is given twice: the benchmark has its own; keep one"
    problems += [located.error(("dataset", name), twice) for name in sorted(given.keys() & dataset.keys())]
    rest = {name: value for name, value in dataset.items() if name not in _OWN}
    return replace(located, value={**located.value, "dataset": {**given, **rest}})


def _files(place: str, split: str, unit: Any) -> dict[str, Any]:
    own = files.join(place, "splits", split)
    judgements = {"qrels": files.join(place, "qrels", f"{split}.tsv")}
    return {
        **({"evidence": files.join(own, "evidence.jsonl")} if unit == "span" else judgements),
        "queries": files.join(own, "queries.jsonl"),
        "corpus": files.join(place, "corpus.jsonl"),
        "answers": {"path": files.join(own, "nuggets.jsonl")},
    }


def _problem(folder: str, split: object) -> tuple[str, str] | None:
    """The key that is wrong, and what is wrong with it; None where nothing is."""
    path = files.join(folder, "manifest.json")
    if not files.exists(path):
        return "goldens", f"{folder} holds no finished benchmark; `rankbeam goldens FILE.yaml` makes one"
    manifest: Mapping[str, Any] = json.loads(files.read_all(path))
    if split not in manifest["splits"]:
        key = "goldens" if split == _DEFAULT_SPLIT else "split"
        return key, f"the benchmark has no split {split!r}; {did_you_mean(str(split), manifest['splits'])}"
    return None
