"""Files of this machine, which workers elsewhere could not read: what is refused, and how to bring them there."""

import shlex
from collections.abc import Iterator, Mapping

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from pipelines.experiment import Experiment
from transforms.clients import files
from transforms.records.errors import InputError

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
    if read:
        lines += ["upload what is read, and name it in the experiment by its new place:"]
        lines += [
            f"  {each}" for each in _commands(list(dict.fromkeys(read.values())), f"{bucket}/{_name(experiment)}")
        ]
    if "output" in written:
        lines += [f"write elsewhere: --output {bucket}/{_name(experiment)}/out"]
    if "ledger" in written and experiment.ledger_path is not None:
        lines += [f"keep answers elsewhere: output.ledger: {bucket}/{_name(experiment)}/ledger"]
    raise InputError("\n".join(lines))


def _inputs(experiment: Experiment) -> dict[str, str]:
    """Every file that is read, by its place in the experiment."""
    dataset = {f"dataset.{role}": getattr(experiment, role) for role in ("qrels", "queries", "corpus")}
    found = {place: path for place, path in dataset.items() if path is not None}
    for source, retriever in enumerate(experiment.retrievers):
        name = experiment.evaluation.configurations[experiment.evaluation.owner(source)].name
        found |= {f"{name}, retriever.{key}": path for key, path in retriever.inputs().items() if path is not None}
    return found


def _commands(paths: list[str], folder: str) -> Iterator[str]:
    """The commands that upload; files of the same name go to folders of their own."""
    groups: list[dict[str, str]] = []
    for path in paths:
        name = path.rstrip("/").rpartition("/")[2]
        group = next((each for each in groups if name not in each), None)
        if group is None:
            groups.append(group := {})
        group[name] = path
    for number, group in enumerate(groups, 1):
        target = f"{folder}/" if number == 1 else f"{folder}/{number}/"
        yield shlex.join(["gcloud", "storage", "cp", "--recursive", *_sorted(group), target])


def _sorted(group: Mapping[str, str]) -> list[str]:
    return [group[name] for name in sorted(group)]


def _bucket(options: PipelineOptions) -> str:
    """The bucket that the job's own files go to.

    >>> _bucket(PipelineOptions(["--temp_location=gs://b/tmp"])), _bucket(PipelineOptions([]))
    ('gs://b', 'gs://BUCKET')
    """
    place = options.view_as(GoogleCloudOptions).temp_location or ""
    return "/".join(place.split("/")[:3]) if place.startswith("gs://") else _ANY_BUCKET


def _name(experiment: Experiment) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in experiment.name)
