"""`race:` in an experiment: its metric, and what it needs."""

from collections.abc import Iterable
from dataclasses import replace

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.models import ExperimentModel
from rankbeam.pipelines.experiment.needs import AnyMetric
from rankbeam.transforms.judge.metrics import JudgedMetric, parse_all
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.suggestions import did_you_mean


def race_of(
    located: Located, model: ExperimentModel, metrics: Iterable[AnyMetric], problems: list[InputError]
) -> Race | None:
    """The rules of the experiment's race; None where it has none, or, with the problem added, no valid one."""
    if model.race is None or model.race.metric is None:
        return None
    names = {str(_plain(metric)): str(metric) for metric in metrics}
    try:
        wanted = [str(_plain(metric)) for metric in parse_all([model.race.metric])]
    except InputError as error:
        problems.append(located.error(("race", "metric"), error.problem))
        return None
    known = [names[name] for name in wanted if name in names]
    if not known:
        problem = f"{model.race.metric} is not one of the metrics; {did_you_mean(model.race.metric, names.values())}"
        problems.append(located.error(("race", "metric"), problem))
        return None
    if not model.statistics.replicates:
        problems.append(located.error(("race",), "compares by the bootstrap, and statistics.replicates is 0"))
    return Race(known[0], model.race.alpha, tuple(model.race.looks))


def _plain(metric: AnyMetric) -> AnyMetric:
    """The metric without the models that its name may show."""
    return replace(metric, judge=None, embeddings=None) if isinstance(metric, JudgedMetric) else metric
