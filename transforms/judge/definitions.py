"""Definitions of judged metrics: formulas, and what they need from a judge and a dataset.

A formula's arguments are its needs: `INPUTS` lists the judge's steps that produce each of them.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from types import MappingProxyType

from rankbeam.transforms.kernels import judged as kernels
from rankbeam.transforms.kernels import judged_ragas as ragas
from rankbeam.transforms.kernels import judged_refusals as refusals
from rankbeam.transforms.kernels.judged import Undefined, Value


class Need(StrEnum):
    """What a metric may need besides a judge."""

    ANSWER = "answer"
    CONTEXTS = "contexts"
    REFERENCE = "reference"
    ANSWERABLE = "answerable"
    NUGGETS = "nuggets"
    EMBEDDINGS = "embeddings"


@dataclass(frozen=True)
class Input:
    """An argument of a formula."""

    steps: tuple[str, ...] = ()
    needs: frozenset[Need] = frozenset()
    per_context: bool = False


def _input(*steps: str, needs: Iterable[Need] = (), per_context: bool = False) -> Input:
    return Input(steps, frozenset(needs), per_context)


_A, _C, _G = Need.ANSWER, Need.CONTEXTS, Need.REFERENCE

INPUTS: Mapping[str, Input] = MappingProxyType(
    {
        "ac": _input("claims_a", "support_ac", needs=(_A, _C), per_context=True),
        "gc": _input("claims_g", "support_gc", needs=(_G, _C), per_context=True),
        "ag": _input("claims_a", "support_ag", needs=(_A, _G)),
        "ga": _input("claims_g", "support_ga", needs=(_A, _G)),
        "grades": _input("grade", needs=(_C,), per_context=True),
        "cited": _input(needs=(_A, _C)),
        "invented": _input(needs=(_A, _C)),
        "kind": _input("answer_kind", needs=(_A,)),
        "relevance": _input("answer_kind", needs=(_A,)),
        "answerable": _input(needs=(Need.ANSWERABLE,)),
        "assigned": _input("nugget_assign", needs=(_A, Need.NUGGETS)),
        "vital": _input(needs=(Need.NUGGETS,)),
        "statements": _input("statements", "support_statements", needs=(_A, _C)),
        "extracted": _input("sentences", needs=(_C,)),
        "attributed": _input("support_sentences", needs=(_G, _C)),
        "cosines": _input("questions", "embeddings", needs=(_A, Need.EMBEDDINGS)),
        "noncommittal": _input("questions", needs=(_A,)),
        "similarity": _input("embeddings", needs=(_A, _G, Need.EMBEDDINGS)),
    }
)
"""By the name of the argument. In `statements`, `extracted` and `attributed` all contexts are judged together."""


@dataclass(frozen=True)
class JudgedDefinition:
    """The definition of a judged metric."""

    kernel: Callable[..., Value]
    undefined: tuple[Undefined, ...] = ()
    lowest: float = 0.0
    highest: float = 1.0
    note: str = ""

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The arguments that it always needs."""
        return tuple(name for name, parameter in self._arguments().items() if parameter.default is parameter.empty)

    @cached_property
    def inputs_without_claims(self) -> tuple[str, ...]:
        """The further arguments that it needs where the answer has no claims."""
        return tuple(name for name in self._arguments() if name not in self.inputs)

    @property
    def scores_refusals(self) -> bool:
        """Whether an answer without claims is scored as a refusal."""
        return "answerable" in self.inputs_without_claims

    @property
    def steps(self) -> tuple[str, ...]:
        """The judge's steps that it always needs."""
        return tuple(dict.fromkeys(step for name in self.inputs for step in INPUTS[name].steps))

    @property
    def needs(self) -> frozenset[Need]:
        """What the metric needs besides a judge."""
        return frozenset().union(*(INPUTS[name].needs for name in self.inputs))

    @property
    def takes_cutoff(self) -> bool:
        """Whether it judges contexts alone, so that it can judge the first k of them without an answer."""
        return Need.CONTEXTS in self.needs and Need.ANSWER not in self.needs

    def _arguments(self) -> Mapping[str, inspect.Parameter]:
        # What `partial` has set is no argument any more.
        parameters = inspect.signature(self.kernel).parameters
        return {name: parameter for name, parameter in parameters.items() if name in INPUTS}


_U = Undefined
_NO_CLAIMS, _NO_REFERENCE = (_U.NO_CLAIMS,), (_U.NO_REFERENCE, _U.NO_REFERENCE_CLAIMS)
_NO_ANSWER_CLAIMS = (_U.NO_REFERENCE, _U.NO_CLAIMS)
_NO_NUGGETS, _NO_VITAL = (_U.NO_NUGGETS,), (_U.NO_NUGGETS, _U.NO_VITAL_NUGGETS)
_F1, _NOISE = (*_NO_CLAIMS, *_NO_REFERENCE, _U.REFERENCE_REFUSES), (*_NO_ANSWER_CLAIMS, _U.NO_CONTEXTS)
_nuggets, _noise = partial(partial, kernels.nugget_score), partial(partial, kernels.noise_sensitivity)
_Definition = JudgedDefinition

JUDGED: Mapping[str, JudgedDefinition] = MappingProxyType(
    {
        "Faithfulness": _Definition(
            kernels.faithfulness,
            _NO_CLAIMS,
            note="a claim counts where one context supports it; ragas shows all contexts together: Faithfulness(ragas)",
        ),
        "Faithfulness(ragas)": _Definition(ragas.faithfulness, (_U.NO_STATEMENTS,)),
        "Hallucination": _Definition(kernels.hallucination, _NO_ANSWER_CLAIMS),
        "SelfKnowledge": _Definition(kernels.self_knowledge, _NO_ANSWER_CLAIMS),
        "NoiseSensitivity(relevant)": _Definition(_noise(relevant=True), _NOISE),
        "NoiseSensitivity(irrelevant)": _Definition(_noise(relevant=False), _NOISE),
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
            note="the formula is that of ragas, and a context is useful where it supports a claim of the reference "
            "answer; the context precision of RAGChecker is ContextPrecision(claims)",
        ),
        "ContextAP(grade)": _Definition(kernels.context_ap_of_grades),
        "ContextAP(answer)": _Definition(kernels.context_ap_of_answer, _NO_CLAIMS),
        "ContextUtilization": _Definition(
            kernels.context_utilization,
            (*_NO_REFERENCE, _U.REFERENCE_NOT_IN_CONTEXTS),
            note="it is that of RAGChecker; ragas calls context precision without a reference so: ContextAP(answer)",
        ),
        "ContextRelevance": _Definition(
            kernels.context_relevance,
            note="it is the mean grade of the contexts; the share of their sentences that an answer needs, as in the "
            "paper of ragas, is ContextRelevance(ragas)",
        ),
        "ContextRelevance(ragas)": _Definition(ragas.context_relevance),
        "AnswerRelevance": _Definition(
            kernels.answer_relevance,
            note="it is the judge's grade of the answer; the likeness of questions made from the answer to the query, "
            "as in ragas, is AnswerRelevance(ragas)",
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
        "Refused": _Definition(refusals.refused),
        "RefusalPrecision": _Definition(refusals.refusal_precision, (_U.ANSWERABLE_UNKNOWN, _U.NOT_REFUSED)),
        "RefusalRecall": _Definition(refusals.refusal_recall, (_U.ANSWERABLE_UNKNOWN, _U.ANSWERABLE)),
    }
)
"""By name, with the word that chooses the definition."""
