"""Read an experiment file: its sections, each checked as far as possible by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from rankbeam.pipelines.config.references import read_yaml
from rankbeam.pipelines.config.sections import parse_model
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.file.corpora import Corpora, corpora_of
from rankbeam.pipelines.experiment.file.criteria import criteria_of
from rankbeam.pipelines.experiment.file.datasets import with_dataset
from rankbeam.pipelines.experiment.file.generate import TemplateFile, read_template
from rankbeam.pipelines.experiment.file.judge import judging_of
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.file.output import set_path
from rankbeam.pipelines.experiment.file.quotas import NAMES, CorpusQuotas, Quotas, corpus_quotas_of, quotas_of
from rankbeam.pipelines.experiment.file.services import Services, services_of
from rankbeam.transforms.records.errors import InputErrors
from rankbeam.transforms.records.judging.criteria import Criterion
from rankbeam.transforms.records.stages import Judging


@dataclass(frozen=True)
class ExperimentFile:
    """The sections of an experiment file."""

    located: YamlDocument  # the document, with the values and files that it refers to, its problems and warnings so far
    model: ExperimentModel  # the file as it is written, or the parts of it that are valid
    criteria: Mapping[str, Criterion]
    services: Services
    judging: Judging | None
    quotas: Quotas
    corpus_quotas: CorpusQuotas
    corpora: Corpora
    templates: Callable[[str], TemplateFile]  # reads a template file, once


def read_file(text: str, path: str | None, output: str | None) -> ExperimentFile:
    """Read the text of an experiment file; `output` replaces the folder for results."""
    located = read_yaml(text, path, output)
    if not isinstance(located.value, dict):
        raise InputErrors([located.error((), "an experiment is a mapping with name, dataset, configurations, output")])
    set_path(located.value, output)
    located = with_dataset(located, output)
    model = parse_model(ExperimentModel, located)
    services = services_of(located, model.services)
    calls = {name: quota for name, quota in model.quotas.items() if name not in NAMES}
    criteria, judging, judge = dict[str, Criterion](), None, model.judge
    if judge is not None:
        criteria = criteria_of(located, judge.criteria or {}, located.folder)
        judging = judging_of(located, judge, services)
    return ExperimentFile(
        located=located,
        model=model,
        criteria=criteria,
        services=services,
        judging=judging,
        quotas=quotas_of(located, calls),
        corpus_quotas=corpus_quotas_of(located, model.quotas),
        corpora=corpora_of(located, model),
        templates=cache(partial(read_template, located.folder)),
    )
