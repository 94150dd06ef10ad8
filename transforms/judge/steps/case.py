"""Arguments of formulas that no step is asked for: an answer's text, citations and steps, and the reference."""

from collections.abc import Mapping

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.overlap import without_citations
from rankbeam.transforms.kernels.trajectories import ToolCall
from rankbeam.transforms.records.judging.answers import Answer
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgedInput, Need
from rankbeam.transforms.records.reply import NO_TOKENS
from rankbeam.transforms.records.trajectories import AgentSteps


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


def _calls(steps: AgentSteps | None) -> list[ToolCall]:
    return [step.call for step in steps or ()]


def _outcome(case: JudgedCase) -> Answer:
    assert case.outcome is not None  # noqa: S101  metrics of answers alone ask for it
    return case.outcome


def _retrievals(case: JudgedCase) -> int:
    return sum(step.doc_ids is not None for step in _outcome(case).steps or ())


def _tokens(case: JudgedCase, name: str) -> int | None:
    """Tokens of the answer; None if there is one whose tokens nobody says."""
    outcome = _outcome(case)
    count: int = getattr(outcome.tokens, name)
    return None if outcome.tokens == NO_TOKENS and outcome.text is not None else count


_NEEDS = frozenset({Need.ANSWER, Need.CONTEXTS})
_TEXTS = frozenset({Need.ANSWER, Need.REFERENCE})
_SAMPLES = frozenset({Need.ANSWER, Need.SAMPLES})
_ANSWER, _STEPS = frozenset({Need.ANSWER}), frozenset({Need.ANSWER, Need.STEPS})
_EXPECTED = frozenset({Need.ANSWER, Need.EXPECTED_STEPS})

OF_CASE: Mapping[str, JudgedInput] = {
    "cited": JudgedInput(_cited, needs=_NEEDS),
    "invented": JudgedInput(lambda case: case.invented, needs=_NEEDS),
    "answer": JudgedInput(_answer_text, needs=_TEXTS),
    "samples": JudgedInput(_samples, needs=_SAMPLES),
    "reference": JudgedInput(lambda case: case.gold.reference, needs=_TEXTS),
    "calls": JudgedInput(lambda case: _calls(_outcome(case).steps), needs=_STEPS),
    "expected_calls": JudgedInput(lambda case: _calls(case.gold.expected_steps), needs=_EXPECTED),
    "retrieving_calls": JudgedInput(_retrievals, needs=_STEPS),
    "input_tokens": JudgedInput(lambda case: _tokens(case, "input"), needs=_ANSWER),
    "output_tokens": JudgedInput(lambda case: _tokens(case, "output"), needs=_ANSWER),
    "cost": JudgedInput(lambda case: _outcome(case).cost, needs=_ANSWER),
    "seconds": JudgedInput(lambda case: _outcome(case).seconds, needs=_ANSWER),
}
"""`cited` is bool[contexts], `invented` the number of cited contexts that do not exist."""
