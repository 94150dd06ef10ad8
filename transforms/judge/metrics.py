"""Names of judged metrics: `Faithfulness`, `ContextRelevance@5`, `NoiseSensitivity(relevant)`, `Faithfulness(ragas)`.

A bare word in brackets selects a definition, as do `args=ignore` and `args=subset` for trajectories. `labels=True`
adds human labels. `judge=NAME` and `embeddings=NAME` name the judge or the embedding model where the metric's name
has to show it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rankbeam.transforms.judge.definitions import (
    ARGS,
    JUDGED,
    OTHER_TOOLS,
    JudgedDefinition,
    base_names,
    definition_named,
    definition_of,
    judged_names,
    names_by_lower,
)
from rankbeam.transforms.judge.steps import step_named as judge_step
from rankbeam.transforms.kernels.judged import Value
from rankbeam.transforms.kernels.trajectories import MATCHES
from rankbeam.transforms.records.calls.prompt import EMBED
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.judging.criteria import CRITERION, Criterion, step_named
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics.names import Metric, ParsedName, split_name
from rankbeam.transforms.records.metrics.trec_names import parse_metrics

_MODEL_OPTIONS = ("judge", "embeddings")
LABELS = "labels"
NOT_INSTALLED = "no installed package defines {}, as when the run was made; install the package again"
NAME_OF_A_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@cache
def families() -> Mapping[str, tuple[str, ...]]:
    """Metric names by what the metrics judge; plug-ins are not loaded."""
    named: dict[str, list[str]] = {"answers and contexts, judged": [CRITERION]}
    for name in judged_names():
        definition = JUDGED.get(name)
        if definition is None:
            family = "judged, of other packages"
        elif definition.steps:
            family = "answers and contexts, judged"
        elif definition.highest is None or definition.needs & {Need.STEPS, Need.EXPECTED_STEPS}:
            family = "agents and usage"
        else:
            family = "answers, without a judge"
        named.setdefault(family, []).append(name.partition("(")[0])
    return {family: tuple(dict.fromkeys(names)) for family, names in named.items()}


@dataclass(frozen=True)
class JudgedMetric:
    """One judged metric."""

    name: str
    cutoff: int | None = None  # the number of contexts that are judged; None for those that the generator was given
    judge: str | None = None
    embeddings: str | None = None
    labels: bool = False  # by human labels and all judged values together
    criterion: Criterion | None = field(default=None, compare=False)  # None where only its results are read

    def __str__(self) -> str:
        """The canonical name, such as `Faithfulness(ragas,judge=lexical)`."""
        base, _, variant = self.name.removesuffix(")").partition("(")
        who = [f"{option}={value}" for option in _MODEL_OPTIONS if (value := getattr(self, option)) is not None]
        written = ",".join(filter(None, [variant, f"{LABELS}=True" if self.labels else "", *who]))
        return base + (f"({written})" if written else "") + (f"@{self.cutoff}" if self.cutoff is not None else "")

    @property
    def definition(self) -> JudgedDefinition:
        return definition_of(self.criterion) if self.is_criterion else definition_named(self.name)

    @property
    def is_criterion(self) -> bool:
        return self.name.startswith(f"{CRITERION}(")

    @property
    def steps(self) -> tuple[str, ...]:
        """The names in tables of the judge's steps.

        >>> parse_judged("ContextRelevance@5").steps, parse_judged("Criterion(Tone)").steps
        (('grade',), ('criterion:Tone',))
        """
        if self.is_criterion:
            return (step_named(self.name.partition("(")[2].removesuffix(")")),)
        return self.definition.steps

    @property
    def is_judged(self) -> bool:
        """True if a judge is asked, and not only an embedding model, or no model at all."""
        return bool(set(self.definition.steps) - {EMBED})

    @property
    def votes(self) -> bool:
        """True if it depends on verdicts, so that several judges can form a majority."""
        return any(judge_step(step).judges for step in self.definition.steps)

    def shown(self, judge: str | None = None, embeddings: str | None = None) -> "JudgedMetric":
        """The same metric with the names of the judge and the embedding model, if it uses them.

        >>> str(parse_judged("AnswerSimilarity").shown(judge="lexical", embeddings="e5"))
        'AnswerSimilarity(embeddings=e5)'
        """
        embeds = Need.EMBEDDINGS in self.definition.needs
        return replace(
            self,
            judge=(judge or self.judge) if self.is_judged else None,
            embeddings=(embeddings or self.embeddings) if embeds else None,
        )

    def means(self, other: "JudgedMetric") -> bool:
        """Return whether this name, which can leave out judge and embedding model, denotes another metric.

        >>> parse_judged("Faithfulness").means(parse_judged("Faithfulness(judge=lexical)"))
        True
        """
        return self == replace(
            other,
            judge=None if self.judge is None else other.judge,
            embeddings=None if self.embeddings is None else other.embeddings,
        )

    @property
    def lowest(self) -> float:
        return self.definition.lowest

    @property
    def highest(self) -> float | None:
        return self.definition.highest

    @property
    def lower_is_better(self) -> bool:
        return self.definition.lower_is_better

    @property
    def bits(self) -> int:
        return self.definition.bits

    def value(self, inputs: Mapping[str, Any]) -> Value:
        return self.definition.value(inputs, self.cutoff)


def parse_judged(text: str) -> JudgedMetric:
    """Parse the name of a judged metric, ours or another tool's.

    >>> [str(parse_judged(text)) for text in ("faithfulness", "context_precision@5", "NoiseSensitivity( relevant )")]
    ['Faithfulness', 'ContextAP@5', 'NoiseSensitivity(relevant)']
    """
    written = split_name(text)
    known_name = names_by_lower().get(written.name.lower())
    if known_name is None:
        hint = did_you_mean(written.name, [*base_names(), *OTHER_TOOLS])
        raise InputError(f"unknown metric {written.name!r}; {hint}")
    words = [option for option, value in written.options if value is None]
    models = {option: value for option, value in written.options if value is not None}
    if ARGS in models and f"{known_name}({ARGS}={MATCHES[1]})" in judged_names():
        args = models.pop(ARGS)
        words += [] if args == MATCHES[0] else [f"{ARGS}={args}"]
    has_labels = models.pop(LABELS, "False")
    if has_labels not in ("True", "False"):
        raise InputError(f"metric {text!r}: {LABELS}={has_labels} is neither True nor False")
    for option, value in models.items():
        if option not in _MODEL_OPTIONS:
            hint = did_you_mean(option, [*_MODEL_OPTIONS, LABELS])
            raise InputError(f"metric {text!r}: unknown option {option!r}; {hint}")
        if not NAME_OF_A_SERVICE.fullmatch(value):
            raise InputError(f"metric {text!r}: {option}={value} is not the name of a service")
    name = known_name if not words else f"{known_name.partition('(')[0]}({','.join(words)})"
    metric = JudgedMetric(
        _variant(text, name), written.cutoff, models.get("judge"), models.get("embeddings"), has_labels == "True"
    )
    if written.in_tokens:
        raise InputError(f"metric {text!r} takes no budget of tokens: write {metric}")
    if written.cutoff is not None and not metric.definition.takes_cutoff:
        raise InputError(f"metric {text!r} takes no cutoff: write {replace(metric, cutoff=None)}")
    return metric.shown()


def _variant(text: str, name: str) -> str:
    base, _, word = name.removesuffix(")").partition("(")
    if base == CRITERION:
        if not word.isidentifier():
            raise InputError(f"metric {text!r}: write {CRITERION} with the name of one criterion: {CRITERION}(Tone)")
        return name
    variants = [known for known in judged_names() if known.partition("(")[0] == base]
    if name not in variants:
        hint = "; ragas' context_precision is ContextAP" if base == "ContextPrecision" else ""
        raise InputError(f"metric {text!r}: write {' or '.join(variants)}{hint}")
    return name


def is_judged(text: str) -> bool:
    """Return whether a metric's name is that of a judged one; variants, options and cutoffs are not checked.

    >>> is_judged("faithfulness(x)"), is_judged("nDCG@10"), is_judged("P.5")
    (True, False, False)
    """
    try:
        name = split_name(text).name.lower()
    except InputError:
        return False
    return name in names_by_lower()


def notes(words: Iterable[str]) -> list[str]:
    """Notes on names that other tools define differently, one line per name.

    >>> notes(["context_recall", "nDCG@10"])
    ['context_recall is ContextRecall here: it counts claims of the reference answer; ragas counts its sentences: \
ContextRecall(ragas)']
    """
    by_name = {}
    for word in words:
        name = word.partition("@")[0].partition("(")[0].strip()
        is_other = name in OTHER_TOOLS or name == "ContextUtilization"
        if is_other and (metric := parse_judged(word)).definition.note:
            by_name[name] = f"{name} is {metric.name} here: {metric.definition.note}"
    return list(by_name.values())


def named_in(name: str, metrics: Sequence[Metric | JudgedMetric]) -> Metric | JudgedMetric | None:
    """The only metric that a name, with or without a judge, can denote; None if there are none or several.

    >>> str(named_in("Faithfulness", parse_all(["RR", "Faithfulness(judge=lexical)"])))
    'Faithfulness(judge=lexical)'
    """
    (metric, *others) = parse_all([name])
    if others or metric in metrics:
        return None if others else metric
    judged = [other for other in metrics if isinstance(other, JudgedMetric)]
    same = [other for other in judged if isinstance(metric, JudgedMetric) and metric.means(other)]
    return same[0] if len(same) == 1 else None


def parse_all(names: Iterable[str]) -> list[Metric | JudgedMetric]:
    """Read names of metrics without repetitions; one of trec_eval's names may mean several metrics.

    >>> [str(metric) for metric in parse_all(["P.5,10", "Faithfulness", "P@5", "context_recall@3"])]
    ['P@5', 'P@10', 'Faithfulness', 'ContextRecall@3']
    """
    metrics: dict[Metric | JudgedMetric, None] = {}
    for name in names:
        metrics |= dict.fromkeys([parse_judged(name)] if is_judged(name) else parse_metrics([name], also=families))
    return list(metrics)


def parse_defined(names: Iterable[str]) -> list[Metric | JudgedMetric]:
    """Read names of a finished run's metrics; those that no installed package defines are left out."""
    metrics = []
    for name in names:
        try:
            metrics += parse_all([name])
        except InputError:
            continue
    return metrics


def same_spelling(name: str, metrics: Iterable[str]) -> list[str]:
    """The metrics with the spelling of a name, which may leave out their judge; they need not be defined here.

    >>> same_spelling("Faithfulness", ["Faithfulness(judge=lexical)", "Faithfulness(ragas,judge=lexical)"])
    ['Faithfulness(judge=lexical)']
    """
    try:
        written = split_name(name)
    except InputError:  # one of trec_eval's names
        return []
    return [metric for metric in metrics if metric == name or _without_models(metric) == written]


def _without_models(name: str) -> ParsedName:
    written = split_name(name)
    return replace(written, options=tuple(option for option in written.options if option[0] not in _MODEL_OPTIONS))
