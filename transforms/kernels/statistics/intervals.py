"""Quantiles of Student's t and of the beta distribution, and the intervals of a mean and of a share drawn from them."""

import functools
import math
from statistics import NormalDist

_STEPS_ENOUGH = 200
_NEARLY_NORMAL = 10**6  # degrees of freedom from which the logarithm of the beta function has too few digits


@functools.lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees: float) -> float:
    """The quantile of Student's t distribution.

    Found by Newton's method on the logarithm of its tail, the regularised incomplete beta function (Abramowitz and
    Stegun 26.7.1), inside a shrinking bracket, to the last bits of a double.

    Args:
        probability: between 0 and 1, both excluded.
        degrees: degrees of freedom, at least 1.

    Raises:
        ValueError: an argument is out of its range.

    >>> round(student_t_quantile(0.975, 9), 6)
    2.262157
    """
    if not 0.0 < probability < 1.0 or degrees < 1:
        raise ValueError(f"no quantile of Student's t at probability {probability} with {degrees} degrees of freedom")
    if probability == 0.5:
        return 0.0
    tail = min(probability, 1.0 - probability)
    if degrees >= _NEARLY_NORMAL:
        return math.copysign(_near_normal(-NormalDist().inv_cdf(tail), degrees), probability - 0.5)
    log_factor = 0.5 * math.log(degrees) + _log_beta(degrees / 2.0, 0.5)
    low, high = 0.0, math.inf
    t = -NormalDist().inv_cdf(tail)  # below the quantile, as the tails of Student's t are heavier
    for _ in range(_STEPS_ENOUGH):
        here = student_t_tail(t, degrees)
        low, high = (t, high) if here > tail else (low, t)
        density = math.exp(-0.5 * (degrees + 1.0) * math.log1p(t * t / degrees) - log_factor)
        following = t + math.log(here / tail) * here / density if here and density else math.inf
        if not low <= following <= high:
            following = 2.0 * t if math.isinf(high) else (low + high) / 2.0
        if abs(following - t) <= 1e-14 * t:
            break
        t = following
    return math.copysign(t, probability - 0.5)


def _near_normal(z: float, degrees: float) -> float:
    """The first terms of Fisher's expansion (Abramowitz and Stegun 26.7.5) of the quantile, from the normal one, z."""
    first, second = (z**3 + z) / 4.0, (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    return z + first / degrees + second / degrees**2


def student_interval(mean: float, standard_error: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """The classical interval of a mean: mean ± t(n - 1) · standard error.

    Args:
        mean: sample mean.
        standard_error: standard error of the mean; NaN gives an unknown interval.
        count: sample size n.
        confidence: share of samples whose interval covers the true mean.

    Returns:
        Lower and upper end; NaN, NaN for fewer than two values.

    >>> student_interval(0.5, 0.0, 10)
    (0.5, 0.5)
    """
    if count < 2 or math.isnan(standard_error):
        return math.nan, math.nan
    half_width = student_t_quantile(0.5 + confidence / 2.0, count - 1) * standard_error
    return mean - half_width, mean + half_width


def student_p_value(mean: float, standard_error: float, count: float) -> float:
    """Two-sided p-value of Student's t test that the true mean is 0.

    Args:
        mean: sample mean; of paired differences, for the paired test.
        standard_error: standard error of the mean.
        count: sample size n.

    Returns:
        Between 0 and 1; NaN for fewer than two values. Without any spread it is 1 at a mean of 0, else 0.

    >>> round(student_p_value(2.262157, 1.0, 10), 6)
    0.05
    """
    if count < 2 or math.isnan(standard_error):
        return math.nan
    if standard_error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return 2.0 * student_t_tail(abs(mean / standard_error), count - 1)


def student_t_tail(t: float, degrees: float) -> float:
    """P(T ≥ t) for t ≥ 0; accurate however small it is.

    >>> round(student_t_tail(2.262157, 9), 6)
    0.025
    """
    x = degrees / (degrees + t * t)
    return 0.5 * incomplete_beta(degrees / 2.0, 0.5, x, t * t / (degrees + t * t))


def share_interval(successes: int, count: int, tail: float = 0.025) -> tuple[float, float]:
    """The exact interval of a share: Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934.

    Its ends are quantiles of beta distributions: `tail` with k and n - k + 1, and 1 - `tail` with k + 1 and n - k. It
    holds the true share at least as often as it says, for any n and any share; Wilson's does not.

    Args:
        successes: k of the queries.
        count: number of queries n, at least 1.
        tail: probability that the share is below the interval, and that it is above.

    Returns:
        Lower and upper end; 0 without a success, 1 without a failure.

    >>> [round(end, 4) for end in share_interval(30, 30)]
    [0.8843, 1.0]
    """
    low = _beta_quantile(tail, successes, count - successes + 1) if successes else 0.0
    high = 1.0 - _beta_quantile(tail, count - successes, successes + 1) if successes < count else 1.0
    return low, high


@functools.lru_cache(maxsize=4096)
def _beta_quantile(probability: float, a: int, b: int) -> float:
    """The x at which I_x(a, b) equals the probability: Newton's method on the logarithm, inside a shrinking bracket."""
    if a == 1:
        return -math.expm1(math.log1p(-probability) / b)
    if b == 1:
        return math.exp(math.log(probability) / a)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(_STEPS_ENOUGH):
        here = incomplete_beta(a, b, x, 1.0 - x)
        low, high = (low, x) if here > probability else (x, high)
        density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - _log_beta(a, b))
        step = math.log(here / probability) * here / density if here and density else math.inf
        following = x - step if low <= x - step <= high else (low + high) / 2.0
        if abs(following - x) <= 1e-14 * x:
            return following
        x = following
    return x


def incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function I_x(a, b), with y = 1 - x given so that it need not be rounded.

    >>> round(incomplete_beta(2.0, 3.0, 0.5, 0.5), 6)
    0.6875
    """
    if x == 0.0 or y == 0.0:
        return 0.0 if x == 0.0 else 1.0
    log_x, log_y = (math.log1p(-y), math.log(y)) if y < 0.5 else (math.log(x), math.log1p(-x))
    front = math.exp(a * log_x + b * log_y - _log_beta(a, b))
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast on the other side only
        return 1.0 - front * _beta_fraction(b, a, y) / b
    return front * _beta_fraction(a, b, x) / a


def _log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function, for b = 1/2 to the last digits."""
    if a < 100.0 or b != 0.5:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    # lgamma(a + b) - lgamma(a) would cancel; at b = 1/2 the asymptotic series is exact to a double (DLMF 5.11.13).
    return math.lgamma(b) - (0.5 * math.log(a) - 1.0 / (8.0 * a) + 1.0 / (192.0 * a**3) - 1.0 / (640.0 * a**5))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(1.0 - (a + b) * x / (a + 1.0), tiny)
    result = d
    for m in range(1, _STEPS_ENOUGH * 10):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + numerator * d, tiny)
            c = _away_from_zero(1.0 + numerator / c, tiny)
            result *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return result


def _away_from_zero(value: float, tiny: float) -> float:
    return tiny if abs(value) < tiny else value
