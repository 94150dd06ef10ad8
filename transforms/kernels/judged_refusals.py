"""Metrics of answers that refuse, as functions of what a judge said: a value, or the reason why there is none."""

from rankbeam.transforms.kernels.judged import AnswerKind, Undefined, Value


def refused(kind: AnswerKind) -> Value:
    """Whether the answer is a refusal."""
    return float(kind is AnswerKind.REFUSED)


def refusal_precision(kind: AnswerKind, answerable: bool | None) -> Value:
    """Of a refusal, whether the question has no answer: the mean over queries is the precision of refusing.

    >>> refusal_precision(AnswerKind.REFUSED, False), refusal_precision(AnswerKind.ANSWERED, False).value
    (1.0, 'not_refused')
    """
    if answerable is None:
        return Undefined.ANSWERABLE_UNKNOWN
    return float(not answerable) if kind is AnswerKind.REFUSED else Undefined.NOT_REFUSED


def refusal_recall(kind: AnswerKind, answerable: bool | None) -> Value:
    """Of a question without an answer, whether it was refused: the mean over queries is the recall of refusing."""
    if answerable is None:
        return Undefined.ANSWERABLE_UNKNOWN
    return Undefined.ANSWERABLE if answerable else refused(kind)
