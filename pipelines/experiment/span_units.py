"""Experiments with `dataset.unit: span`, whose judgements are evidence spans: what they need, and what excludes it."""

from collections.abc import Iterator, Mapping

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.models import ExperimentModel
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.dialects import DIALECTS
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.under_spans import not_defined

UNIT = "span"


def wrong(
    located: Located, model: ExperimentModel, metrics: Mapping[Metric | JudgedMetric, int]
) -> Iterator[InputError]:
    """What contradicts the unit of the judgements."""
    dataset, with_spans = model.dataset, model.dataset.unit == UNIT
    retrieval = {metric: position for metric, position in metrics.items() if isinstance(metric, Metric)}
    for metric, position in retrieval.items():
        if (problem := not_defined(metric, dataset.unit)) is not None:
            yield located.error(("metrics", position), f"{metric} {problem}")
    if not with_spans:
        if dataset.evidence is not None:
            yield located.error(("dataset", "evidence"), "judges spans; write unit: span, or take the evidence out")
        return
    if dataset.evidence is None and retrieval:
        yield located.error(("dataset", "evidence"), "is missing; unit: span judges by evidence spans")
    if dataset.qrels is not None:
        problem = "would not be used: unit: span takes its grades from dataset.evidence; take one of both out"
        yield located.error(("dataset", "qrels"), problem)
    if model.ties:
        yield located.error(("ties",), "bounds over orders of ties are not known with unit: span; take it out")
    for position, name in enumerate(model.dialects or ()):
        if name in DIALECTS and DIALECTS[name].counts_chunks:
            yield located.error(("dialects", position), f"{name} counts chunks of judged documents, not spans")


def notes(model: ExperimentModel) -> Iterator[str]:
    """What users should know before anything is asked."""
    if model.dataset.unit == UNIT and model.dataset.corpus is None:
        yield "quotes of the evidence are not checked, and no chunk is located by its text: there is no corpus"
