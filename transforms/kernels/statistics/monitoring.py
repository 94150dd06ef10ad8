"""Intervals that hold at every night at once, so that looking every night raises no false alarms.

An asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory
and asymptotic confidence sequences", Annals of Statistics 2024) around the mean of t independent nightly estimates with
standard errors s_1 … s_t holds the true mean at all t with a probability of about 1 - alpha. Its half width is

    √(2 (V ρ² + 1) / (t² ρ²) · ln(√(V ρ² + 1) / alpha)),    V = Σ s_i²,    ρ² = (-2 ln alpha + ln(1 - 2 ln alpha)) / V*,

where V* is the V at which it is narrowest; it is fixed beforehand, at that of ten nights.

A sequence over all history is slow to see a change, so another one begins each night k, with
alpha_k = 6 alpha / (π² k²). The sum of all alpha_k is at most alpha. After 90 nights everything begins again, with a
fresh alpha.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

QUARTER = 90  # nights after which all sequences end and new ones begin
_NARROWEST = 10


@dataclass(frozen=True)
class ConfidenceSequence:
    """The interval of one sequence after the last night."""

    first: int  # position of its first night
    nights: int  # number of its nights t
    mean: float  # mean of their estimates
    low: float
    high: float


def half_width(nights: int, variance: float, narrowest: float, alpha: float) -> float:
    """The half width of a confidence sequence.

    Args:
        nights: number of nights t, at least 1.
        variance: sum of the squared standard errors V.
        narrowest: the variance V* at which the sequence is narrowest, above 0.
        alpha: probability that the interval ever misses the true mean.

    >>> round(half_width(10, 10 * 0.0177**2, 10 * 0.0177**2, 0.05), 5)
    0.01699
    """
    rho = (-2.0 * math.log(alpha) + math.log(1.0 - 2.0 * math.log(alpha))) / narrowest
    grown = variance * rho + 1.0
    return math.sqrt(2.0 * grown / (nights**2 * rho) * math.log(math.sqrt(grown) / alpha))


def running_sequences(
    means: Sequence[float],
    errors: Sequence[float],
    alpha: float = 0.05,
    scale: float | None = None,
    reference: float = 0.0,
) -> list[ConfidenceSequence]:
    """The sequences that are alive after the last night, the oldest first.

    Args:
        means: estimate of each night, from independent queries.
        errors: standard errors of the estimates, above 0.
        alpha: probability of a false alarm within a quarter.
        scale: standard error of a typical night, known beforehand; by default that of each sequence's first night.
        reference: half width of the interval of the level that `means` are relative to; 0 for a known level. All
            nights share its error, so it is added to each half width as squares are (Zou and Donner, "Construction of
            confidence limits about effect measures", Statistics in Medicine 2008).

    Returns:
        One sequence per night of the current quarter; none without nights.
    """
    count = len(means)
    start = (count - 1) // QUARTER * QUARTER if count else 0
    sequences: list[ConfidenceSequence] = []
    total = variance = 0.0
    for first in range(count - 1, start - 1, -1):  # so that sums grow by one night for each sequence
        total, variance = total + means[first], variance + errors[first] ** 2
        nights, number = count - first, first - start + 1
        narrowest = _NARROWEST * (scale or errors[first]) ** 2
        width = half_width(nights, variance, narrowest, 6.0 * alpha / (math.pi * number) ** 2)
        width, mean = math.hypot(width, reference), total / nights
        sequences.append(ConfidenceSequence(first, nights, mean, mean - width, mean + width))
    return sequences[::-1]
