"""Definitions of judged metrics: formulas whose arguments are computed from the judge's replies.

A metric of another package is an entry point in the group `rankbeam.judged`, under the metric's name.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, wraps
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps import INPUTS, all_inputs
from rankbeam.transforms.judge.steps.criterion import CriterionStep, input_of
from rankbeam.transforms.kernels import judged as kernels
from rankbeam.transforms.kernels import judged_ragas as ragas
from rankbeam.transforms.kernels import judged_refusals as refusals
from rankbeam.transforms.kernels import overlap, trajectories
from rankbeam.transforms.kernels.judged import Undefined, Value
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.judging.criteria import CRITERION, Criterion
from rankbeam.transforms.records.judging.registry import GROUP, plug_ins, plugged_metrics
from rankbeam.transforms.records.judging.steps import JudgedInput, Need
from rankbeam.transforms.records.metrics.definitions import GROUP as RANKING_GROUP
from rankbeam.transforms.records.metrics.definitions import metric_names
from rankbeam.transforms.records.plug_ins import ROUNDING, blame_plug_in, load_plug_in, plug_in_label, read_only


@dataclass(frozen=True)
class JudgedDefinition:
    """The definition of a judged metric.

    Attributes:
        kernel: the formula: from arguments named as inputs of steps to a float, or to the reason why there is no value.
            Arguments with a default are needed only for an answer without claims to a query without an answer.
        undefined: the reasons for an undefined value.
        lowest: the lowest value that a query can have: the bound of a query whose judge failed.
        highest: the highest value that a query can have; None if there is no bound.
        lower_is_better: lower values are better, as for a rate of errors.
        note: the definition of other tools, where it differs.
        bits: without an upper bound, the resolution: values are distinguished to 2^-bits and are below 2^(43 - bits).
    """

    kernel: Callable[..., Value]
    undefined: tuple[Undefined, ...] = ()
    lowest: float = 0.0
    highest: float | None = 1.0
    note: str = ""
    bits: int = 20
    lower_is_better: bool = False

    @cached_property
    def inputs(self) -> Mapping[str, JudgedInput]:
        """The arguments that the formula always needs."""
        return {name: of for name, of in self._arguments.items() if self._is_required(name)}

    @cached_property
    def inputs_without_claims(self) -> Mapping[str, JudgedInput]:
        """The arguments that the formula also needs if the answer makes no claims."""
        return {name: of for name, of in self._arguments.items() if not self._is_required(name)}

    @property
    def scores_refusals(self) -> bool:
        """True if an answer without claims is scored as a refusal."""
        return "answerable" in self.inputs_without_claims

    @property
    def steps(self) -> tuple[str, ...]:
        """The judge's steps that the formula always needs."""
        return tuple(dict.fromkeys(step for entry in self.inputs.values() for step in entry.steps))

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset().union(*(entry.needs for entry in self.inputs.values()))

    @property
    def takes_cutoff(self) -> bool:
        """True if only contexts are judged, so that the first k of them can be judged without an answer."""
        return Need.CONTEXTS in self.needs and Need.ANSWER not in self.needs

    def value(self, arguments: Mapping[str, Any], cutoff: int | None = None) -> Value:
        """The value for one query. `arguments` may hold more than the formula needs; contexts are cut here."""
        names = [*self.inputs, *(name for name in self.inputs_without_claims if name in arguments)]
        cut = {name for name in names if self._arguments[name].per_context}
        return self.kernel(
            **{name: arguments[name][..., slice(cutoff)] if name in cut else arguments[name] for name in names}
        )

    @cached_property
    def _arguments(self) -> Mapping[str, JudgedInput]:
        parameters = inspect.signature(self.kernel).parameters
        known = INPUTS if all(name in INPUTS for name in parameters if self._is_required(name)) else all_inputs()
        if unknown := [name for name in parameters if name not in known and self._is_required(name)]:
            hint = did_you_mean(unknown[0], known)
            kernel = f"{self.kernel.__module__}.{getattr(self.kernel, '__qualname__', self.kernel)}"
            raise InputError(f"no step of the judge has the argument {unknown[0]!r} of {kernel}; {hint}")
        return {name: known[name] for name in parameters if name in known}

    def _is_required(self, name: str) -> bool:
        # What `partial` has set has a default.
        parameter = inspect.signature(self.kernel).parameters[name]
        return parameter.default is parameter.empty


@dataclass(frozen=True)
class CriterionDefinition(JudgedDefinition):
    """The definition of a user's criterion."""

    criterion: Criterion | None = None

    @cached_property
    def inputs(self) -> Mapping[str, JudgedInput]:
        """The criterion's verdicts, under its own name, because a query can have several criteria."""
        if self.criterion is None:
            unknown = JudgedInput(lambda _: Undefined.NO_ANSWER, (CriterionStep.name,))
            return {CriterionStep.name: unknown}
        return {self.criterion.step: input_of(self.criterion)}

    @cached_property
    def inputs_without_claims(self) -> Mapping[str, JudgedInput]:
        """Empty: a criterion does not extract claims."""
        return {}

    @property
    def takes_cutoff(self) -> bool:
        """As for all metrics; if only results are read, it is not known."""
        return self.criterion is None or super().takes_cutoff

    def value(self, arguments: Mapping[str, Any], cutoff: int | None = None) -> Value:
        ((name, entry),) = self.inputs.items()
        levels = arguments[name]
        return self.kernel(levels[..., :cutoff] if entry.per_context and not isinstance(levels, Undefined) else levels)


@cache
def definition_of(criterion: Criterion | None) -> JudgedDefinition:
    reasons = (Undefined.NO_ANSWER, Undefined.NO_CONTEXTS, Undefined.NO_REFERENCE, Undefined.NO_RUBRICS)
    if criterion is None:
        return CriterionDefinition(kernels.criterion_value, reasons)
    lowest, is_lower = -1.0 if criterion.pairs else 0.0, criterion.lower_is_better
    return CriterionDefinition(kernels.criterion_value, reasons, lowest, lower_is_better=is_lower, criterion=criterion)


_U = Undefined
_NO_CLAIMS, _NO_REFERENCE = (_U.NO_CLAIMS,), (_U.NO_REFERENCE, _U.NO_REFERENCE_CLAIMS)
_NO_ANSWER_CLAIMS = (_U.NO_REFERENCE, _U.NO_CLAIMS)
_NO_NUGGETS, _NO_VITAL = (_U.NO_NUGGETS,), (_U.NO_NUGGETS, _U.NO_VITAL_NUGGETS)
_F1, _NOISE = (*_NO_CLAIMS, *_NO_REFERENCE, _U.REFERENCE_REFUSES), (*_NO_ANSWER_CLAIMS, _U.NO_CONTEXTS)
_TEXTS = (_U.NO_REFERENCE,)
_nuggets, _noise = partial(partial, kernels.nugget_score), partial(partial, kernels.noise_sensitivity)
_Definition = JudgedDefinition
_Spent = partial(JudgedDefinition, highest=None, lower_is_better=True)
_EXPECTED = (_U.STEPS_NOT_GIVEN, _U.NO_EXPECTED_STEPS)
_TRAJECTORIES: Mapping[str, tuple[Callable[..., Value], tuple[Undefined, ...]]] = {
    "TrajectoryExact": (trajectories.trajectory_exact, _EXPECTED),
    "TrajectoryInOrder": (trajectories.trajectory_in_order, _EXPECTED),
    "TrajectoryAnyOrder": (trajectories.trajectory_any_order, _EXPECTED),
    "TrajectoryPrecision": (trajectories.trajectory_precision, (*_EXPECTED, _U.NO_STEPS)),
    "TrajectoryRecall": (trajectories.trajectory_recall, (*_EXPECTED, _U.NO_STEPS_EXPECTED)),
}
ARGS = "args"  # the option of metrics of trajectories that says how arguments are compared
_DEFAULT_ARGS = trajectories.MATCHES[0]

JUDGED: Mapping[str, JudgedDefinition] = MappingProxyType(
    {
        "Faithfulness": _Definition(
            kernels.faithfulness,
            _NO_CLAIMS,
            note="a claim counts if one context supports it; ragas shows all contexts together: Faithfulness(ragas)",
        ),
        "Faithfulness(ragas)": _Definition(ragas.faithfulness, (_U.NO_STATEMENTS,)),
        "Hallucination": _Definition(kernels.hallucination, _NO_ANSWER_CLAIMS, lower_is_better=True),
        "SelfKnowledge": _Definition(kernels.self_knowledge, _NO_ANSWER_CLAIMS),
        "NoiseSensitivity(relevant)": _Definition(_noise(relevant=True), _NOISE, lower_is_better=True),
        "NoiseSensitivity(irrelevant)": _Definition(_noise(relevant=False), _NOISE, lower_is_better=True),
        "ClaimPrecision": _Definition(kernels.claim_precision, _NO_ANSWER_CLAIMS),
        "ClaimRecall": _Definition(kernels.claim_recall, _NO_REFERENCE),
        "ClaimF1": _Definition(kernels.claim_f1, _F1),
        "ContextRecall": _Definition(
            kernels.context_recall,
            _NO_REFERENCE,
            note="it counts claims of the reference answer; ragas counts its sentences: ContextRecall(ragas)",
        ),
        "ContextRecall(ragas)": _Definition(ragas.context_recall, (_U.NO_REFERENCE, _U.NO_REFERENCE_SENTENCES)),
        "ContextPrecision(claims)": _Definition(kernels.context_precision, _NO_REFERENCE),
        "ContextAP": _Definition(
            kernels.context_ap,
            _NO_REFERENCE,
            note="the formula is ragas's, and a context is useful if it supports a claim of the reference answer; "
            "RAGChecker's context precision is ContextPrecision(claims)",
        ),
        "ContextAP(grade)": _Definition(kernels.context_ap_of_grades),
        "ContextAP(answer)": _Definition(kernels.context_ap_of_answer, _NO_CLAIMS),
        "ContextRR": _Definition(kernels.context_rr, _NO_REFERENCE),
        "ContextUtilization": _Definition(
            kernels.context_utilization,
            (*_NO_REFERENCE, _U.REFERENCE_NOT_IN_CONTEXTS),
            note="it is RAGChecker's; ragas's metric of this name is context precision without a reference: "
            "ContextAP(answer)",
        ),
        "ContextRelevance": _Definition(
            kernels.context_relevance,
            note="it is the mean grade of the contexts; the share of their sentences that an answer needs, as in the "
            "paper of ragas, is ContextRelevance(ragas)",
        ),
        "ContextRelevance(ragas)": _Definition(ragas.context_relevance),
        "AnswerRelevance": _Definition(
            kernels.answer_relevance,
            note="it is the judge's grade of the answer; ragas's similarity of the query to questions generated from "
            "the answer is AnswerRelevance(ragas)",
        ),
        "AnswerRelevance(ragas)": _Definition(ragas.answer_relevance, (_U.NO_DIRECTION,), lowest=-1.0),
        "AnswerCorrectness(ragas)": _Definition(ragas.answer_correctness, (*_F1, _U.NO_DIRECTION), lowest=-0.25),
        "AnswerSimilarity": _Definition(ragas.answer_similarity, (_U.NO_REFERENCE, _U.NO_DIRECTION), lowest=-1.0),
        "CitationPrecision": _Definition(kernels.citation_precision, (*_NO_CLAIMS, _U.NO_CITATIONS)),
        "CitationRecall": _Definition(kernels.citation_recall, _NO_CLAIMS),
        "NuggetVital": _Definition(_nuggets(only_vital=True, strict=False), _NO_VITAL),
        "NuggetVital(strict)": _Definition(_nuggets(only_vital=True, strict=True), _NO_VITAL),
        "NuggetAll": _Definition(_nuggets(only_vital=False, strict=False), _NO_NUGGETS),
        "NuggetAll(strict)": _Definition(_nuggets(only_vital=False, strict=True), _NO_NUGGETS),
        "ExactMatch": _Definition(overlap.exact_match, _TEXTS),
        "TokenF1": _Definition(overlap.token_f1, _TEXTS),
        "ROUGE-L": _Definition(overlap.rouge_l, _TEXTS),
        "BLEU": _Definition(overlap.bleu, _TEXTS, note="the mean over answers; BLEU of a corpus is pooled"),
        "chrF": _Definition(overlap.chrf, _TEXTS, note="the mean over answers; chrF of a corpus is pooled"),
        "Consistency": _Definition(overlap.consistency, (_U.ONE_SAMPLE,)),
        "Consistency(kind)": _Definition(refusals.kind_consistency, (_U.ONE_SAMPLE,)),
        "Refused": _Definition(refusals.refused),
        "RefusalPrecision": _Definition(refusals.refusal_precision, (_U.ANSWERABLE_UNKNOWN, _U.NOT_REFUSED)),
        "RefusalRecall": _Definition(refusals.refusal_recall, (_U.ANSWERABLE_UNKNOWN, _U.ANSWERABLE)),
        **{
            name if args == _DEFAULT_ARGS else f"{name}({ARGS}={args})": _Definition(
                partial(kernel, args=args), reasons
            )
            for name, (kernel, reasons) in _TRAJECTORIES.items()
            for args in trajectories.MATCHES
        },
        "Steps": _Spent(trajectories.steps, (_U.STEPS_NOT_GIVEN,)),
        "Retrievals": _Spent(trajectories.retrievals, (_U.STEPS_NOT_GIVEN,)),
        "Tokens": _Spent(trajectories.all_tokens, (_U.TOKENS_NOT_GIVEN,), bits=10),
        "InputTokens": _Spent(trajectories.tokens_in, (_U.TOKENS_NOT_GIVEN,), bits=10),
        "OutputTokens": _Spent(trajectories.tokens_out, (_U.TOKENS_NOT_GIVEN,), bits=10),
        "Cost": _Spent(trajectories.cost_of, (_U.COST_NOT_KNOWN,), bits=30),
        "Seconds": _Spent(trajectories.duration, (_U.SECONDS_NOT_GIVEN,)),
    }
)
"""By name, including the word in brackets that selects the definition."""

OTHER_TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "faithfulness": "Faithfulness",
        "answer_relevancy": "AnswerRelevance",
        "context_relevancy": "ContextRelevance",
        "context_recall": "ContextRecall",
        "context_precision": "ContextAP",
        "answer_correctness": "AnswerCorrectness(ragas)",
        "answer_similarity": "AnswerSimilarity",
        "ClaimRecall_answer": "ClaimRecall",
        "exact_match": "ExactMatch",
        "token_f1": "TokenF1",
        "rouge": "ROUGE-L",
        "rouge_l": "ROUGE-L",
        "rougeL": "ROUGE-L",
        "bleu_score": "BLEU",
        "chrf_score": "chrF",
    }
)
"""Other tools' names, and ours for the same metrics."""


@cache
def judged_names() -> tuple[str, ...]:
    """The names of all judged metrics, those of other packages last; these are not loaded."""
    names = plugged_metrics()
    if taken := [name for name in names if name in JUDGED]:
        raise InputError(f"{plug_in_label(GROUP, taken[0])}: rankbeam has a metric of that name; choose another")
    return (*JUDGED, *names)


@cache
def base_names() -> tuple[str, ...]:
    """The names of judged metrics without the words in brackets that choose a definition."""
    return tuple(dict.fromkeys((*(name.partition("(")[0] for name in judged_names()), CRITERION)))


@cache
def names_by_lower() -> Mapping[str, str]:
    """Our name of each judged metric, by the lower-case names it has here and in other tools."""
    names = {name.lower(): name for name in base_names()} | {name.lower(): full for name, full in OTHER_TOOLS.items()}
    if taken := [name for name in metric_names() if name.lower() in names]:
        problem = f"{names[taken[0].lower()]} is a judged metric; choose another name"
        raise InputError(f"{' or '.join((RANKING_GROUP, GROUP))} {taken[0]!r}: {problem}")
    return names


@cache
def definition_named(name: str) -> JudgedDefinition:
    """The definition of a metric; those of other packages are loaded."""
    if name in JUDGED:
        return JUDGED[name]
    definition = load_plug_in(GROUP, name)
    if not isinstance(definition, JudgedDefinition):
        raise InputError(f"{plug_in_label(GROUP, name)}: {plug_ins()[name].value} is not a JudgedDefinition")
    return replace(definition, kernel=_checked_kernel(plug_in_label(GROUP, name), definition))


def _checked_kernel(what: str, definition: JudgedDefinition) -> Callable[..., Value]:
    """The kernel of another package, whose values are checked."""
    lowest, highest = definition.lowest, math.inf if definition.highest is None else definition.highest

    @wraps(definition.kernel)
    def kernel(**arguments: Any) -> Value:
        with blame_plug_in(what):
            value = definition.kernel(**{name: read_only(argument) for name, argument in arguments.items()})
        if isinstance(value, Undefined):
            return value
        is_number = isinstance(value, Real | np.bool_) and math.isfinite(value)
        if not is_number or not lowest - ROUNDING <= value <= highest + ROUNDING:
            bounds = f"from {lowest:g} to {highest:g}" if highest < math.inf else f"{lowest:g} or more"
            raise InputError(f"{what} returned {value!r}, which is not a number {bounds}, nor an Undefined")
        return min(max(float(value), lowest), highest)

    return kernel
