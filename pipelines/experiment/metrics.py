"""`metrics:` of an experiment."""

from collections.abc import Mapping, Sequence

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.judging import with_criterion
from rankbeam.pipelines.experiment.needs import AnyMetric
from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.criteria import Criterion, criteria_in, spelled


def metrics_of(
    located: Located,
    model: ExperimentModel,
    criteria: Mapping[str, Criterion],
    names: Sequence[str],
    problems: list[InputError],
) -> dict[AnyMetric, int]:
    """Every metric once, with the position that it has first."""
    metrics: dict[AnyMetric, int] = {}
    for i, name in enumerate(model.metrics or ()):
        try:
            named = [metric for metric in parse_all([spelled(name, names)]) if not _is_invalid(metric, criteria, names)]
            parsed = [with_criterion(metric, criteria) for metric in named]
        except InputError as error:
            also = f"; criteria of judge: {', '.join(names)}" if names and "unknown metric" in error.problem else ""
            problems.append(located.error(("metrics", i), f"{error.problem}{also}"))
        else:
            for metric in parsed:
                metrics.setdefault(metric, i)
    return metrics


def _is_invalid(metric: AnyMetric, criteria: Mapping[str, Criterion], names: Sequence[str]) -> bool:
    """Return whether a metric is a criterion that was reported already."""
    return any(name in names and name not in criteria for name in criteria_in([str(metric)]))
