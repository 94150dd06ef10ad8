"""Arguments of formulas that no step is asked for: which contexts an answer cites."""

from collections.abc import Mapping

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.records.judge_steps import JudgedCase, JudgedInput, Need


def _cited(case: JudgedCase) -> BoolArray:
    cited = np.zeros(len(case.contexts), bool)
    cited[list(case.cited)] = True
    return cited


_NEEDS = frozenset({Need.ANSWER, Need.CONTEXTS})

CITATIONS: Mapping[str, JudgedInput] = {
    "cited": JudgedInput(_cited, needs=_NEEDS),
    "invented": JudgedInput(lambda case: case.invented, needs=_NEEDS),
}
"""`cited` is bool[contexts], `invented` the number of cited contexts that do not exist."""
