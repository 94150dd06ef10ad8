"""Claim matrices for tests, and the metrics of them in plain Python, written from the definitions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rankbeam.transforms.kernels.arrays import BoolArray


@dataclass(frozen=True)
class Matrices:
    """A judge's verdicts on one answer."""

    ac: BoolArray
    gc: BoolArray
    ag: BoolArray
    ga: BoolArray

    @property
    def contexts(self) -> int:
        return int(self.ac.shape[1])


def matrices_of(claims: int, reference: int, contexts: int, bits: Any) -> Matrices:
    """Matrices of those sizes.

    Args:
        claims: number of the answer's claims.
        reference: number of the reference's claims.
        contexts: number of contexts.
        bits: gives the next truth value.
    """
    drawn = lambda *shape: np.array([bits() for _ in range(int(np.prod(shape)))], bool).reshape(shape)  # noqa: E731
    return Matrices(drawn(claims, contexts), drawn(reference, contexts), drawn(claims), drawn(reference))


@st.composite
def matrices(draw: st.DrawFn, least_claims: int = 0, least_contexts: int = 0) -> Matrices:
    """Small matrices, empty ones among them."""
    claims, reference = draw(st.integers(least_claims, 4)), draw(st.integers(0, 4))
    contexts = draw(st.integers(least_contexts, 4))
    size = (claims + reference) * (contexts + 1)
    bits = iter(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    return matrices_of(claims, reference, contexts, lambda: next(bits))


def plain(m: Matrices) -> dict[str, float | None]:
    """Every metric of claims by its definition, one claim and one context at a time; None where it is undefined."""
    n, reference, k = len(m.ag), len(m.ga), m.contexts
    values: dict[str, float | None] = {}
    faithful = [any(m.ac[i][c] for c in range(k)) for i in range(n)]
    relevant = [any(m.gc[j][c] for j in range(reference)) for c in range(k)]
    covered = [any(m.gc[j][c] for c in range(k)) for j in range(reference)]

    def mean(flags: list[bool], defined: bool = True) -> float | None:
        return sum(map(bool, flags)) / len(flags) if flags and defined else None

    def noisy(i: int, kind: bool) -> bool:
        return any(m.ac[i][c] and relevant[c] == kind for c in range(k))

    values["faithfulness"] = mean(faithful)
    values["hallucination"] = mean([not faithful[i] and not m.ag[i] for i in range(n)])
    values["self_knowledge"] = mean([not faithful[i] and m.ag[i] for i in range(n)])
    values["noise_relevant"] = mean([noisy(i, True) and not m.ag[i] for i in range(n)], k > 0)
    values["noise_irrelevant"] = mean([noisy(i, False) and not noisy(i, True) and not m.ag[i] for i in range(n)], k > 0)
    precision = values["claim_precision"] = mean(list(m.ag))
    recall = values["claim_recall"] = mean(list(m.ga))
    values["claim_f1"] = None
    if reference and precision is not None and recall is not None:
        values["claim_f1"] = 0.0 if precision * recall == 0 else 2 / (1 / precision + 1 / recall)
    elif reference:
        values["claim_f1"] = 0.0
    values["context_recall"] = mean(covered)
    values["context_precision"] = mean(relevant, reference > 0) if k else 0.0
    used = [bool(m.ga[j]) for j in range(reference) if covered[j]]
    values["context_utilization"] = mean(used)
    at = [sum(relevant[: c + 1]) / (c + 1) for c in range(k) if relevant[c]]
    first = next((c + 1 for c in range(k) if relevant[c]), None)
    values["context_rr"] = None if k and not reference else 1 / first if first else 0.0
    values["context_ap"] = None if k and not reference else sum(at) / len(at) if at else 0.0
    return values
