"""The files that an experiment names: whether they are there, and fit their role."""

from collections.abc import Iterator, Sequence

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.models import ExperimentModel
from rankbeam.pipelines.experiment.sources import PlannedSource
from rankbeam.transforms.clients.formats.check import check
from rankbeam.transforms.clients.formats.replay import configs_until
from rankbeam.transforms.clients.formats.sources import expand
from rankbeam.transforms.clients.retrievers.replay import Replay
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean


def missing_inputs(located: Located, model: ExperimentModel, sources: Sequence[PlannedSource]) -> Iterator[InputError]:
    """The parts of the dataset that a retriever or a slice needs and that are not given."""
    given = located.value.get("dataset")
    for need in sorted({need for each in sources for need in each.retriever.needs}):
        if not isinstance(given, dict) or given.get(need) is None:
            yield located.error(("dataset", need), f"is missing; a configuration's retriever needs the {need}")
    if model.slices and isinstance(given, dict) and given.get("queries") is None:
        yield located.error(("slices",), "are by attributes of queries, and dataset.queries is missing")


def unknown_systems(located: Located, sources: Sequence[PlannedSource], folder: str) -> Iterator[InputError]:
    """Systems of which a file of answers has none."""
    for retriever in (each.retriever for each in sources):
        replay = retriever.parameters
        if not isinstance(replay, Replay) or replay.config is None:
            continue
        try:
            known = configs_until(files.below(folder, replay.path), replay.config)
        except InputError as error:
            yield error
            continue
        if replay.config not in known:
            hint = did_you_mean(replay.config, known) if known else "no line has a config"
            problem = f"no answer in {replay.path} has the config {replay.config!r}; {hint}"
            yield located.error((*retriever.place, "config"), problem)


def wrong_inputs(
    located: Located, model: ExperimentModel, sources: Sequence[PlannedSource], folder: str
) -> Iterator[InputError]:
    """Every input that is missing, of a wrong format or empty, and every table that cannot be read."""
    inputs: list[tuple[Place, str | None, str | None]] = [
        (("dataset", role), role, getattr(model.dataset, role)) for role in ("qrels", "queries", "corpus", "evidence")
    ]
    if model.dataset.answers is not None:
        inputs.append((("dataset", "answers", "path"), "answers", model.dataset.answers.path))
    for retriever in (each.retriever for each in sources):
        own = retriever.parameters.inputs()
        inputs += [((*retriever.place, name), retriever.parameters.input_role, path) for name, path in own.items()]
    for place, role, pattern in inputs:
        try:
            paths = expand(files.below(folder, pattern)) if pattern else []
            if paths and role is not None:
                check(paths, role)
        except InputError as error:
            yield located.error(place, str(error))
