"""Metrics of answers that refuse, as functions of a judge's verdicts: a value, or the reason why there is none."""

import re
from collections.abc import Sequence

from rankbeam.transforms.kernels.judged import AnswerKind, Undefined, Value
from rankbeam.transforms.kernels.sentences import sentences

_REFUSAL = re.compile(
    r"\b(?:do(?:es)? not (?:say|know|contain|mention|state)|don't know|"
    r"(?:can|could)(?:not|'t| not) (?:answer|find|help)|"
    r"no (?:information|answer)|not (?:mentioned|stated|provided)|unable to (?:answer|find))",
    re.IGNORECASE,
)


def has_words_of_refusal(text: str) -> bool:
    """Return whether a text has English words of a refusal.

    >>> has_words_of_refusal("The documents do not say."), has_words_of_refusal("Owners pay.")
    (True, False)
    """
    return _REFUSAL.search(text) is not None


def reads_as_refusal(text: str) -> bool:
    """Return whether every sentence of a text has words of a refusal.

    >>> reads_as_refusal("The documents do not say."), reads_as_refusal("Owners pay. Prices are not stated.")
    (True, False)
    """
    return all(has_words_of_refusal(text[start:end]) for start, end in sentences(text))


def kind_consistency(samples: Sequence[str]) -> Value:
    """Share of the other sampled answers that are of the first one's kind: refusals, by their words, or answers.

    The mean over all samples is the share of pairs of the same kind.

    Args:
        samples: texts of all answers to one query, the one that is scored first.

    >>> kind_consistency(["In May.", "In June.", "The documents do not say."]), kind_consistency(["In May."])
    (0.5, <Undefined.ONE_SAMPLE: 'one_sample'>)
    """
    first, *others = map(reads_as_refusal, samples)
    return sum(other is first for other in others) / len(others) if others else Undefined.ONE_SAMPLE


def refused(kind: AnswerKind) -> Value:
    """Return whether the answer is a refusal."""
    return float(kind is AnswerKind.REFUSED)


def refusal_precision(kind: AnswerKind, answerable: bool | None) -> Value:
    """1 if a refused question has no answer, otherwise 0: the mean over queries is the precision of refusing.

    >>> refusal_precision(AnswerKind.REFUSED, False), refusal_precision(AnswerKind.ANSWERED, False).value
    (1.0, 'not_refused')
    """
    if answerable is None:
        return Undefined.ANSWERABLE_UNKNOWN
    return float(not answerable) if kind is AnswerKind.REFUSED else Undefined.NOT_REFUSED


def refusal_recall(kind: AnswerKind, answerable: bool | None) -> Value:
    """1 if a question without an answer was refused, otherwise 0: the mean over queries is the recall of refusing."""
    if answerable is None:
        return Undefined.ANSWERABLE_UNKNOWN
    return Undefined.ANSWERABLE if answerable else refused(kind)
