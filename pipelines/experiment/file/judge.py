"""`judge:` of an experiment: its schema, and the judges and labels that it names."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from rankbeam.pipelines.config.sections import Count, Samples, Section, Word
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.pipelines.experiment.file.criteria import CriterionModel
from rankbeam.pipelines.experiment.file.services import Services
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.judge.agreement import JUDGES, PEOPLE
from rankbeam.transforms.judge.metrics import NAME_OF_A_SERVICE
from rankbeam.transforms.judge.panel import MAJORITY
from rankbeam.transforms.judge.templates import DEFAULT_VERSION, VERSION_1, VERSIONS, templates
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.stages import Judging


class JudgeModel(Section):
    """`judge:`, the settings for judging answers and contexts. A list of services is short for `{service: LIST}`.

    Attributes:
        service: name of the judging model under `services:`, or a list of several. Each judged metric then has a value
            by each judge, `Faithfulness(judge=NAME)`, and by the majority, `Faithfulness`. The first judge writes the
            claims that all of them judge.
        embeddings: name of the embedding model, for metrics based on similarity.
        samples: number of verdicts for each item.
        repeat_share: share of items that are judged three times, to measure how consistent verdicts are.
        prompts: version of rankbeam's prompts, `v1` or `v2` (the default), or a folder of prompts that replace those of
            `v2`. `v2` is in plainer English, names the language of the reply, ignores citation marks and Markdown, and
            has examples. `v1` reuses all verdicts bought with version 1, and splits texts only at `max_context_tokens`.
            Verdicts of one version are not reused for another.
        examples: folder of correct replies to show the judge, one file `STEP.jsonl` per step, instead of the built-in
            examples.
        max_output_tokens: maximum tokens in the reply to one call, which may contain several verdicts.
        max_context_tokens: maximum tokens of a text that is judged at once; choose less than the model can read. Longer
            texts are judged in parts: a claim is supported if any part supports it, and a context gets the grade of its
            best part. By default no context is judged in parts.
        strict_version: if true, a run whose verdicts come from more than one version of the model ends with status 3;
            otherwise it only warns.
        labels: folder of human labels, `OUT/labels`, which `rankbeam label OUT --apply FILE` writes, or a table,
            `bigquery://project.dataset.table`, to which `--labels` writes them. With labels, the
            agreement of the judge with people is measured, and metrics can be `Faithfulness(labels=True)`.
        criteria: questions of your own, by name. Each is a metric of that name.
    """

    bare: ClassVar[tuple[str, type] | None] = ("service", list)

    service: Word | Annotated[list[Word], Field(min_length=1)]
    embeddings: Word | None = None
    samples: Samples = 1
    repeat_share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    prompts: Word | None = None
    examples: Word | None = None
    max_output_tokens: Count = 4096
    max_context_tokens: Count | None = None
    strict_version: bool = False
    labels: Word | None = None
    criteria: dict[str, CriterionModel] = Field(default={})

    @field_validator("service", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
            raise ValueError(
                "list the names of services, judge: [ONE, OTHER]; further keys apply to all judges, "
                "judge: {service: [ONE, OTHER], samples: 3}"
            )
        return value

    @property
    def services(self) -> tuple[str, ...]:
        """The names of all judges; empty if the value is not valid."""
        return (self.service,) if isinstance(self.service, str) else tuple(self.service or ())


def judging_of(located: YamlDocument, model: JudgeModel, services: Services) -> Judging | None:
    if not model.services:  # a judge without a valid name of a service is reported
        return None
    prompts = DEFAULT_VERSION if model.prompts is None else model.prompts
    prompts = prompts if prompts in VERSIONS else located.below(prompts)
    examples = None if model.examples is None else located.below(model.examples)
    for key, replacing in (("prompts", None), ("examples", examples)):
        try:
            templates(prompts, replacing)
        except InputError as error:
            located.report(("judge", key), str(error))
            break
    labels, strata = None if model.labels is None else located.below(model.labels), None
    if labels is not None:
        try:
            strata = read_labels(labels).strata
        except InputError as error:
            located.report(("judge", "labels"), str(error))
    for number, name in enumerate(model.services):
        place: Place = ("judge", "service") if isinstance(model.service, str) else ("judge", "service", number)
        services.writer(located, place, name)
    if model.embeddings is not None:
        services.embedder(located, ("judge", "embeddings"), model.embeddings)
    located.problems.extend(
        located.error(("judge", "service"), problem) for problem in _no_panel(model.services, services)
    )
    return Judging(
        services=model.services,
        embeddings=model.embeddings,
        samples=model.samples,
        repeat_share=model.repeat_share,
        prompts=prompts,
        examples=examples,
        max_output_tokens=model.max_output_tokens,
        strict_version=model.strict_version,
        max_context_tokens=model.max_context_tokens,
        in_windows=prompts != VERSION_1,
        labels=labels,
        strata=strata,
    )


def _no_panel(names: Sequence[str], services: Services) -> Iterator[str]:
    """Reasons why services cannot judge together."""
    if len(names) < 2:
        return
    for name in dict.fromkeys(names):
        if not NAME_OF_A_SERVICE.fullmatch(name) or name in (MAJORITY, PEOPLE, JUDGES):
            yield f"{name!r} cannot be a part of the names of metrics and judges; rename the service"
    parameters = [services.valid[name].decisive() for name in names if name in services.valid]
    if any(parameters.count(one) > 1 for one in parameters):
        yield "names one model twice, so its votes would be equal; keep one, or change its parameters"
