"""Files of this machine, which workers elsewhere could not read: what is refused, and how to bring them there."""

import glob
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_ANY_BUCKET = "gs://BUCKET"


def refuse_local(experiment: Experiment, options: PipelineOptions) -> None:
    """Make sure that workers on other machines can read and write all that an experiment names.

    Raises:
        InputError: it names paths of this machine; the message has all of them, and the command that uploads.
    """
    read = {place: path for place, path in _inputs(experiment).items() if files.is_local(path)}
    written = {"output": experiment.output}
    if experiment.remote:
        written["ledger"] = experiment.ledger
    written = {place: path for place, path in written.items() if files.is_local(path)}
    if not read and not written:
        return
    bucket = _bucket(options)
    lines = ["the workers of this job cannot reach files of this machine:"]
    lines += [f"  {place}: {path}" for place, path in (read | written).items()]
    folder = f"{bucket}/{_name(experiment)}"
    if read:
        places = _places(list(read.values()), folder)
        lines += ["upload what is read:", *(f"  {each}" for each in _commands(places))]
        lines += ["name it in the experiment by its new place:"]
        lines += [f"  {place}: {places[path]}" for place, path in read.items()]
    if "output" in written:
        lines += [f"write elsewhere: --output {folder}/out"]
    if "ledger" in written and experiment.ledger_path is not None:
        lines += [f"keep answers elsewhere: output.ledger: {folder}/ledger"]
    raise InputError("\n".join(lines))


def _inputs(experiment: Experiment) -> dict[str, str]:
    """Every file that is read, by its place in the experiment."""
    dataset = {f"dataset.{role}": getattr(experiment, role) for role in ("qrels", "queries", "corpus")}
    found = {place: path for place, path in dataset.items() if path is not None}
    for source, retriever in enumerate(each.retriever.parameters for each in experiment.sources):
        name = experiment.evaluation.configurations[experiment.evaluation.owner(source)].name
        found |= {f"{name}, retriever.{key}": path for key, path in retriever.inputs().items() if path is not None}
    return found


def _places(paths: list[str], folder: str) -> dict[str, str]:
    """Where each path is to go: below a folder as it now lies below the one that all have in common.

    >>> _places(["/a/qrels/test.tsv", "/a/runs/*.run"], "gs://b/e")
    {'/a/qrels/test.tsv': 'gs://b/e/qrels/test.tsv', '/a/runs/*.run': 'gs://b/e/runs/*.run'}
    """
    absolute = {path: Path(path).expanduser().absolute() for path in paths}
    root = os.path.commonpath([_fixed(each).parent for each in absolute.values()])
    return {path: f"{folder}/{each.relative_to(root).as_posix()}" for path, each in absolute.items()}


def _commands(places: Mapping[str, str]) -> Iterator[str]:
    """The commands that upload: files of one folder together, and a folder with all that it holds."""
    together: dict[str, list[str]] = {}
    for path, place in places.items():
        fixed = _fixed(Path(path))
        if fixed.is_dir():
            inside = Path(path).relative_to(fixed).as_posix()
            target = place if inside == "." else place.removesuffix(f"/{inside}")
            yield shlex.join(["gcloud", "storage", "rsync", "--recursive", str(fixed), target])
        else:
            together.setdefault(f"{place.rpartition('/')[0]}/", []).append(path)
    for target, paths in sorted(together.items()):
        yield shlex.join(["gcloud", "storage", "cp", *sorted(paths), target])


def _fixed(path: Path) -> Path:
    """The beginning of a path, up to a folder whose name is a pattern."""
    patterns = [] if path.exists() else [each for each in path.parents if glob.has_magic(each.name)]
    return patterns[-1].parent if patterns else path


def _bucket(options: PipelineOptions) -> str:
    """The bucket that the job's own files go to.

    >>> _bucket(PipelineOptions(["--temp_location=gs://b/tmp"])), _bucket(PipelineOptions([]))
    ('gs://b', 'gs://BUCKET')
    """
    place = options.view_as(GoogleCloudOptions).temp_location or ""
    return "/".join(place.split("/")[:3]) if place.startswith("gs://") else _ANY_BUCKET


def _name(experiment: Experiment) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in experiment.name)
