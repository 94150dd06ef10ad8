"""Judged metrics of one answer, as functions of a judge's verdicts: a value, or the reason why there is none.

A judge's verdicts on claims are matrices of truth values. For an answer with n claims, a reference answer with m claims
and k contexts in rank order:

    ac  bool[n, k]  context l supports claim i of the answer
    gc  bool[m, k]  context l supports claim j of the reference answer
    ag  bool[n]     the reference answer supports claim i of the answer
    ga  bool[m]     the answer supports claim j of the reference answer

"Contradicted" and "not stated" are both false. Metrics of claims are those of RAGChecker (Ru et al., NeurIPS 2024),
which scores 0 if there is nothing to count; here the value is then undefined. Module `judged_ragas` has the metrics of
ragas, `judged_refusals` those of refusals.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray

HIGHEST_GRADE = 3  # the highest grade of a context, and of an answer's relevance; the lowest is 0
USEFUL_GRADE = 2  # the grade from which a context counts as relevant if yes or no is needed


class Undefined(StrEnum):
    """Reasons why a metric has no value for a query."""

    NO_CLAIMS = "no_claims"
    NO_REFERENCE = "no_reference"
    NO_REFERENCE_CLAIMS = "no_reference_claims"
    REFERENCE_REFUSES = "reference_refuses"
    NO_CONTEXTS = "no_contexts"
    REFERENCE_NOT_IN_CONTEXTS = "reference_not_in_contexts"
    NO_CITATIONS = "no_citations"
    NO_NUGGETS = "no_nuggets"
    NO_VITAL_NUGGETS = "no_vital_nuggets"
    NOT_REFUSED = "not_refused"
    ANSWERABLE = "answerable"
    ANSWERABLE_UNKNOWN = "answerable_unknown"
    NO_STATEMENTS = "no_statements"
    NO_REFERENCE_SENTENCES = "no_reference_sentences"
    NO_DIRECTION = "no_direction"
    CONTEXTS_NOT_GIVEN = "contexts_not_given"
    ONE_SAMPLE = "one_sample"
    NO_ANSWER = "no_answer"
    NO_RUBRICS = "no_rubrics"
    STEPS_NOT_GIVEN = "steps_not_given"
    NO_STEPS = "no_steps"
    NO_EXPECTED_STEPS = "no_expected_steps"
    NO_STEPS_EXPECTED = "no_steps_expected"
    TOKENS_NOT_GIVEN = "tokens_not_given"
    SECONDS_NOT_GIVEN = "seconds_not_given"
    COST_NOT_KNOWN = "cost_not_known"


Value: TypeAlias = float | Undefined


class AnswerKind(StrEnum):
    """Kinds of answers: an answer, part of one, a refusal, or something else; in conversations a question, too."""

    ANSWERED = "answered"
    PARTIAL = "partial"
    REFUSED = "refused"
    OFF_TOPIC = "off_topic"
    CLARIFIED = "clarified"


class NuggetAssignment(StrEnum):
    """Degrees to which an answer contains a nugget."""

    SUPPORT = "support"
    PARTIAL = "partial"
    NONE = "none"


def share(true: BoolArray) -> float:
    """The share of true values among at least one.

    >>> share(np.array([True, False, True, True]))
    0.75
    """
    return int(np.count_nonzero(true)) / true.size


def any_of(matrix: BoolArray, axis: int) -> BoolArray:
    """Return whether anything is true along an axis; false along an empty axis.

    >>> any_of(np.array([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    reduced: BoolArray = np.logical_or.reduce(matrix, axis=axis)
    return reduced


def faithfulness(ac: BoolArray) -> Value:
    """The share of the answer's claims that a context supports; 0 without contexts.

    >>> faithfulness(np.array([[True, False], [False, False]])), faithfulness(np.empty((0, 2), bool)).value
    (0.5, 'no_claims')
    """
    return share(any_of(ac, axis=1)) if len(ac) else Undefined.NO_CLAIMS


def hallucination(ac: BoolArray, ag: BoolArray) -> Value:
    """The share of the answer's claims that neither a context nor the reference supports.

    >>> hallucination(np.array([[True], [False], [False]]), np.array([False, False, True]))
    0.3333333333333333
    """
    return share(~any_of(ac, axis=1) & ~ag) if len(ac) else Undefined.NO_CLAIMS


def self_knowledge(ac: BoolArray, ag: BoolArray) -> Value:
    """The share of the answer's claims that the reference supports and no context does.

    >>> self_knowledge(np.array([[True], [False], [False]]), np.array([True, False, True]))
    0.3333333333333333
    """
    return share(~any_of(ac, axis=1) & ag) if len(ac) else Undefined.NO_CLAIMS


def noise_sensitivity(ac: BoolArray, gc: BoolArray, ag: BoolArray, relevant: bool) -> Value:
    """The share of the answer's claims that are wrong and come from a context.

    A claim is wrong if the reference does not support it. It comes from the relevant contexts if one of them supports
    it, and from the irrelevant ones if only irrelevant ones do.

    Args:
        ac: contexts support claims of the answer.
        gc: contexts support claims of the reference; a context is relevant if it supports any.
        ag: the reference supports claims of the answer.
        relevant: count claims from the relevant contexts; False counts those from the irrelevant ones.

    >>> ac, gc, ag = np.array([[True, True], [False, True]]), np.array([[True, False]]), np.array([False, False])
    >>> noise_sensitivity(ac, gc, ag, relevant=True), noise_sensitivity(ac, gc, ag, relevant=False)
    (0.5, 0.5)
    """
    if not len(ac):
        return Undefined.NO_CLAIMS
    if not ac.shape[1]:
        return Undefined.NO_CONTEXTS
    useful = any_of(gc, axis=0)
    from_relevant, from_others = any_of(ac[:, useful], axis=1), any_of(ac[:, ~useful], axis=1)
    return share((from_relevant if relevant else from_others & ~from_relevant) & ~ag)


def claim_precision(ag: BoolArray) -> Value:
    """The share of the answer's claims that the reference supports."""
    return share(ag) if len(ag) else Undefined.NO_CLAIMS


def claim_recall(ga: BoolArray) -> Value:
    """The share of the reference's claims that the answer supports; 0 for an answer without claims."""
    return share(ga) if len(ga) else Undefined.NO_REFERENCE_CLAIMS


def claim_f1(ag: BoolArray, ga: BoolArray, kind: AnswerKind | None = None, answerable: bool | None = None) -> Value:
    """The harmonic mean of the precision and the recall of claims; 0 if either is 0.

    Args:
        ag: the reference supports claims of the answer.
        ga: the answer supports claims of the reference.
        kind: the kind of the answer; used only if it has no claims.
        answerable: whether the corpus holds an answer; if it does not, a refusal is right. None if this is unknown: a
            reference with claims then counts as an answer.

    >>> claim_f1(np.array([True, False]), np.array([True, True])), claim_f1(np.zeros(0, bool), np.array([True]))
    (0.6666666666666666, 0.0)
    """
    if not len(ag):
        return without_claims(ga, kind, answerable)
    if not len(ga):
        return Undefined.NO_REFERENCE_CLAIMS
    precision, recall = share(ag), share(ga)
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def without_claims(ga: BoolArray, kind: AnswerKind | None, answerable: bool | None) -> Value:
    """Score of an answer without claims: 1 for a correct refusal, else 0; a reference with claims can be answered."""
    if answerable is False:
        return 1.0 if kind is AnswerKind.REFUSED else Undefined.NO_CLAIMS
    return 0.0 if len(ga) else Undefined.NO_REFERENCE_CLAIMS


def context_recall(gc: BoolArray) -> Value:
    """The share of the reference's claims that a context supports; 0 without contexts.

    >>> context_recall(np.array([[True, False], [False, False], [True, True]]))
    0.6666666666666666
    """
    return share(any_of(gc, axis=1)) if len(gc) else Undefined.NO_REFERENCE_CLAIMS


def context_precision(gc: BoolArray) -> Value:
    """The share of the contexts that support a claim of the reference; 0 without contexts.

    >>> context_precision(np.array([[True, False], [False, False], [True, True]]))
    1.0
    """
    if not gc.shape[1]:
        return 0.0
    return share(any_of(gc, axis=0)) if len(gc) else Undefined.NO_REFERENCE_CLAIMS


def context_utilization(gc: BoolArray, ga: BoolArray) -> Value:
    """The share of the reference's claims supported by a context that the answer supports, too."""
    supported = any_of(gc, axis=1)
    if not len(gc):
        return Undefined.NO_REFERENCE_CLAIMS
    return share(ga[supported]) if supported.any() else Undefined.REFERENCE_NOT_IN_CONTEXTS


def average_precision(useful: BoolArray) -> float:
    """Average precision over the useful contexts that were retrieved; 0 if no context is useful.

    Not the average precision of retrieval: a useful context that was not retrieved costs nothing.

    Args:
        useful: bool[k], best first.

    >>> average_precision(np.array([True, False, True])), average_precision(np.zeros(2, bool))
    (0.8333333333333333, 0.0)
    """
    ranks = np.flatnonzero(useful) + 1
    return math.fsum((np.arange(1, len(ranks) + 1) / ranks).tolist()) / len(ranks) if len(ranks) else 0.0


def context_ap(gc: BoolArray) -> Value:
    """Average precision of contexts, useful if they support a claim of the reference; 0 without contexts."""
    return average_precision(any_of(gc, axis=0)) if len(gc) or not gc.shape[1] else Undefined.NO_REFERENCE_CLAIMS


def context_rr(gc: BoolArray) -> Value:
    """The reciprocal rank of the first context that supports a claim of the reference; 0 if none does.

    >>> context_rr(np.array([[False, True, True], [False, False, True]]))
    0.5
    """
    if not len(gc) and gc.shape[1]:
        return Undefined.NO_REFERENCE_CLAIMS
    ranks = np.flatnonzero(any_of(gc, axis=0)) + 1
    return 1.0 / int(ranks[0]) if len(ranks) else 0.0


def context_ap_of_grades(grades: IntArray) -> Value:
    """Average precision of contexts, useful from a grade of 2 on; 0 without contexts."""
    return average_precision(grades >= USEFUL_GRADE)


def context_ap_of_answer(ac: BoolArray) -> Value:
    """Average precision of contexts, useful if they support a claim of the answer; 0 without contexts."""
    return average_precision(any_of(ac, axis=0)) if len(ac) or not ac.shape[1] else Undefined.NO_CLAIMS


def context_relevance(grades: IntArray) -> Value:
    """The mean grade of the contexts, as a share of the highest; 0 without contexts.

    >>> context_relevance(np.array([3, 0, 3, 0])), context_relevance(np.zeros(0, np.int64))
    (0.5, 0.0)
    """
    return int(grades.sum()) / (HIGHEST_GRADE * len(grades)) if len(grades) else 0.0


def exact_mean(values: Sequence[float]) -> float:
    """The mean, rounded once: of equal values it is their value, however many there are.

    Args:
        values: at least one finite number.

    >>> exact_mean([0.7, 0.7, 0.7]), math.fsum([0.7, 0.7, 0.7]) / 3
    (0.7, 0.6999999999999998)
    """
    return float(values[0] if len(values) == 1 else sum(map(Fraction, values)) / len(values))


def criterion_value(levels: FloatArray | Undefined) -> Value:
    """The mean value of the verdicts on a criterion.

    Args:
        levels: float[statements, contexts] (a missing axis has length 1) or float[pairs], each from -1 to 1; or the
            reason why there is no verdict.

    >>> criterion_value(np.array([[1.0, 0.5]])), criterion_value(Undefined.NO_ANSWER)
    (0.75, <Undefined.NO_ANSWER: 'no_answer'>)
    """
    return levels if isinstance(levels, Undefined) else exact_mean(levels.ravel().tolist())


def answer_relevance(relevance: int) -> Value:
    """The answer's relevance to its question, as a share of the highest grade."""
    return relevance / HIGHEST_GRADE


def citation_precision(ac: BoolArray, cited: BoolArray, invented: int) -> Value:
    """The share of cited contexts that support a claim of the answer; invented ones do not.

    After "citation precision" of Gao et al., EMNLP 2023, over contexts rather than over pairs of sentence and context.

    Args:
        ac: contexts support claims of the answer.
        cited: bool[k], the answer cites the context.
        invented: number of cited contexts that the answer did not receive.

    >>> [citation_precision(np.array([[True, False, True]]), np.array([True, True, False]), n) for n in (0, 2)]
    [0.5, 0.25]
    """
    if not len(ac):
        return Undefined.NO_CLAIMS
    if not cited.any() and not invented:
        return Undefined.NO_CITATIONS
    return share(np.append(any_of(ac[:, cited], axis=0), np.zeros(invented, bool)))


def citation_recall(ac: BoolArray, cited: BoolArray) -> Value:
    """The share of the answer's claims that a cited context supports.

    >>> citation_recall(np.array([[True, False], [False, True]]), np.array([True, False]))
    0.5
    """
    return share(any_of(ac[:, cited], axis=1)) if len(ac) else Undefined.NO_CLAIMS


def nugget_score(assigned: Sequence[NuggetAssignment], vital: BoolArray, only_vital: bool, strict: bool) -> Value:
    """The mean degree to which the answer contains the nuggets: nuggetizer's scores (Pradeep et al., 2024).

    Args:
        assigned: degree to which the answer contains each nugget.
        vital: bool, whether a nugget must be in a good answer.
        only_vital: the mean is over vital nuggets.
        strict: a partly contained nugget counts 0, not a half.

    >>> assigned, vital = list(map(NuggetAssignment, ("support", "partial", "none"))), np.array([True, True, False])
    >>> nugget_score(assigned, vital, only_vital=True, strict=False), nugget_score(assigned, vital, True, strict=True)
    (0.75, 0.5)
    """
    if not assigned:
        return Undefined.NO_NUGGETS
    counted = [degree for degree, is_vital in zip(assigned, vital, strict=True) if is_vital or not only_vital]
    if not counted:
        return Undefined.NO_VITAL_NUGGETS
    halves = counted.count(NuggetAssignment.PARTIAL) * (not strict)
    return (2 * counted.count(NuggetAssignment.SUPPORT) + halves) / (2 * len(counted))
