"""Judged metrics as ragas 0.4 defines them, for comparison with the figures of earlier work.

If ragas has no number (NaN), there is a reason here; if it makes one up from an incomplete answer, there is none here.
"""

import math
from collections.abc import Sequence

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray
from rankbeam.transforms.kernels.judged import AnswerKind, Undefined, Value, share, without_claims

_FACTS, _LIKENESS = 0.75, 0.25


def faithfulness(statements: BoolArray) -> Value:
    """The share of the answer's statements that its contexts, seen together, support; 0 without contexts.

    Args:
        statements: bool[n], the contexts support it.

    >>> faithfulness(np.array([True, True, False, True])), faithfulness(np.zeros(0, bool)).value
    (0.75, 'no_statements')
    """
    return share(statements) if len(statements) else Undefined.NO_STATEMENTS


def context_relevance(extracted: BoolArray) -> Value:
    """The share of the sentences of all contexts that are needed for an answer (Es et al., EACL 2024); 0 without any.

    Args:
        extracted: bool[n], the sentence is needed.

    >>> context_relevance(np.array([True, False, False, False])), context_relevance(np.zeros(0, bool))
    (0.25, 0.0)
    """
    return share(extracted) if len(extracted) else 0.0


def context_recall(attributed: BoolArray) -> Value:
    """The share of the reference's sentences that the contexts, seen together, support; 0 without contexts.

    Args:
        attributed: bool[n], the contexts support it.

    >>> context_recall(np.array([True, False])), context_recall(np.zeros(0, bool)).value
    (0.5, 'no_reference_sentences')
    """
    return share(attributed) if len(attributed) else Undefined.NO_REFERENCE_SENTENCES


def answer_relevance(cosines: Sequence[Value], noncommittal: BoolArray) -> Value:
    """The mean cosine between the question and those generated from the answer; 0 if all are noncommittal.

    Args:
        cosines: cosine of the question and each generated one, at least one.
        noncommittal: bool, the generated question comes from an answer that evades it.

    >>> answer_relevance([0.5, 1.0], np.array([False, True])), answer_relevance([0.5, 1.0], np.array([True, True]))
    (0.75, 0.0)
    """
    if noncommittal.all():
        return 0.0
    numbers = [cosine for cosine in cosines if not isinstance(cosine, Undefined)]
    return math.fsum(numbers) / len(numbers) if len(numbers) == len(cosines) else Undefined.NO_DIRECTION


def answer_correctness(
    ag: BoolArray, ga: BoolArray, similarity: Value, kind: AnswerKind | None = None, answerable: bool | None = None
) -> Value:
    """0.75 · F1 of claims + 0.25 · likeness of the texts.

    F1 = TP / (TP + (FP + FN) / 2). TP and FP are claims of the answer that the reference supports or does not, FN
    claims of the reference that the answer does not support: that mixes the units of two sets, as ragas does.

    Args:
        ag: the reference supports claims of the answer.
        ga: the answer supports claims of the reference.
        similarity: cosine of the two texts' embeddings.
        kind: the kind of the answer; used only if it has no claims.
        answerable: whether the corpus holds an answer; None if this is unknown.

    >>> answer_correctness(np.array([True, False]), np.array([True, False]), 0.5)
    0.5
    """
    if not len(ag):
        return without_claims(ga, kind, answerable)
    if not len(ga):
        return Undefined.NO_REFERENCE_CLAIMS
    if isinstance(similarity, Undefined):
        return similarity
    right = int(np.count_nonzero(ag))
    wrong = len(ag) - right + int(np.count_nonzero(~ga))
    return _FACTS * (right / (right + 0.5 * wrong)) + _LIKENESS * similarity


def answer_similarity(similarity: Value) -> Value:
    """The cosine of the embeddings of the answer and of the reference, from -1 to 1."""
    return similarity


def cosine(a: FloatArray, b: FloatArray) -> Value:
    """The cosine of two vectors, from -1 to 1; undefined if one of them is zero.

    Args:
        a: float64[n].
        b: float64[n].

    >>> cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])), cosine(np.zeros(2), np.ones(2)).value
    (0.96, 'no_direction')
    """
    # Scaled first: squares of very large or very small components would leave the range of doubles.
    largest = float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0))
    if not all(largest):
        return Undefined.NO_DIRECTION
    x, y = (a / largest[0]).tolist(), (b / largest[1]).tolist()
    product = math.fsum(p * q for p, q in zip(x, y, strict=True))
    value = product / (math.sqrt(math.fsum(p * p for p in x)) * math.sqrt(math.fsum(q * q for q in y)))
    return max(-1.0, min(1.0, value))
