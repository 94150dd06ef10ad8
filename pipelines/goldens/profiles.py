"""The dimensions by which questions vary: Auto RAG Eval's `qa_profiles.json`, and the writing model's suggestions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from apache_beam.options.pipeline_options import PipelineOptions
from pydantic import Field, ValidationError

from rankbeam.pipelines.config.sections import Section, problems_of
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.goldens.stages import run_alone
from rankbeam.pipelines.plan.counting import counted_tasks
from rankbeam.pipelines.plan.limits import refuse_cost
from rankbeam.pipelines.plan.pools import PoolPlan, pool_plans
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.forecast import ImaginedWriting
from rankbeam.transforms.goldens.planning import GoldensPlan, SuggestedProfiles, SuggestProfiles, sample_spans
from rankbeam.transforms.goldens.records.items import Dimension, ProfileValue, SourceSpan, repeated_name
from rankbeam.transforms.records.errors import InputError, InputErrors

PROFILES = "profiles.json"  # the default name of the file


class _Described(Section):
    description: str = ""


class _Dimension(_Described):
    reason: str = ""
    values: Annotated[dict[str, _Described], Field(min_length=1)]


class _Profiles(Section):
    accepted: bool = True  # false for a model's suggestions, until a person changes it
    suggested_by: dict[str, Any] = Field(default_factory=dict)
    documents: list[str] = Field(default_factory=list)
    parameters: Annotated[dict[str, _Dimension], Field(min_length=1)]


def read_profiles(path: str) -> tuple[Dimension, ...]:
    """Read a file {"parameters": {DIMENSION: {"description", "values": {VALUE: {"description"}}}}}."""
    text = files.read_all(path).decode("utf-8", "replace")
    try:
        json.loads(text)
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(f"is not valid JSON: {error}", path=path, line=line) from error
    located = load(text.replace("\t", " "), path)  # apart from tabs, JSON is YAML, which has line numbers
    problems = located.duplicate_keys()
    try:
        profiles = _Profiles.model_validate(located.value)
    except ValidationError as error:
        problems += problems_of(located, _Profiles, error)
    if problems:
        raise InputErrors(problems)
    if not profiles.accepted:
        problem = "a model suggested these profiles; read and edit them, then set accepted to true"
        raise located.error(("accepted",), problem)
    dimensions = tuple(
        Dimension(
            name,
            profile.description,
            tuple(ProfileValue(value, one.description) for value, one in profile.values.items()),
            profile.reason,
        )
        for name, profile in profiles.parameters.items()
    )
    if (name := repeated_name(dimensions)) is not None:
        problem = f"{name!r} has the column of another dimension; rename one"
        raise located.error(("parameters", name), problem)
    return dimensions


def suggestion_file(dimensions: Sequence[Dimension], model: dict[str, Any], documents: Sequence[str]) -> bytes:
    """The file of a model's suggested dimensions; `read_profiles` refuses it until a person accepts it."""
    parameters = {
        dimension.name: {
            "description": dimension.description,
            "reason": dimension.reason,
            "values": {value.name: {"description": value.description} for value in dimension.values},
        }
        for dimension in dimensions
    }
    content = {"accepted": False, "suggested_by": model, "documents": list(documents), "parameters": parameters}
    return f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode("utf-8", "replace")


@dataclass(frozen=True)
class Suggestion:
    """A suggestion of profiles that is ready to be requested."""

    goldens: Goldens
    source: str  # the file of goldens
    path: str  # the file to write
    sample: tuple[SourceSpan, ...]

    @property
    def work(self) -> SuggestProfiles:
        return SuggestProfiles(self.goldens.asking)

    @property
    def documents(self) -> list[str]:
        return list(dict.fromkeys(span.doc_id for span in self.sample))


def suggestion_of(goldens: Goldens, plan: GoldensPlan, source: str, path: str, count: int) -> Suggestion:
    """Prepare a suggestion; check everything that can be checked before the call."""
    if files.exists(path):
        raise InputError("exists; delete it, or name another file with --output", path=path)
    if (offline := goldens.writer.parameters.offline) is not None:
        problem = f"the writer {goldens.writer.name!r} is {offline}, and suggests no profiles; name another model"
        raise load(goldens.text, source).error(("writer",), problem)
    return Suggestion(goldens, source, path, sample_spans(plan, count))


def forecast(suggestion: Suggestion) -> PoolPlan:
    """The forecast of the one call."""
    goldens = suggestion.goldens
    counted = counted_tasks(suggestion.work, {"sample": suggestion.sample}, goldens.ledger, ImaginedWriting())
    (plan,) = pool_plans(counted.with_totals(), goldens.calls)
    return plan


def forecast_text(suggestion: Suggestion, plan: PoolPlan) -> str:
    writer = suggestion.goldens.writer.name
    head = f"{len(suggestion.sample):,} texts of {len(suggestion.documents):,} documents to {writer}"
    call = "0 calls, 1 in the ledger" if plan.ledger_hits else f"1 call, about {plan.input_tokens[1]:,} input tokens"
    return "; ".join([head, call, *([] if plan.cost is None else [f"cost {plan.cost[1]:,.4g}"])])


def suggest(suggestion: Suggestion, options: PipelineOptions) -> tuple[SuggestedProfiles, list[str]]:
    """Call the model, and write the file unless the call failed; also return warnings."""
    goldens, work = suggestion.goldens, suggestion.work
    refuse_cost(goldens.calls.max_cost, forecast(suggestion).cost, goldens.text, suggestion.source)
    items = [("sample", suggestion.sample)]
    results = run_alone(goldens.stage(work), goldens.calls, goldens.output, items, SuggestedProfiles, options)
    (profiles,) = results.records[:1] or [SuggestedProfiles(problem="no answer")]
    if profiles.dimensions:
        model = goldens.writer.parameters.identity(goldens.writer.kind) | {"model_version": profiles.model_version}
        files.write(suggestion.path, suggestion_file(profiles.dimensions, model, suggestion.documents))
    return profiles, results.warnings
