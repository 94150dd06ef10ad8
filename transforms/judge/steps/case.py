"""Arguments of formulas that no step is asked for: an answer's text and citations, and the reference answer."""

from collections.abc import Mapping

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.overlap import without_citations
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgedInput, Need


def _cited(case: JudgedCase) -> BoolArray:
    cited = np.zeros(len(case.contexts), bool)
    cited[list(case.cited)] = True
    return cited


def _answer_text(case: JudgedCase) -> str:
    """Return the answer without its citations; nothing where no model was asked, since nothing was retrieved."""
    return without_citations(case.answer or "")


def _samples(case: JudgedCase) -> list[str]:
    """Return the answer and the other samples without their citations."""
    return [_answer_text(case), *map(without_citations, case.others)]


_NEEDS = frozenset({Need.ANSWER, Need.CONTEXTS})
_TEXTS = frozenset({Need.ANSWER, Need.REFERENCE})
_SAMPLES = frozenset({Need.ANSWER, Need.SAMPLES})

OF_CASE: Mapping[str, JudgedInput] = {
    "cited": JudgedInput(_cited, needs=_NEEDS),
    "invented": JudgedInput(lambda case: case.invented, needs=_NEEDS),
    "answer": JudgedInput(_answer_text, needs=_TEXTS),
    "samples": JudgedInput(_samples, needs=_SAMPLES),
    "reference": JudgedInput(lambda case: case.gold.reference, needs=_TEXTS),
}
"""`cited` is bool[contexts], `invented` the number of cited contexts that do not exist."""
