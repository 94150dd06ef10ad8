"""Formulas of other packages: their values are checked, their exceptions named, and their arguments protected."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedError
from rankbeam.transforms.judge.definitions import JudgedDefinition
from rankbeam.transforms.judge.definitions import _checked_kernel as judged
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.kernels.ranking.hits import EXAMPLE
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.records.chunking import Chunker
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.definitions import MetricDefinition
from rankbeam.transforms.records.metrics.definitions import _checked_kernel as ranked

WHAT = "rankbeam.judged 'Own' of the package own"
NOT_A_NUMBER = r"returned {}, which is not a number from 0 to 1, nor an Undefined"


@pytest.mark.parametrize("value", [1, True, 0.25, np.float32(0.25), np.float64(0.25), np.int64(1), np.bool_(True)])
def test_every_number_is_a_value(value: Any) -> None:
    result = judged(WHAT, JudgedDefinition(lambda: value))()
    assert (type(result), result) == (float, float(value))


def test_a_reason_stays_one() -> None:
    assert judged(WHAT, JudgedDefinition(lambda: Undefined.NO_CLAIMS))() is Undefined.NO_CLAIMS


@pytest.mark.parametrize("value", [None, "x", 1.5, -0.5, float("nan"), np.array([0.5]), iter([0.5])])
def test_what_is_no_value_is_refused_with_the_package(value: Any) -> None:
    with pytest.raises(InputError) as refused:
        judged(WHAT, JudgedDefinition(lambda: value))()
    assert str(refused.value) == f"{WHAT} {NOT_A_NUMBER.format(repr(value))}"


def test_without_a_highest_value_infinity_is_refused() -> None:
    formula = judged(WHAT, JudgedDefinition(lambda value: value, lowest=-1.0, highest=None))
    assert formula(value=1e6) == 1e6
    with pytest.raises(InputError, match="returned inf, which is not a number -1 or more"):
        formula(value=float("inf"))


def changing(a: Assessment) -> Any:
    a.hit_rank[:] = 1
    return np.zeros(a.queries)


def clearing(grades: Any) -> float:
    grades[:] = 0
    return 1.0


def failing(*_: Any, **__: Any) -> float:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        (lambda: ranked(WHAT, MetricDefinition(changing))(EXAMPLE), "ValueError: assignment destination is read-only"),
        (lambda: ranked(WHAT, MetricDefinition(failing))(EXAMPLE), "KeyError: 'x'"),
        (
            lambda: judged(WHAT, JudgedDefinition(clearing))(grades=np.ones(2)),
            "ValueError: assignment destination is read-only",
        ),
        (lambda: judged(WHAT, JudgedDefinition(failing))(grades=np.ones(2)), "KeyError: 'x'"),
    ],
)
def test_exceptions_name_the_package_and_the_line(formula: Callable[[], Any], problem: str) -> None:
    with pytest.raises(InputError, match=rf"^{WHAT} failed: {problem} \(.*test_kernels_of_plug_ins.py, line \d+\)"):
        formula()


@dataclass(frozen=True)
class Failing(Chunker):
    def spans(self, text: str) -> Any:  # noqa: ARG002
        yield failing()


def test_a_chunker_that_fails_is_named() -> None:
    with pytest.raises(InputError, match=rf"^{__name__}\.Failing\.spans failed: KeyError: 'x' \(.*, line \d+\)"):
        Failing().checked_spans("text")


def test_unexpected_errors_of_another_package_are_reported_to_its_authors() -> None:
    advice = []
    for call in (failing, lambda: Failing().checked_spans(3)):  # type: ignore[arg-type]
        try:
            call()
        except (KeyError, InputError) as error:
            advice.append(UnexpectedError(error).advice)
    assert advice == ["please report it to the authors of that module, with", "please report it, with"]
