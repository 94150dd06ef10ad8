"""Refuse local files, which workers on other machines cannot read, and show the commands that upload them."""

import glob
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.formats.cases.source import file_of
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_ANY_BUCKET = "gs://BUCKET"


def refuse_local(experiment: Experiment, options: PipelineOptions) -> None:
    """Refuse an experiment with local paths; the message lists them and the commands that upload them."""
    read = {place: path for place, path in _inputs(experiment).items() if files.is_local(path)}
    written = {"output": experiment.output}
    if experiment.makes_calls:
        written["ledger"] = experiment.ledger
    written = {place: path for place, path in written.items() if files.is_local(path)}
    if not read and not written:
        return
    bucket = _bucket(options)
    lines = ["the workers of this job cannot reach files on this machine:"]
    lines += [f"  {place}: {path}" for place, path in (read | written).items()]
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in experiment.name)
    folder = f"{bucket}/{name}"
    if read:
        places = _places(list(read.values()), folder)
        lines += ["upload the inputs:", *(f"  {command}" for command in _commands(places))]
        lines += ["and name their new places in the experiment:"]
        lines += [f"  {place}: {places[path]}" for place, path in read.items()]
    if "output" in written:
        lines += [f"write results to a bucket: --output {folder}/out"]
    if "ledger" in written and experiment.calls.ledger_path is not None:
        lines += [f"keep answers in a bucket: output.ledger: {folder}/ledger"]
    raise InputError("\n".join(lines))


def _inputs(experiment: Experiment) -> dict[str, str]:
    """Every input file, by its key in the experiment."""
    dataset = {
        f"dataset.{role}": getattr(experiment.dataset, role) for role in ("qrels", "evidence", "queries", "corpus")
    }
    if experiment.dataset.references is not None:
        dataset["dataset.answers.path"] = experiment.dataset.references.path
    inputs = {place: file_of(path) for place, path in dataset.items() if path is not None}
    for source, retriever in enumerate(planned.retriever.parameters for planned in experiment.sources):
        name = experiment.evaluation.configurations[experiment.evaluation.owner(source)].name
        inputs |= {f"{name}, retriever.{key}": path for key, path in retriever.inputs().items() if path is not None}
    for name, service in experiment.calls.services.items():
        inputs |= {f"services.{name}.{key}": path for key, path in service.parameters.inputs().items()}
    return inputs


def _places(paths: list[str], folder: str) -> dict[str, str]:
    """Map each path to its target: a folder plus the path relative to the common parent of all.

    >>> _places(["/a/qrels/test.tsv", "/a/runs/*.run"], "gs://b/e")
    {'/a/qrels/test.tsv': 'gs://b/e/qrels/test.tsv', '/a/runs/*.run': 'gs://b/e/runs/*.run'}
    """
    absolute = {path: Path(path).expanduser().absolute() for path in paths}
    root = os.path.commonpath([_literal_prefix(full).parent for full in absolute.values()])
    return {path: f"{folder}/{full.relative_to(root).as_posix()}" for path, full in absolute.items()}


def _commands(places: Mapping[str, str]) -> Iterator[str]:
    """Upload commands: one for the files of each target folder, and one for each whole folder."""
    together: dict[str, list[str]] = {}
    for path, place in places.items():
        fixed = _literal_prefix(Path(path))
        if fixed.is_dir():
            inside = Path(path).relative_to(fixed).as_posix()
            target = place if inside == "." else place.removesuffix(f"/{inside}")
            yield shlex.join(["gcloud", "storage", "rsync", "--recursive", str(fixed), target])
        else:
            together.setdefault(f"{place.rpartition('/')[0]}/", []).append(path)
    for target, paths in sorted(together.items()):
        yield shlex.join(["gcloud", "storage", "cp", *sorted(paths), target])


def _literal_prefix(path: Path) -> Path:
    """The beginning of a path, before the first folder whose name is a pattern."""
    patterns = [] if path.exists() else [parent for parent in path.parents if glob.has_magic(parent.name)]
    return patterns[-1].parent if patterns else path


def _bucket(options: PipelineOptions) -> str:
    """The bucket of the job's own files.

    >>> _bucket(PipelineOptions(["--temp_location=gs://b/tmp"])), _bucket(PipelineOptions([]))
    ('gs://b', 'gs://BUCKET')
    """
    place = options.view_as(GoogleCloudOptions).temp_location or ""
    return "/".join(place.split("/")[:3]) if place.startswith("gs://") else _ANY_BUCKET
