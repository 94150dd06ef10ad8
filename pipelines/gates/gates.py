"""Gates: thresholds for results, validated as far as possible before there are results."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from rankbeam.pipelines.config.references import resolve_references
from rankbeam.pipelines.config.sections import Section, Word, parse_model
from rankbeam.pipelines.config.yaml_lines import YamlDocument, load
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.judge.metrics import NOT_INSTALLED, JudgedMetric, parse_all, parse_defined, same_spelling
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean
from rankbeam.transforms.records.judging.criteria import criteria_in, full_metric_name
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import range_of
from rankbeam.transforms.records.slices import ALL, canonical, grouping_of

FAILURE_RATE = "failure_rate"
SENTINELS = "sentinels"
MONITOR = "monitor"
DIFFERENCES = ("difference", "difference_low", "difference_high")
Limit = Annotated[float, Field(allow_inf_nan=False)]
_ROUNDING = 1e-12


class GateModel(Section):
    """One item of `gates:`, a threshold for results.

    Attributes:
        metric: name of a metric, as under `metrics:`. For `failure_rate` it can be omitted, and the highest failure
            rate of any metric is used.
        value: value to compare with the limit. `low` and `high` are the ends of the mean's interval, `difference_low`
            and `difference_high` those of the difference from the baseline; `failure_rate` is the share of queries that
            failed. `monitor` is the change since the baseline run that `monitor:` names, night after night: with
            `at_least: -0.02` the gate is missed if a whole interval is below -0.02.
        at_least: lowest value that passes. Set either `at_least` or `at_most`.
        at_most: highest value that passes.
        configuration: name of a configuration, or the part of the name before the grid's values to match all of them.
            By default the gate applies to all configurations, or, for differences, to all but the baseline.
        slice: slice to check: "all" queries, one slice ("intent=how_to"), or an attribute name for each of its values.
        if_missing: outcome of a comparison with another run that lacks the configuration, metric or slice. With "miss"
            the gate is missed; with "skip" it is shown as new and passes.
        judge: the value "sentinels" limits the share of known items that the judge gets right, in the step with the
            lowest share. Such a gate has no metric.
    """

    metric: Word | None = None
    value: Literal[
        "mean", "low", "high", "difference", "difference_low", "difference_high", "failure_rate", "monitor"
    ] = "mean"
    at_least: Limit | None = None
    at_most: Limit | None = None
    configuration: Word | None = None
    slice: Word = "all"
    if_missing: Literal["miss", "skip"] = "miss"
    judge: Literal["sentinels"] | None = None

    @model_validator(mode="after")
    def _whole(self) -> "GateModel":
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("has one limit, at_least or at_most")
        if "if_missing" in self.model_fields_set and self.value not in DIFFERENCES:
            raise ValueError("has if_missing, which only applies to differences from another run")
        if self.judge is not None:
            if self.model_fields_set - {"judge", "at_least", "at_most"}:
                raise ValueError("is a gate on the judge, which takes a limit and no other key")
        elif self.value != FAILURE_RATE and self.metric is None:
            raise ValueError(f"needs a metric, as its value is {self.value}")
        return self


class GatesModel(BaseModel):
    """A file with gates; other keys, such as the rest of an experiment, are ignored."""

    gates: list[GateModel] = Field(default_factory=list)


@dataclass(frozen=True)
class Gate:
    """One threshold."""

    metric: str
    value: str
    limit: float
    at_least: bool
    configuration: str | None = None  # a name or the beginning of several; None for all
    slice: str = ALL
    skips_new: bool = False

    @property
    def is_difference(self) -> bool:
        return self.value in DIFFERENCES

    def is_met(self, value: float) -> bool:
        """Return whether a value is within the limit, or differs from it by rounding alone.

        >>> Gate("P@5", "difference", -0.2, at_least=True).is_met(0.6 - 0.8)
        True
        """
        if math.isclose(value, self.limit, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
            return True
        return value >= self.limit if self.at_least else value <= self.limit

    def configurations(self, names: Sequence[str], baseline: str | None) -> list[str]:
        """The configurations that it applies to; "" for a gate that applies to none."""
        if self.value == SENTINELS:
            return [""]
        chosen = names if self.configuration is None else matching_names(self.configuration, names)
        return [name for name in chosen if not (self.is_difference and name == baseline)]


@dataclass(frozen=True)
class KnownNames:
    """The names that gates may refer to."""

    configurations: Sequence[str]
    metrics: Sequence[str]
    slices: Sequence[str]
    baseline: str | None  # name of the configuration that others are compared with; None for another run


def matching_names(name: str, names: Sequence[str]) -> list[str]:
    """The configurations of that name, or whose name is that and then values of the grid or a dialect.

    >>> matching_names("bm25", ["bm25:b=0.4", "bm25:b=0.7", "bm25-exact"])
    ['bm25:b=0.4', 'bm25:b=0.7']
    """
    return [name] if name in names else [candidate for candidate in names if candidate.startswith(f"{name}:")]


def gates_of(
    located: YamlDocument,
    models: Sequence[GateModel],
    known: KnownNames | None,
    criteria: Collection[str] = (),
) -> tuple[Gate, ...]:
    """The gates of a document, one for each metric that a name means.

    criteria: their names, if no other names are known.
    """
    parsed_gates: list[Gate] = []
    for number, model in enumerate(models):
        limit, value = model.at_most if model.at_least is None else model.at_least, model.judge or model.value
        try:
            name = full_metric_name(model.metric or "", criteria if known is None else criteria_in(known.metrics))
            if name and known is not None:
                _refuse_undefined(name, known.metrics)
            metrics = [_metric_name(metric, known) for metric in parse_all([name])] if name else [""]
        except InputError as error:
            located.report(("gates", number, "metric"), error.problem)
            continue
        gates = [
            Gate(
                metric,
                value,
                limit or 0.0,
                model.at_least is not None,
                model.configuration,
                model.slice,
                model.if_missing == "skip",
            )
            for metric in metrics
        ]
        wrong = [] if known is None else [refusal for gate in gates for refusal in _wrong(gate, known)]
        if limit is not None:
            wrong += [refusal for gate in gates for refusal in _outside(gate)]
        located.problems.extend(located.error(("gates", number, key), problem) for key, problem in wrong)
        parsed_gates += gates
    return tuple(parsed_gates)


def _refuse_undefined(name: str, metrics: Sequence[str]) -> None:
    """Refuse the name of a run's metric that no installed package defines."""
    for metric in same_spelling(name, metrics):
        if not parse_defined([metric]):
            raise InputError(NOT_INSTALLED.format(metric))


def _metric_name(metric: Metric | JudgedMetric, known: KnownNames | None) -> str:
    """The name of a metric; that with its judge, where one judged metric alone can be meant."""
    if isinstance(metric, JudgedMetric) and known is not None and str(metric) not in known.metrics:
        computed = (judged for judged in parse_defined(known.metrics) if isinstance(judged, JudgedMetric))
        same = [judged for judged in computed if metric.means(judged)]
        if len(same) == 1:
            return str(same[0])
    return str(metric)


def read_gates(path: str) -> YamlDocument:
    """A file with gates: an experiment, or a file of gates alone."""
    (first, *_) = matching.expand(path)
    located = load(files.read_text(first, "gates are read from a YAML file", path), path)
    _refuse_none(located)
    return located


def name_of(located: YamlDocument) -> str | None:
    """The name of the experiment that a document is; None where it holds gates alone."""
    name = located.value.get("name") if isinstance(located.value, dict) else None
    located = resolve_references(replace(located, value={"name": name}, problems=[], unresolved=[]))
    if located.problems:
        raise InputErrors(located.problems)
    name = located.value["name"]
    return name if isinstance(name, str) else None


def located_gates(located: YamlDocument, known: KnownNames) -> tuple[Gate, ...]:
    _refuse_none(located)
    problems = [located.error(place, "is given twice; keep one") for place in located.repeated if place[0] == "gates"]
    located = replace(located, value={"gates": located.value["gates"]}, problems=problems, unresolved=[])
    located = resolve_references(located)
    model = parse_model(GatesModel, located)
    entries = located.value["gates"]
    # Without a mapping there are no gates to read.
    aligned = isinstance(entries, list) and len(model.gates) == len(entries)
    gates = gates_of(located, model.gates if aligned else [], known)
    if problems:
        raise InputErrors(sorted(problems, key=lambda problem: problem.line or 0))
    return gates


def _refuse_none(located: YamlDocument) -> None:
    if not isinstance(located.value, dict) or not located.value.get("gates"):
        problem = "gates: there are no gates; list them in the experiment, or in a file that --experiment names"
        raise InputErrors([InputError(problem, path=located.path)])  # no line: the document may be that of a run


def _wrong(gate: Gate, known: KnownNames) -> Iterator[tuple[str, str]]:
    """The problems of a gate: a key, and the message."""
    if gate.metric and gate.metric not in known.metrics:
        hint = did_you_mean(gate.metric, known.metrics)
        yield "metric", f"{gate.metric} is not one of the computed metrics; {hint}"
    yield from _wrong_configuration(gate, known)
    if gate.value == MONITOR and gate.slice != ALL:
        yield "slice", "monitor is about all queries; remove the slice"
    if gate.slice != ALL and _slice_attribute(gate.slice) not in known.slices:
        hint = did_you_mean(gate.slice.partition("=")[0], [ALL, *known.slices])
        yield "slice", f"results are not sliced by {_slice_attribute(gate.slice)!r}; {hint}"


def _outside(gate: Gate) -> Iterator[tuple[str, str]]:
    """The problem of a limit that every value keeps, or none: 85 where 0.85 is meant."""
    low, high, name = 0.0, 1.0, "share"
    if gate.metric and gate.value != FAILURE_RATE:
        (metric,) = parse_all([gate.metric])
        low, highest = range_of(metric)
        high, name = math.inf if highest is None else highest, gate.metric
        if gate.is_difference or gate.value == MONITOR:
            low, high, name = low - high, high - low, f"difference of {gate.metric}"
    if not low <= gate.limit <= high:
        bounds = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        yield "at_least" if gate.at_least else "at_most", f"no {name} can be {gate.limit:.12g}: it is {bounds}"


def _wrong_configuration(gate: Gate, known: KnownNames) -> Iterator[tuple[str, str]]:
    if gate.configuration is not None and not matching_names(gate.configuration, known.configurations):
        hint = did_you_mean(gate.configuration, known.configurations)
        yield "configuration", f"no configuration is named {gate.configuration!r}; {hint}"
    elif not gate.configurations(known.configurations, known.baseline):
        advice = "keep gates against another run in a file of their own: rankbeam gate --experiment FILE --baseline DIR"
        yield (
            "value",
            f"the baseline {known.baseline!r} is the only configuration, so there is no difference to check; {advice}",
        )


def _slice_attribute(name: str) -> str:
    """The attribute of a slice, or of all slices by it."""
    attribute = canonical(name.removesuffix("=*"))
    return grouping_of(attribute) or attribute
